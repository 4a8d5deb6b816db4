"""Scenarios as they are told: what is current, what has happened, and what may be started."""

import pytest

from control.present import scenarios
from control.present.wording import Order, asked, given, inverse, order, starting
from control.workload.scenarios import scenario
from control.workload.scenarios import scenarios as known
from tests.support.pages import PAGES


@pytest.mark.parametrize("name", [one.name for one in known()])
def test_a_story_has_three_steps_in_order_that_open_pages_there_are(name: str) -> None:
    steps = scenario(name).story
    times = [step.from_s for step in steps]
    assert len(steps) == 3
    assert times == sorted(set(times))
    assert times[0] == 0.0
    assert times[-1] < scenario(name).length_s
    assert {step.page for step in steps} <= set(scenarios.PAGES)


def test_titles_of_pages_are_those_of_the_navigation() -> None:
    navigation = (PAGES / "_main.py").read_text()
    for name, title in scenarios.PAGES.items():
        assert (PAGES / f"{name}.py").is_file()
        assert f'("{name}", "{title}")' in navigation


def test_the_current_step_follows_simulated_time() -> None:
    mix = scenario("burst")
    states = {t: [told.state for told in scenarios.story(mix, t)] for t in (0.0, 239.9, 240.0, 5000.0)}
    assert states == {
        0.0: ["current", "next", "next"],
        239.9: ["current", "next", "next"],
        240.0: ["past", "current", "next"],
        5000.0: ["past", "past", "current"],
    }
    assert scenarios.strip(scenarios.story(mix, 250.0)).startswith("Story 2 of 3: The burst. For a minute three times")


def test_acts_are_done_or_to_come_with_their_time() -> None:
    shown = scenarios.happenings(scenario("power-cap"), 200.0)
    assert [[cell.text for cell in row] for row in shown.rows] == [
        ["180 s", "the decoders are capped at 150 W", "done"],
        ["360 s", "the prefiller is capped at 200 W", "in 160 s"],
    ]


def test_progress_in_words() -> None:
    mix = scenario("burst")
    assert scenarios.progress(mix, 123.4) == "123 s of 600 s simulated."
    assert scenarios.progress(mix, 601.0) == "Told at 600 s; the load goes on."


def test_the_running_one_is_marked_and_real_servers_run_none() -> None:
    now = scenarios.running({"scenario": "burst"})
    assert [card.name for card in scenarios.cards(now) if card.is_running] == ["burst"]
    assert scenarios.why_not({"scenario": "burst"}) == ""
    assert "replays a trace" in scenarios.why_not({"scenario": "t.csv"})
    assert "real requests" in scenarios.why_not({"scenario": "gateway", "gateway_url": "http://127.0.0.1:8080"})
    assert scenarios.running({"scenario": "burst", "gateway_url": "http://127.0.0.1:8080"}) is None


def test_a_start_in_words() -> None:
    assert "1 active workflow with it" in starting("burst", 3, 1)
    assert "41 active workflows" in starting("burst", 3, 41)
    row = {"kind": "scenario", "payload": {"scenario": "burst", "seed": 3}, "expected": None, "state": "applied"}
    assert asked(row) == "scenario burst, seed 3"
    assert inverse(row, "demo-mixed") is None


def test_slowness_is_taken_back_with_the_factor_of_before() -> None:
    payload = {"instance": "h100-0", "factor": 4.0}
    row = {"kind": "slow", "payload": payload, "expected": None, "state": "applied"}
    before = {"instance": "h100-0", "factor": 1.0}
    undo = inverse(row, {"slow": before})
    assert asked(row) == "h100-0 ×4 as long"
    assert undo == Order("slow", before, 4.0)
    assert order(undo.kind, given(undo), undo.expected) == undo
    assert inverse(row) is None
