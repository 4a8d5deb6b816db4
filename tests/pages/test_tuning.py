"""The tuning page: run, mode, proposal and pin each write a command and show what became of it."""

from typing import Any

import pytest

from storage import commands, runs
from tests.support import details
from tests.support.pages import at, figures, texts
from tests.support.snapshots import StandInEngine
from tests.support.stored import store_trio


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
    assert "tune" not in {button.key for button in app.button}


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
    assert "✓ begun (run tuning)" in texts(app)


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


def test_a_predicted_latency_links_to_its_twin_run(engine: StandInEngine) -> None:
    runs.save(engine.store, "tune", *details.run(0.3, 0.2))  # of a time without twin runs
    trio = store_trio(engine.store)
    engine.tick()
    shown = texts(at("tuning"))
    assert f'<a href="tuning?run={trio.predicted}">24 s</a>' in shown
    assert shown.count("tuning?run=") == 1


@pytest.mark.parametrize(
    ("which", "title"), [("predicted", "Twin run"), ("unchanged", "Twin run"), ("tune", "Tuning run")]
)
def test_a_link_to_any_of_the_three_opens_the_pair(engine: StandInEngine, which: str, title: str) -> None:
    store_trio(engine.store, 0.9)
    trio = store_trio(engine.store)
    engine.tick()
    number = getattr(trio, which)
    app = at("tuning", run=str(number))
    assert not app.exception
    shown = texts(app)
    assert f"{title} {number}" in shown
    assert "α 0.40 chosen" in shown
    assert "α 0.20 in force" in shown
    assert "Replayed the 600 s before 1,800 s of simulated time, hexgen" in shown
    assert f"Tuning run {trio.tune}: ✓ applied. better in 97 % of the resamples" in shown
    assert "Finished, α 0.20" in shown
    app.button(key="close-run").click().run()
    assert "run" not in app.query_params
    assert "in force</h2>" not in texts(app)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("99", "No run 99 is in the store"),
        ("abc", "“abc” is not the number of a run"),
        ("-1", "“-1” is not the number of a run"),
        ("9" * 40, "is not the number of a run"),
        ("<b>", "“&lt;b&gt;” is not"),
        ("1", "Tuning run 1 has no twin runs on record"),
        ("2", "Run 2 is of kind sweep"),
    ],
)
def test_a_link_to_no_twin_run_is_a_sentence(engine: StandInEngine, asked: str, sentence: str) -> None:
    runs.save(engine.store, "tune", *details.run())
    runs.save(engine.store, "sweep", {}, {})
    engine.tick()
    app = at("tuning", run=asked)
    assert not app.exception
    assert sentence in texts(app)


def test_a_twin_run_without_its_tuning_run_is_shown_alone(engine: StandInEngine) -> None:
    number = runs.save(engine.store, "prediction", *details.prediction(0.4))
    engine.tick()
    app = at("tuning", run=str(number))
    assert not app.exception
    assert "Difference" not in texts(app)
    assert "93.8 %" in texts(app)


def test_what_came_of_a_run_stands_with_its_reason(engine: StandInEngine) -> None:
    review = {"after_p95_s": 30.1, "before_p95_s": 33.0}
    store_trio(engine.store, realised_p95_s=31.0, outcome="P95 31.0 s, promised at most 26.9 s", review=review)
    engine.tick()
    shown = texts(at("tuning"))
    assert "✓ kept after review" in shown
    assert "better in 97 % of the resamples. Then: P95 31.0 s, promised at most 26.9 s" in shown
    assert "▲" not in shown
