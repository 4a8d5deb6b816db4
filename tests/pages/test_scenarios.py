"""The page of scenarios: cards, the story of the running one, and the command that starts another."""

import pytest

from control.workload.scenarios import scenario_names
from storage import commands
from tests.support import details
from tests.support.pages import at, texts
from tests.support.snapshots import StandInEngine, instance


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("scenarios")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_every_scenario_has_a_card_and_the_running_one_is_marked(engine: StandInEngine) -> None:
    engine.tick(scenario="burst")
    app = at("scenarios")
    assert not app.exception
    labels = {name: app.button(key=f"start-{name}").label for name in scenario_names()}
    assert labels == {name: "Start again" if name == "burst" else "Start" for name in scenario_names()}
    assert "<small>running</small>" in texts(app)


def test_the_story_follows_the_engine_and_opens_pages(engine: StandInEngine) -> None:
    engine.tick(scenario="power-cap", sim_s=200.0)
    app = at("scenarios")
    assert "Decoders at half their power" in texts(app)
    assert "the decoders are capped at 150 W" in texts(app)
    assert "in 160 s" in texts(app)
    assert [app.button(key=f"open-{k}").label for k in (1, 2, 3)] == ["Open Power"] * 3


def test_a_start_is_asked_for_once_with_its_cost_and_written_as_a_command(engine: StandInEngine) -> None:
    engine.tick()
    app = at("scenarios")
    app.number_input(key="seed").set_value(7).run()
    app.button(key="start-slow-gpu").click().run()
    assert not app.exception
    assert any("33 active workflows" in mark.value for mark in app.markdown)
    assert commands.pending(engine.store) == []
    app.button(key="confirm-scenario").click().run()
    (row,) = commands.pending(engine.store)
    assert (row["kind"], row["payload"]) == ("scenario", {"scenario": "slow-gpu", "seed": 7})
    assert (row["expected"], row["author"]) == ("demo-mixed", "dashboard")
    assert "… pending (scenario slow-gpu, seed 7)" in texts(app)


def test_once_another_scenario_runs_its_story_is_told(engine: StandInEngine) -> None:
    engine.tick(scenario="burst")
    app = at("scenarios")
    assert "Bursts over a calm load" in texts(app)
    engine.tick(scenario="kv-squeeze")
    app.run()
    assert "The cache fills" in texts(app)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"gateway_url": "http://127.0.0.1:8080", "scenario": "gateway"}, "serves real requests"),
        ({"scenario": "trace.jsonl"}, "replays a trace"),
    ],
)
def test_real_servers_and_traces_cannot_be_replaced(engine: StandInEngine, changed: dict[str, str], says: str) -> None:
    engine.tick(**changed)
    app = at("scenarios")
    assert says in texts(app)
    assert app.button(key="start-burst").disabled


@pytest.mark.parametrize("page", ["fleet", "queues", "conversations", "kv", "power", "debt", "tuning", "servers"])
def test_a_page_in_view_survives_the_change_to_another_fleet(engine: StandInEngine, page: str) -> None:
    engine.tick()
    app = at(page)
    for box in app.selectbox:
        if box.key in ("instance_name", "cap_target"):
            box.select(box.options[-1])
    app.run()
    other = [instance(f"a40-{k}", "A40", 300.0) for k in (0, 1)]
    assert engine.detail is not None
    engine.detail["power"] = details.power([details.meter("a40-0"), details.meter("a40-1")])
    engine.tick(scenario="power-cap", fleet_name="conserve-a40", instances=other, policy="conserve")
    app.run()
    assert not app.exception


@pytest.mark.parametrize("page", ["fleet", "queues"])
def test_the_story_goes_along_on_other_pages_until_it_is_closed(engine: StandInEngine, page: str) -> None:
    engine.tick(scenario="power-cap", sim_s=200.0)
    app = at(page)
    assert "Story 2 of 3: Decoders at half their power." in texts(app)
    assert app.button(key="strip-open").label == "Open Power"
    app.button(key="strip-close").click().run()
    assert not app.exception
    assert "Story 2 of 3" not in texts(app)
    engine.tick(scenario="burst", sim_s=10.0)
    app.run()
    assert "Story 1 of 3: Calm." in texts(app)


@pytest.mark.parametrize(("page", "scenario", "sim_s"), [("power", "power-cap", 200.0), ("fleet", "burst", 10.0)])
def test_the_story_offers_no_way_to_the_page_in_view(
    engine: StandInEngine, page: str, scenario: str, sim_s: float
) -> None:
    engine.tick(scenario=scenario, sim_s=sim_s)
    app = at(page)
    assert "Story" in texts(app)
    assert "strip-open" not in {button.key for button in app.button}


def test_a_story_that_is_told_and_a_fleet_without_one_leave_no_line(engine: StandInEngine) -> None:
    for changed in ({"scenario": "burst", "sim_s": 601.0}, {"scenario": "t.csv"}):
        engine.tick(**changed)
        assert "Story" not in texts(at("power"))
