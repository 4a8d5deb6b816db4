"""The page of placements: empty, filtered, one receipt in full, and what its button asks for."""

from pathlib import Path
from typing import Any

import pytest

from storage import commands, readers, runs
from storage.journal import Batch, Journal
from tests.support import details
from tests.support.decisions import placement, replay
from tests.support.pages import at, texts
from tests.support.snapshots import StandInEngine


def placed(engine: StandInEngine, *rows: dict[str, Any]) -> None:
    """Have these placements stored with a tick."""
    engine.tick()
    Journal(engine.store).commit(Batch(1.8e9, 10.0, decisions=list(rows)))


def ended(engine: StandInEngine, number: int, call: int) -> None:
    """The workflow of that number has ended, and `call` is one of its calls."""
    row = details.workflow(number)
    row["timeline"][0]["call"] = call
    engine.tick(workflows=(row,))


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("decisions")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_a_broken_store_shows_a_sentence_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / 'broken.db'}")
    app = at("decisions")
    assert not app.exception
    assert "The store cannot be read" in texts(app)


def test_before_the_first_placement_there_is_a_sentence(engine: StandInEngine) -> None:
    engine.tick()
    app = at("decisions")
    assert not app.exception
    assert "No call has been placed yet" in texts(app)


def test_the_newest_placements_are_listed_with_links_to_each(engine: StandInEngine) -> None:
    placed(engine, placement(1), placement(2))
    shown = texts(at("decisions"))
    assert shown.index('href="decisions?decision=2"') < shown.index('href="decisions?decision=1"')
    assert 'href="workflows?workflow=101"' in shown


def test_filters_are_in_the_link(engine: StandInEngine) -> None:
    far = placement(3, stage="turn", runner_up_score=-40.0)
    placed(engine, placement(1, runner_up_score=1.39), far)
    app = at("decisions", stage="turn")
    assert not app.exception
    assert "decision=2" in texts(app)
    assert "decision=1" not in texts(app)
    app = at("decisions", calls="close")
    assert "decision=1" in texts(app)
    assert "decision=2" not in texts(app)
    app.selectbox(key="instance").select("l4-0").run()
    assert "No placement on record matches these filters." in texts(app)


def test_a_receipt_shows_what_was_compared_and_what_was_not(engine: StandInEngine) -> None:
    placed(engine, placement(1))
    app = at("decisions", decision="1")
    assert not app.exception
    shown = texts(app)
    for words in ("✓ chosen", "runner-up", "draining", "α 0.30", "Its workflow has not ended yet."):
        assert words in shown
    assert app.button(key="regret-1").disabled


def test_a_placement_without_a_receipt_says_so(engine: StandInEngine) -> None:
    placed(engine, placement(1, candidates=None, filtered=None, runner_up=None))
    app = at("decisions", decision="1")
    assert not app.exception
    assert "What it was compared with is kept no more" in texts(app)
    assert "No other instance could have taken it." in texts(app)


def test_the_button_asks_the_engine_to_replay_and_its_answer_appears(engine: StandInEngine) -> None:
    placed(engine, placement(1))
    ended(engine, 100, 1001)
    app = at("decisions", decision="1")
    app.button(key="regret-1").click().run()
    (row,) = commands.pending(engine.store)
    assert (row["kind"], row["payload"]) == ("regret", {"decision": 1})
    engine.tick()
    app.run()
    assert "the past is replayed" in texts(app)
    assert app.button(key="regret-1").disabled
    run = runs.save(engine.store, "regret", *replay(1))
    app.run()
    assert "On a100-0 the workflow would have taken 4.20 s longer" in texts(app)
    assert not app.button(key="regret-1").disabled
    linked = at("decisions", run=str(run))
    assert "taken 4.20 s longer" in texts(linked)
    assert "Placement 1" in texts(linked)


def test_a_replay_that_could_not_be_says_why(engine: StandInEngine) -> None:
    placed(engine, placement(1))
    ended(engine, 100, 1001)
    runs.save(engine.store, "regret", {"decision": 1}, {"problem": "no state of the fleet is kept from before it"})
    app = at("decisions", decision="1")
    assert not app.exception
    assert "cannot be told: no state of the fleet is kept from before it." in texts(app)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"decision": "abc"}, "is not the number of a placement"),
        ({"decision": "77"}, "No placement 77 is in the store"),
        ({"run": "77"}, "No replay of a placement is stored as run 77"),
        ({"run": "x"}, "No replay of a placement is stored as run x"),
    ],
)
def test_what_is_no_placement_is_said(engine: StandInEngine, query: dict[str, str], said: str) -> None:
    engine.tick()
    app = at("decisions", **query)
    assert not app.exception
    assert said in texts(app)


def test_names_with_markup_in_them_are_shown_as_text(engine: StandInEngine) -> None:
    placed(engine, placement(1, stage="<script>x</script>"))
    assert "<script>" not in texts(at("decisions", decision="1"))


def test_a_workflow_on_its_way_links_its_placements(engine: StandInEngine) -> None:
    placed(engine, placement(1, workflow=201))
    (row,) = readers.decisions(engine.store, 9)
    assert f'href="decisions?decision={row["id"]}"' in texts(at("workflows", workflow="201"))
