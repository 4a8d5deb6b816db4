"""The live tuner over a real store: what a run stores, what each mode does with it, and how a promise is judged."""

from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any

import pytest

from control.config import EngineSettings
from control.engine import checkpoint
from control.engine.loop import Loop
from control.engine.rehearsal import rehearse
from control.engine.source import Source
from control.engine.state import start
from control.model.fleet import Fleet, load_fleet
from control.tuning.decide import AUTO, OFF, SUGGEST, TunerSettings
from control.workload.scenarios import scenario
from storage import commands, readers, runs
from storage.open import Store

STEP = replace(scenario("step-load"), until_s=1500.0)
#: Fewer alphas' worth of evidence than the default: the artifact's form differs enough between alphas.
QUICK = TunerSettings(resamples=3)


@pytest.fixture(scope="module")
def hetero() -> Fleet:
    return load_fleet("hexgen-hetero-1")


def at_the_start(store: Store, fleet: Fleet) -> Loop:
    """The load step about to begin, at alpha 0.5."""
    live = start(fleet, Source("step-load", 0, scenario=STEP), "hexgen", 0.5, 1.0)
    return Loop(live, store, EngineSettings(), "0", lambda: False)


@pytest.fixture
def loop(store: Store, hetero: Fleet) -> Loop:
    """The load step, eleven calm minutes in."""
    made = at_the_start(store, hetero)
    made.tuner.settings = QUICK
    made.live.tuning_mode = OFF
    live_on(made, 660.0)
    return made


def live_on(loop: Loop, until_s: float) -> None:
    """Go on to `until_s`, whatever the tuner does under way ending within the tick."""
    while loop.live.now_s < until_s:
        loop.may_tune = True
        loop.tick(10.0)
        loop.tuner.wait()
        loop.follow_up()
        loop.record()


def newest(store: Store) -> dict[str, Any]:
    """The newest tuning run with its result."""
    return runs.recent(store, 1, kind="tune", with_result=True)[0]


def test_a_run_is_stored_with_its_curve_and_the_twin_runs_it_predicts_from(loop: Loop, store: Store) -> None:
    commands.submit(store, "tune", {}, "ann")
    live_on(loop, 700.0)
    result = newest(store)["result"]
    assert [row["alpha"] for row in result["curve"]][:3] == [0.0, 0.1, 0.2]
    assert result["decision"] in ("suggested", "kept")
    assert loop.live.alpha == 0.5  # the tuner is off: it proposes at most
    predicted, unchanged = (runs.get(store, result[key]) for key in ("predicted_run", "unchanged_run"))
    assert predicted is not None
    assert unchanged is not None
    assert (predicted["result"]["alpha"], unchanged["result"]["alpha"]) == (result["alpha"], 0.5)
    for run in (predicted, unchanged):
        assert run["result"]["workflows"] > 20
        assert run["result"]["p95_s"] > 0.0
        assert len(run["result"]["per_instance"]) == 4


def test_auto_applies_cools_down_and_a_hand_pins_until_released(loop: Loop, store: Store) -> None:
    commands.submit(store, "tuning_mode", {"mode": AUTO}, "ann")
    live_on(loop, 700.0)
    assert loop.live.alpha != 0.5
    assert newest(store)["result"]["decision"] == "applied"
    assert loop.tuner.cooling_s(loop.live) > 0.0
    moved = loop.live.alpha
    commands.submit(store, "tune", {}, "ann")
    live_on(loop, 720.0)
    assert loop.live.alpha == moved  # cooling down
    commands.submit(store, "alpha", {"alpha": 0.3}, "ann")
    live_on(loop, 1320.0)
    assert loop.live.alpha == 0.3  # pinned, whatever the runs meanwhile found
    commands.submit(store, "release_alpha", {}, "ann")
    live_on(loop, 1500.0)
    commands.submit(store, "tune", {}, "ann")
    live_on(loop, 1540.0)
    assert loop.live.alpha != 0.3


def test_suggest_proposes_and_leaves_alpha(loop: Loop, store: Store) -> None:
    commands.submit(store, "tuning_mode", {"mode": SUGGEST}, "ann")
    live_on(loop, 700.0)
    status = loop.tuner.status(loop.live)
    assert loop.live.alpha == 0.5
    assert status["suggested_alpha"] is not None
    assert status["last_run"] == newest(store)["id"]


