"""The what-if page around applying: what speaks against it, how it stands under watch, and what was undone since."""

import time
from typing import Any

import pytest

from storage import runs
from tests.support import forks
from tests.support.pages import at, texts
from tests.support.snapshots import StandInEngine


def entry(setting: int, name: str, **changed: Any) -> dict[str, Any]:
    """An application of a setting, as a run keeps it."""
    return {"command": 5, "setting": setting, "name": name, "sim_s": 4220.0, "things": {"alpha": [0.2, 0.6]}} | changed


def test_what_was_undone_by_hand_is_said_among_the_kept_forks(engine: StandInEngine) -> None:
    undone = [entry(7, "α 0.60", undone_by=6)]
    forks.store_fork(engine.store, guard=forks.guard("kept", 10.4), applied=undone)
    engine.tick()
    shown = texts(at("whatif"))
    assert "undone" in shown
    assert "✓ kept" not in shown


def test_p95_so_far_stands_beside_what_is_promised(engine: StandInEngine) -> None:
    forks.store_fork(engine.store, guard=forks.guard("watching", 10.2))
    engine.tick()
    assert "P95 so far 10.2 s, at most 11.0 s" in texts(at("whatif"))


def test_a_setting_that_is_predicted_worse_is_warned_of_before_the_click(engine: StandInEngine) -> None:
    worse = forks.setting(1, "α 0.90", 20.3, commands=[["alpha", {"alpha": 0.9}]])
    worse["figures"]["slo_attainment"] = forks.band(0.38)
    forks.store_fork(engine.store, [forks.setting(0, "as it is", 13.2), worse])
    engine.tick(sim_s=4210.0 + 480.0)
    app = at("whatif", setting="1")
    assert not app.exception
    shown = texts(app)
    assert "⚠ Predicted worse: P95 +54 %, attainment 93 → 38 %." in shown
    assert "⚠ This fork is 8 simulated min old." in shown
    assert not app.button(key="apply-fork").disabled


def test_a_fork_of_something_else_cannot_be_applied_and_says_why(engine: StandInEngine) -> None:
    forks.store_fork(engine.store)
    engine.tick(scenario="burst")
    app = at("whatif")
    assert "The fork is of demo-mixed" in texts(app)
    assert "what runs now is burst, seed 1, on demo-mixed" in texts(app)
    assert app.button(key="apply-fork").disabled


@pytest.mark.parametrize("how", ["restarted", "silent"])
def test_a_fork_that_its_engine_left_behind_is_not_waited_for(engine: StandInEngine, how: str) -> None:
    number = forks.store_fork(engine.store, forks.swept()[:2], state="running", progress=0.17, best=0)
    made = runs.get(engine.store, number)
    assert made is not None
    now = time.time() if how == "restarted" else time.time() - 30.0
    started = now + 0.5 if how == "restarted" else now - 60.0
    engine.tick(at=now, engine={"pid": 1, "started_at": started, "version": "0", "state": "running"})
    app = at("whatif")
    assert not app.exception
    assert not app.button(key="fork").disabled
