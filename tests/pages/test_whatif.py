"""The what-if page: it asks for forks, shows them as they grow, and applies what was picked."""

from typing import Any

import orjson
import pytest
from streamlit.testing.v1 import AppTest

from storage import commands, runs
from tests.support import details, forks
from tests.support.pages import at, texts
from tests.support.snapshots import StandInEngine, instance


def pending(engine: StandInEngine) -> list[tuple[str, dict[str, Any]]]:
    return [(r["kind"], r["payload"]) for r in commands.pending(engine.store)]


def keys(app: AppTest) -> set[str | None]:
    return {button.key for button in app.button}


def pictures(app: AppTest) -> list[dict[str, Any]]:
    """What the browser was given to draw of forks."""
    shown = [orjson.loads(e.proto.json) for e in app.get("bidi_component") if e.proto.json]
    return [data for data in shown if "charts" in data]


def spec_of(engine: StandInEngine) -> dict[str, Any]:
    ((kind, payload),) = pending(engine)
    assert kind == "whatif"
    spec: dict[str, Any] = payload["spec"]
    return spec


@pytest.fixture
def forked(engine: StandInEngine) -> StandInEngine:
    """An engine with one fork of the sweep that is done."""
    forks.store_fork(engine.store)
    engine.tick()
    return engine


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("whatif")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_before_the_first_fork_the_page_says_what_one_does_and_offers_a_sweep(engine: StandInEngine) -> None:
    engine.tick()
    app = at("whatif")
    assert not app.exception
    assert "A fork copies the running fleet" in texts(app)
    assert "Forks appear here" in texts(app)
    app.button(key="first-fork").click().run()
    spec = spec_of(engine)
    assert (spec["minutes"], spec["seeds"], spec["arrivals"], len(spec["settings"])) == (5.0, 8, "resampled", 11)


def test_fork_now_asks_with_what_the_form_says(forked: StandInEngine) -> None:
    app = at("whatif")
    app.number_input(key="ahead").set_value(10).run()
    app.segmented_control(key="arrivals").set_value("own").run()
    app.slider(key="back").set_value(3).run()
    assert "it knows the future" in texts(app)
    assert app.number_input(key="seeds").disabled
    app.button(key="fork").click().run()
    spec = spec_of(forked)
    assert (spec["minutes"], spec["seeds"], spec["arrivals"], spec["back_s"]) == (10.0, 1, "own", 180.0)


@pytest.mark.parametrize(
    ("preset", "names"),
    [
        ("policies", ["rr-fcfs", "edf"]),
        ("fleet", ["fail h100-0"]),
        ("power", ["A40 without cap", "A40 at 235 W", "A40 at 170 W", "A40 at 105 W"]),
        ("load", ["load ×0.5", "load ×1.5", "load ×2", "load ×3"]),
        ("slo", ["SLO ×0.5", "SLO ×0.75", "SLO ×1.5", "SLO ×2"]),
        ("retention", ["keep idle 10 s", "keep idle 60 s", "keep idle 300 s", "keep idle for good"]),
    ],
)
def test_each_preset_asks_for_its_settings(forked: StandInEngine, preset: str, names: list[str]) -> None:
    app = at("whatif")
    app.segmented_control(key="whatif_preset").set_value(preset).run()
    assert not app.exception
    app.button(key="fork").click().run()
    assert [setting["name"] for setting in spec_of(forked)["settings"]] == names


def test_a_real_fleet_has_no_future_of_its_own(engine: StandInEngine) -> None:
    engine.tick(instances=[instance("s", "H100", 700.0, simulated=False)], gateway_url="http://127.0.0.1:8080")
    app = at("whatif")
    assert not app.exception
    assert not [control for control in app.segmented_control if control.key == "arrivals"]
    app.button(key="fork").click().run()
    assert spec_of(engine)["arrivals"] == "resampled"