def test_a_deliberately_bad_choice_is_rolled_back(loop: Loop, store: Store) -> None:
    loop.live.tuning_mode = AUTO
    loop.may_tune = False
    run = runs.save(store, "tune", {}, {"decision": "applied", "predicted_high_s": 60.0})
    loop.live.tuner.last_s = 1e9  # no run of its own
    loop.tuner.applied(loop.live, loop.history, run, 0.95, 60.0)
    loop.set_alpha(0.95, "a mistake")
    live_on(loop, 1500.0)
    assert loop.live.alpha == 0.5
    result = (runs.get(store, run) or {})["result"]
    assert result["decision"] == "rolled_back"
    assert result["review"]["after_p95_s"] > result["review"]["before_p95_s"]
    assert any("rolled back" in row["text"] for row in readers.events(store, 0.0, 20))
    assert loop.tuner.cooling_s(loop.live) > 300.0


def test_a_good_choice_is_kept_though_the_load_grew_beyond_its_promise(loop: Loop, store: Store) -> None:
    loop.live.tuning_mode = AUTO
    run = runs.save(store, "tune", {}, {"decision": "applied", "predicted_high_s": 60.0})
    loop.live.tuner.last_s = 1e9
    loop.set_alpha(0.95, "a mistake")
    loop.tuner.applied(loop.live, loop.history, run, 0.65, 60.0)
    loop.set_alpha(0.65, "put right")
    live_on(loop, 1500.0)
    assert loop.live.alpha == 0.65
    result = (runs.get(store, run) or {})["result"]
    assert result["decision"] == "applied"
    assert result["realised_p95_s"] > 60.0
    assert result["review"]["after_p95_s"] < result["review"]["before_p95_s"]


def test_a_promise_and_the_ledger_outlive_a_restart(loop: Loop, hetero: Fleet) -> None:
    loop.tuner.applied(loop.live, loop.history, 3, 0.65, 60.0)
    again = checkpoint.load(checkpoint.save(loop.live), hetero, loop.live.source)
    assert again.tuner == loop.live.tuner
    assert again.tuner.promise is not None
    ledger = loop.live.books.ledger(loop.live.now_s)
    assert ledger["workflows"] > 0
    assert again.books.ledger(again.now_s) == ledger


def test_too_little_history_is_said(store: Store, hetero: Fleet) -> None:
    loop = at_the_start(store, hetero)
    commands.submit(store, "tune", {}, "ann")
    live_on(loop, 20.0)
    assert any("nothing has ended yet" in row["text"] for row in readers.events(store, 0.0, 20))
    assert runs.recent(store, 5, kind="tune") == []


def test_a_run_that_took_longer_than_its_window_changes_nothing(loop: Loop, store: Store) -> None:
    loop.live.tuning_mode = AUTO
    assert loop.tuner.start(loop.live, loop.history, "period") == ""
    loop.tuner.wait()
    loop.advance(700.0)  # the machine was so slow that the clock went on this far meanwhile
    loop.tick(0.0)
    assert loop.live.alpha == 0.5
    result = newest(store)["result"]
    assert result["decision"] == "kept"
    assert "the load has moved on" in result["reason"] or "best already" in result["reason"]


def test_a_long_backlog_is_not_replayed(loop: Loop) -> None:
    loop.tuner.settings = replace(QUICK, most_active=1)
    assert "a backlog beyond 1 is not replayed" in loop.tuner.start(loop.live, loop.history, "period")


def test_a_policy_without_alpha_is_not_tuned(loop: Loop, store: Store) -> None:
    commands.submit(store, "policy", {"policy": "p2c"}, "ann")
    commands.submit(store, "tune", {}, "ann")
    live_on(loop, 680.0)
    assert any("p2c uses no alpha" in row["text"] for row in readers.events(store, 0.0, 20))
    assert runs.recent(store, 5, kind="tune") == []


def test_a_run_under_way_ends_with_the_engine(loop: Loop) -> None:
    assert loop.tuner.start(loop.live, loop.history, "period") == ""
    loop.tuner.close()
    assert loop.tuner.job is not None
    assert isinstance(loop.tuner.job.future.exception(timeout=30.0), CancelledError)


@pytest.mark.slow
def test_auto_gains_over_the_fixed_alpha_through_a_load_step(store: Store, hetero: Fleet) -> None:
    gained = 0
    for seed in range(10):
        source = Source("step-load", seed, scenario=replace(STEP, until_s=2400.0))
        fixed, auto = (rehearse(source, hetero, store, mode).p95_s for mode in (OFF, AUTO))
        gained += fixed is not None and auto is not None and auto < fixed
    assert gained >= 8
