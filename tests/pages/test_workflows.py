"""The workflows page: the list with its filters and its limit, the search, and one workflow's story from a link."""

import time
from pathlib import Path

import pytest

from storage.journal import Batch
from tests.support import details
from tests.support.pages import at, figures, session, texts
from tests.support.snapshots import StandInEngine


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("workflows")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_a_broken_store_shows_a_sentence_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / 'broken.db'}")
    app = at("workflows")
    assert not app.exception
    assert "The store cannot be read" in texts(app)


def test_an_engine_that_reports_no_workflows_is_waited_for(engine: StandInEngine) -> None:
    engine.detail = None
    engine.tick()
    app = at("workflows")
    assert not app.exception
    assert "has not reported its workflows yet" in texts(app)


def test_the_latest_is_first_and_ended_ones_follow_by_debt(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(300, debt_s=0.0), details.workflow(301, debt_s=9.0)))
    app = at("workflows")
    assert not app.exception
    shown = texts(app)
    places = [shown.index(f"workflows?workflow={number}") for number in (201, 202, 301, 300)]
    assert places == sorted(places)
    assert "4 (2 active, 2 ended)" in shown
    assert figures(app) == 1


def test_nothing_on_its_way_and_nothing_ended_is_a_sentence(engine: StandInEngine) -> None:
    assert engine.detail is not None
    engine.detail["active"] = []
    engine.tick()
    assert "No workflow is on its way and none has ended yet." in texts(at("workflows"))


def test_filters_are_in_the_link(engine: StandInEngine) -> None:
    ended = (details.workflow(300), details.workflow(301, kind="agent"), details.workflow(303, debt_s=0.0))
    engine.tick(workflows=ended)
    app = at("workflows", tenant="support", late="1")
    assert app.selectbox(key="tenant").value == "support"
    assert app.toggle(key="late_only").value
    shown = texts(app)
    assert [number for number in (201, 202, 300, 301, 303) if f"workflow={number}" in shown] == [201, 301]
    app.toggle(key="late_only").set_value(False).run()
    assert "late" not in app.query_params
    assert "workflow=303" in texts(app)
    app.selectbox(key="status").select("running").run()
    assert "workflow=303" not in texts(app)


def test_kinds_that_only_the_store_knows_can_be_chosen(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(301, kind="agent"),))
    app = at("workflows")
    assert "agent" in app.selectbox(key="kind").options
    app.selectbox(key="kind").select("agent").run()
    assert "workflow=201" not in texts(app)
    assert "workflow=301" in texts(app)


def test_a_stage_leaves_what_is_there_now(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(300),))
    app = at("workflows", stage=details.STAGES[1])
    assert "workflow=201" in texts(app)
    assert "workflow=300" not in texts(app)
    assert "ended ones are at no stage any more" in texts(at("workflows", stage="planning"))


def test_a_number_is_found_by_its_first_digits_the_whole_one_first(engine: StandInEngine) -> None:
    engine.tick(workflows=tuple(details.workflow(n, debt_s=float(n)) for n in (31, 310, 3100, 41)))
    app = at("workflows", search="#31")
    shown = texts(app)
    places = [shown.index(f">#{number}<") for number in (31, 3100, 310)]
    assert places == sorted(places)
    assert ">#41<" not in shown
    assert ">#201<" not in shown


def test_a_search_that_is_no_number_says_what_is_accepted(engine: StandInEngine) -> None:
    engine.tick()
    app = at("workflows", search="<b>x")
    assert not app.exception
    assert "“&lt;b&gt;x” is not a workflow&#x27;s number" in texts(app)


def test_a_long_list_says_its_limit_and_shows_more_when_asked(engine: StandInEngine) -> None:
    engine.tick(workflows=tuple(details.workflow(1000 + k) for k in range(100)))
    app = at("workflows")
    assert "60 of 102 (2 active, 100 ended)" in texts(app)
    app.button(key="more").click().run()
    assert app.query_params["rows"] == "120"
    assert "102 (2 active, 100 ended)" in texts(app)
    assert not [button for button in app.button if button.key == "more"]


