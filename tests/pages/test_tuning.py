"""The tuning page: run, mode, proposal and pin each write a command and show what became of it."""

from typing import Any

import pytest

from storage import commands, runs
from tests.support import details
from tests.support.pages import at, figures, texts
from tests.support.snapshots import StandInEngine


def pending(engine: StandInEngine) -> list[tuple[str, dict[str, Any], Any]]:
    return [(r["kind"], r["payload"], r["expected"]) for r in commands.pending(engine.store)]


@pytest.fixture
def tuned(engine: StandInEngine) -> StandInEngine:
    """An engine whose tuner proposes α 0.4 against the pinned 0.2, after two runs."""
    runs.save(engine.store, "tune", *details.run(0.3, 0.2, realised_p95_s=25.0))
    runs.save(engine.store, "tune", *details.run(0.4, 0.2, decision="suggested"))
    engine.detail = {"tuning": details.tuning(suggested_alpha=0.4, pinned=True)}
    engine.tick()
    return engine


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("tuning")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_without_a_run_the_page_says_what_one_would_do(engine: StandInEngine) -> None:
    engine.tick()
    app = at("tuning")
    assert not app.exception
    assert "No tuning run yet" in texts(app)
    assert "No applied run has been put to the test yet." in texts(app)
    assert figures(app) == 1


def test_an_engine_that_reports_no_tuner_is_waited_for(engine: StandInEngine) -> None:
    engine.detail = None
    engine.tick()
    app = at("tuning")
    assert not app.exception
    assert "has not reported its tuner yet" in texts(app)
    assert not app.button


def test_runs_are_shown_as_curve_promise_and_history(tuned: StandInEngine) -> None:
    app = at("tuning")
    assert not app.exception
    assert figures(app) == 3
    assert "1 of 1 at or below the predicted band" in texts(app)
    assert texts(app).index("0.20 → 0.40") < texts(app).index("0.20 → 0.30")


def test_run_tuning_is_pending_then_running_and_cannot_be_asked_twice(engine: StandInEngine) -> None:
    engine.tick()
    app = at("tuning")
    app.button(key="tune").click().run()
    assert pending(engine) == [("tune", {}, None)]
    assert app.button(key="tune").disabled
    assert "… pending (run tuning)" in texts(app)
    engine.tick()
    app.run()
    assert app.button(key="tune").disabled
    assert "… running, 0 %" in texts(app)
    assert "✓ applied (run tuning)" in texts(app)


def test_a_mode_is_pending_until_the_engine_has_taken_it(engine: StandInEngine) -> None:
    engine.tick()
    app = at("tuning")
    app.segmented_control[0].set_value("auto").run()
    assert pending(engine) == [("tuning_mode", {"mode": "auto"}, None)]
    assert "… pending (tuning auto)" in texts(app)
    engine.tick()
    app.run()
    assert app.segmented_control[0].value == "auto"
    assert "rolls back what is not" in texts(app)


def test_a_mode_changed_by_somebody_else_is_followed(engine: StandInEngine) -> None:
    engine.tick()
    app = at("tuning")
    commands.submit(engine.store, "tuning_mode", {"mode": "off"}, "cli")
    engine.tick()
    app.run()
    assert app.segmented_control[0].value == "off"


def test_a_proposal_is_applied_with_its_predicted_effect_in_sight(tuned: StandInEngine) -> None:
    app = at("tuning")
    assert "Proposed α 0.20 → 0.40: P95 −12 % (−18 % to −5.0 %)" in texts(app)
    app.button(key="apply-proposal").click().run()
    assert pending(tuned) == [("alpha", {"alpha": 0.4}, 0.2)]
    tuned.tick()
    app.run()
    assert "Proposed" not in texts(app)


def test_a_pinned_alpha_is_released(tuned: StandInEngine) -> None:
    app = at("tuning")
    assert "Pinned: α 0.20 was set by hand" in texts(app)
    app.button(key="release").click().run()
    assert pending(tuned) == [("release_alpha", {}, None)]
    tuned.tick()
    app.run()
    assert "Pinned" not in texts(app)


def test_a_refused_command_tells_its_reason(tuned: StandInEngine) -> None:
    app = at("tuning")
    commands.submit(tuned.store, "alpha", {"alpha": 0.35}, "cli")
    tuned.tick()
    app.button(key="apply-proposal").click().run()
    tuned.tick()
    app.run()
    assert "✕ refused: it is 0.35 by now" in texts(app)