def test_a_fork_that_is_done_is_shown_with_its_best_picked(forked: StandInEngine) -> None:
    app = at("whatif")
    assert not app.exception
    (picture,) = pictures(app)
    assert (picture["run"], picture["selected"], len(picture["settings"])) == (1, 7, 12)
    shown = texts(app)
    assert "simulated 4,210 s, next 5 min, 8 seeds, arrivals resampled" in shown
    assert "Best: α 0.60" in shown
    assert "✓ best" in shown
    assert '<a href="whatif?fork=1">#1</a>' in shown


def test_a_fork_that_runs_shows_what_is_done_so_far(engine: StandInEngine) -> None:
    forks.store_fork(engine.store, forks.swept()[:2], state="running", progress=0.17, best=0)
    engine.tick()
    app = at("whatif")
    assert not app.exception
    assert 'aria-valuenow="17"' in texts(app)
    assert len(pictures(app)[0]["settings"]) == 2
    assert not app.button(key="fork").disabled  # a long one can be ended by another
    assert app.button(key="fork").help == "Ends the fork that is under way"
    assert app.button(key="apply-fork").disabled


def test_a_fork_that_was_just_asked_for_is_waited_for(forked: StandInEngine) -> None:
    app = at("whatif")
    app.button(key="fork").click().run()
    forked.tick()
    app.run()
    assert app.button(key="fork").disabled
    forks.store_fork(forked.store)
    app.run()
    assert pictures(app)[0]["run"] == 2
    assert not app.button(key="fork").disabled


def test_a_failed_fork_tells_its_reason(engine: StandInEngine) -> None:
    forks.store_fork(engine.store, [], state="failed", reason="no checkpoint is that old")
    engine.tick()
    app = at("whatif")
    assert not app.exception
    assert "✕ The fork failed: no checkpoint is that old" in texts(app)
    assert not pictures(app)
    assert app.button(key="apply-fork").disabled


def test_a_setting_that_cannot_be_says_why(engine: StandInEngine) -> None:
    rows = [forks.setting(0, "as it is"), {"index": 1, "name": "remove l4-0", "problem": "it is the last one"}]
    forks.store_fork(engine.store, rows)
    engine.tick()
    app = at("whatif", setting="1")
    assert not app.exception
    assert "✕ it is the last one" in texts(app)
    assert "It cannot be: it is the last one." in texts(app)
    assert app.button(key="apply-fork").disabled


def test_a_setting_that_cannot_be_applied_says_why(engine: StandInEngine) -> None:
    rows = [forks.setting(0, "as it is"), forks.setting(1, "add", applicable=False, why_not="It adds hardware.")]
    forks.store_fork(engine.store, rows)
    engine.tick()
    app = at("whatif", setting="1")
    assert "It adds hardware." in texts(app)
    assert app.button(key="apply-fork").disabled


def test_a_link_opens_a_fork_and_a_setting(forked: StandInEngine) -> None:
    forks.store_fork(forked.store)
    app = at("whatif", fork="1", setting="4")
    assert not app.exception
    assert (pictures(app)[0]["run"], pictures(app)[0]["selected"]) == (1, 4)
    assert app.button(key="apply-fork").label == "Apply α 0.30"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [("99", "No fork 99 is in the store"), ("abc", "is not the number of a fork"), ("2", "No fork 2")],
)
def test_a_link_to_no_fork_is_a_sentence(forked: StandInEngine, asked: str, sentence: str) -> None:
    runs.save(forked.store, "sweep", {}, {})
    app = at("whatif", fork=asked)
    assert not app.exception
    assert sentence in texts(app)


def test_applying_shows_commands_and_promise_first_and_sends_the_guard(forked: StandInEngine) -> None:
    app = at("whatif")
    shown = texts(app)
    assert "<li>α 0.60</li>" in shown
    assert "P95 10.0 s, band 9.00 to 11.0 s; as it is 13.2 s" in shown
    app.slider(key="guard").set_value(8).run()
    app.button(key="apply-fork").click().run()
    assert pending(forked) == [("apply_whatif", {"run": 1, "setting": 7, "guard_minutes": 8})]