def test_more_active_ones_than_the_engine_lists_are_admitted(engine: StandInEngine) -> None:
    engine.tick()
    assert "of 33 active ones only the 2 furthest past their deadline" in texts(at("workflows"))


def test_a_link_opens_a_workflow_with_its_timeline_its_sum_and_its_placements(engine: StandInEngine) -> None:
    placed = {"workflow": 300, "stage": "candidate", "instance": "l4-0", "policy": "hexgen", "score": 0.7}
    batch = Batch(time.time(), 20.0, decisions=[placed | {"call": 7}])
    batch.decisions.append(placed | {"call": 8, "sim_s": 99.0})  # another run's workflow of that number
    engine.tick(workflows=(details.workflow(300),))
    engine.journal.commit(batch)
    app = at("workflows", workflow="300")
    assert not app.exception
    shown = texts(app)
    assert "Workflow #300" in shown
    assert "41.1 s elapsed − 30.9 s planned = +10.2 s" in shown
    assert "Placements" in shown
    assert "l4-0<" in shown.split("Placements")[1]
    assert ">7<" in shown
    assert ">8<" not in shown
    assert figures(app) == 2


def test_closing_a_workflow_leaves_the_filters(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(300),))
    app = at("workflows", workflow="300", late="1", tenant="support")
    app.button(key="close-workflow").click().run()
    assert "workflow" not in app.query_params
    assert app.query_params["late"] == "1"
    assert app.selectbox(key="tenant").value == "support"
    assert "Workflow #300" not in texts(app)


def test_a_workflow_without_a_timeline_still_has_its_facts(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(300, timeline=None, ledger=None, plan_s=None, state="refused"),))
    app = at("workflows", workflow="300")
    assert not app.exception
    assert "Its timeline is kept no more" in texts(app)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("99", "No workflow #99 is on its way or in the store"),
        ("abc", "“abc” is not the number of a workflow"),
        ("-1", "“-1” is not the number of a workflow"),
        ("9" * 40, "is not the number of a workflow"),
        ("<b>", "“&lt;b&gt;” is not"),
    ],
)
def test_a_link_to_no_workflow_is_a_sentence(engine: StandInEngine, asked: str, sentence: str) -> None:
    engine.tick()
    app = at("workflows", workflow=asked)
    assert not app.exception
    assert sentence in texts(app)


def test_a_workflow_on_its_way_shows_how_far_it_is_and_what_it_does_now(engine: StandInEngine) -> None:
    assert engine.detail is not None
    engine.detail["queues"] = [{"instance": "l4-0", "total": 14, "calls": [details.call(1, workflow=201)]}]
    engine.tick(workflows=(details.workflow(201),))
    app = at("workflows", workflow="201")
    assert not app.exception
    assert "3 of 7 calls done, late by 8.40 s" in texts(app)
    assert "Call 1001 (candidate) waits on l4-0 for 2.10 s, 1 of 14 in its queue." in texts(app)


def test_a_workflow_that_ends_while_it_is_watched_turns_into_its_timeline(engine: StandInEngine) -> None:
    engine.tick()
    app = at("workflows", workflow="201")
    assert figures(app) == 1
    assert engine.detail is not None
    engine.detail["active"] = []
    engine.tick(workflows=(details.workflow(201),))
    app.run()
    assert figures(app) == 2


def test_an_engine_that_fell_silent_leaves_its_list_with_its_age(engine: StandInEngine) -> None:
    engine.tick(time.time() - 42)
    app = at("workflows")
    assert "As the engine left it 4" in texts(app)
    assert "workflow=201" in texts(app)


def test_names_with_markup_in_them_are_shown_as_text(engine: StandInEngine) -> None:
    assert engine.detail is not None
    engine.detail["active"] = [details.active(1, 3.0, tenant="<script>x</script>")]
    engine.tick()
    assert "<script>" not in texts(at("workflows"))


def test_the_page_is_in_the_navigation(engine: StandInEngine) -> None:
    engine.tick()
    app = session("workflows")
    assert not app.exception
    assert "workflow=201" in texts(app)
