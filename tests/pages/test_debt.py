"""The SLO debt page: the ledger, the workflows, and one workflow's story from a link."""

import time

import pytest

from tests.support import details
from tests.support.pages import at, figures, texts
from tests.support.snapshots import StandInEngine


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("debt")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_the_ledger_names_causes_payers_and_workflows(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(300),))
    app = at("debt")
    assert not app.exception
    shown = texts(app)
    assert "Queue, own tenant" in shown
    assert "+310 s" in shown
    assert "250 workflows ended in the last 300 s" in shown
    assert "57.3 s behind their plans" in shown
    assert shown.index("debt?workflow=201") < shown.index("debt?workflow=300")
    assert figures(app) == 1


def test_a_store_in_which_nothing_has_ended_yet_is_told_in_sentences(engine: StandInEngine) -> None:
    assert engine.detail is not None
    empty = details.ledger(0.0) | {"by_tenant": {}, "by_stage": {}, "by_instance": {}}
    engine.detail |= {"active": [], "ledger": empty}
    engine.tick()
    app = at("debt")
    assert not app.exception
    assert "No workflow has ended in the window yet." in texts(app)
    assert "No workflow is late and none has ended yet." in texts(app)


def test_an_engine_that_reports_no_ledger_is_waited_for(engine: StandInEngine) -> None:
    engine.detail = None
    engine.tick()
    assert "has not reported where the time went yet" in texts(at("debt"))


def test_a_link_opens_a_workflow_with_its_timeline_and_its_sum(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(300),))
    app = at("debt", workflow="300")
    assert not app.exception
    assert "Workflow #300" in texts(app)
    assert "41.1 s elapsed − 30.9 s planned = +10.2 s" in texts(app)
    assert figures(app) == 2


def test_closing_a_workflow_clears_the_link(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(300),))
    app = at("debt", workflow="300")
    app.button(key="close-workflow").click().run()
    assert "workflow" not in app.query_params
    assert "Workflow #300" not in texts(app)


def test_a_workflow_without_a_timeline_still_has_its_facts(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(300, timeline=None, ledger=None, plan_s=None, state="refused"),))
    app = at("debt", workflow="300")
    assert not app.exception
    assert "No timeline was recorded" in texts(app)


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
    app = at("debt", workflow=asked)
    assert not app.exception
    assert sentence in texts(app)


def test_a_workflow_on_its_way_shows_how_far_it_is(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(201),))
    app = at("debt", workflow="201")
    assert not app.exception
    assert "3 of 7 calls done, late by 8.40 s" in texts(app)
    assert "Workflow #201" in texts(app)


def test_a_workflow_that_ends_while_it_is_watched_turns_into_its_timeline(engine: StandInEngine) -> None:
    engine.tick()
    app = at("debt", workflow="201")
    assert figures(app) == 1
    assert engine.detail is not None
    engine.detail["active"] = []
    engine.tick(workflows=(details.workflow(201),))
    app.run()
    assert figures(app) == 2


def test_an_engine_that_fell_silent_leaves_its_last_ledger_with_its_age(engine: StandInEngine) -> None:
    engine.tick(time.time() - 42)
    assert "As the engine left it 4" in texts(at("debt"))