@pytest.mark.parametrize(
    ("guard", "sentence", "stoppable"),
    [
        (forks.guard(), "watching α 0.60 until simulated 4,510 s", True),
        (forks.guard("kept", 10.4), "α 0.60 kept its promise: P95 10.4 s", False),
        (forks.guard("rolled_back", 14.0), "α 0.60 was rolled back: P95 14.0 s", False),
    ],
)
def test_the_guard_is_followed_and_can_be_ended(
    engine: StandInEngine, guard: dict[str, Any], sentence: str, stoppable: bool
) -> None:
    forks.store_fork(engine.store, guard=guard)
    engine.tick()
    app = at("whatif")
    assert sentence in texts(app)
    assert ("end-guard" in keys(app)) == stoppable
    if stoppable:
        app.button(key="end-guard").click().run()
        assert pending(engine) == [("end_guard", {})]


def test_a_fork_that_is_watched_is_told_beside_another_in_view(engine: StandInEngine) -> None:
    forks.store_fork(engine.store, guard=forks.guard())
    forks.store_fork(engine.store)
    engine.tick()
    app = at("whatif")
    assert "Fork #1: … watching α 0.60" in texts(app)
    assert "end-guard" in keys(app)


def test_two_forks_are_put_side_by_side(forked: StandInEngine) -> None:
    forks.store_fork(forked.store)
    app = at("whatif")
    app.selectbox(key="whatif_other_2").select(1).run()
    assert not app.exception
    assert "best: α 0.60, α 0.60" in texts(app)
    assert "P95 #1" in texts(app)
    link = {key: app.query_params[key] for key in ("fork", "with")}
    forks.store_fork(forked.store)
    app = at("whatif", **{key: one if isinstance(one, str) else one[0] for key, one in link.items()})
    assert "P95 #1" in texts(app)
    app.selectbox(key="whatif_other_2").set_value(None).run()
    assert "P95 #1" not in texts(app)
    assert "with" not in app.query_params


def test_a_fork_is_taken_along_with_the_line_that_runs_it_again(forked: StandInEngine) -> None:
    app = at("whatif")
    assert ">headway whatif whatif-1.headway --json</code>" in texts(app)
    assert not app.code  # its code block brings 1.5 MB of scripts along
    (export,) = app.get("download_button")
    assert export.proto.label == "headway whatif file"


def test_shadow_policies_are_chosen_and_stand_beside_the_one_in_force(forked: StandInEngine) -> None:
    app = at("whatif")
    app.multiselect(key="shadows-").set_value(["edf"]).run()
    app.button(key="shadow").click().run()
    assert pending(forked) == [("shadows", {"policies": ["edf"]})]
    row = {"policy": "edf", "alpha": None, "p95_s": 14.3456, "slo_attainment": 0.9454, "slo_debt_s": 2.5}
    forked.tick(shadows=[row])
    app.run()
    assert not app.exception
    assert "+2 s" in texts(app)
    assert "Same arrivals, other policy" in texts(app)
    assert app.multiselect(key="shadows-edf").value == ["edf"]


@pytest.mark.parametrize(
    ("kind", "cost"), [("kill", "compute 41,000 tokens again"), ("drain", "That takes about 42 s")]
)
def test_a_kill_and_a_drain_are_confirmed_with_what_they_would_cost(
    engine: StandInEngine, kind: str, cost: str
) -> None:
    forecast = {"running": 12, "waiting": 2, "conversations": 3, "kv_tokens": 81_000, "recompute_tokens": 41_000}
    forecast |= {"deadlines_at_risk": 1, "drain_s": 42.0}
    engine.detail = {"tuning": details.tuning(), "forecasts": {"h100-0": forecast}}
    engine.tick()
    app = at("fleet")
    app.button(key=kind).click().run()
    assert cost in " ".join(m.value for m in app.markdown)
    assert pending(engine) == []
    app.button(key="confirm").click().run()
    assert pending(engine) == [(kind, {"instance": "h100-0"})]


def test_without_a_forecast_a_kill_is_confirmed_as_before(engine: StandInEngine) -> None:
    engine.tick()
    app = at("fleet")
    app.button(key="kill").click().run()
    assert "Kill h100-0: 12 calls running" in " ".join(m.value for m in app.markdown)
