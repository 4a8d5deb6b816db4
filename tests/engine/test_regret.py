"""What the runner-up would have cost: the past replayed to the bit, and why it sometimes cannot be."""

from dataclasses import replace
from typing import Any

import pytest

from control.config import EngineSettings
from control.engine import checkpoint
from control.engine.loop import Loop
from control.engine.source import Source
from control.engine.state import start
from control.model.fleet import Fleet
from control.policy.codes import POLICIES
from control.workload.scenarios import scenario
from storage import commands, readers, runs
from storage.open import Store

MIX = replace(scenario("demo-mixed"), until_s=900.0)


def at_the_start(store: Store, fleet: Fleet, policy: str = "hexgen") -> Loop:
    """The demo about to begin."""
    live = start(fleet, Source("demo-mixed", 3, scenario=MIX), policy, 0.3, 1.0)
    return Loop(live, store, EngineSettings(), "0", lambda: False)


def live_on(loop: Loop, until_s: float) -> None:
    """Go on to `until_s`; a replay under way ends within the tick."""
    while loop.live.now_s < until_s:
        loop.tick(10.0)
        loop.regrets.wait()
        loop.follow_up()
        loop.record()


def asked(loop: Loop, decision: int) -> dict[str, Any]:
    """The run that an order for the regret of a placement comes to."""
    commands.submit(loop.store, "regret", {"decision": decision}, "ann")
    live_on(loop, loop.live.now_s + 20.0)
    found = runs.recent(loop.store, 20, kind="regret", with_result=True)
    return next(run for run in found if run["params"]["decision"] == decision)


def ended_placements(store: Store, after_s: float, before_s: float) -> list[dict[str, Any]]:
    """Placements with a runner-up of workflows that have ended, newest first."""
    rows = readers.decisions(store, 5000)
    return [
        row
        for row in rows
        if after_s < row["sim_s"] < before_s and row["runner_up"] and readers.workflow(store, row["workflow"])
    ]


@pytest.fixture
def loop(store: Store, demo_fleet: Fleet) -> Loop:
    """The demo, four minutes in."""
    made = at_the_start(store, demo_fleet)
    live_on(made, 240.0)
    return made


def test_the_past_is_replayed_to_the_bit_and_the_runner_up_took_the_call(loop: Loop) -> None:
    found = ended_placements(loop.store, 125.0, 200.0)
    differences = []
    for row in (found[0], found[len(found) // 2], found[-1]):
        run = asked(loop, row["id"])
        result, params = run["result"], run["params"]
        workflow = readers.workflow(loop.store, row["workflow"])
        assert workflow is not None
        assert result["problem"] is None
        assert result["replayed_s"] == pytest.approx(workflow["latency_s"], abs=1e-6)
        assert result["is_exact"]
        assert (params["instance"], params["runner_up"]) == (row["instance"], row["runner_up"])
        assert result["difference_s"] == pytest.approx(result["other_s"] - result["replayed_s"])
        assert result["state_sim_s"] < row["sim_s"] < result["until_sim_s"]
        moved = {p["instance"] for p in result["per_instance"] if p["busy_s"] != p["other_busy_s"]}
        assert {row["instance"], row["runner_up"]} <= moved
        differences.append(result["difference_s"])
    assert any(difference != 0.0 for difference in differences)


@pytest.mark.parametrize("policy", ["conserve", pytest.param("session-affinity", marks=pytest.mark.slow)])
def test_conversations_are_replayed_to_the_bit(store: Store, demo_fleet: Fleet, policy: str) -> None:
    assert policy in POLICIES
    loop = at_the_start(store, demo_fleet, policy)
    live_on(loop, 220.0)
    run = asked(loop, ended_placements(store, 125.0, 200.0)[0]["id"])
    assert run["result"]["problem"] is None
    assert run["result"]["is_exact"]


@pytest.mark.slow
def test_a_change_in_between_is_not_replayed_and_shows(loop: Loop) -> None:
    live_on(loop, 270.0)  # a state was kept just before
    commands.submit(loop.store, "alpha", {"alpha": 1.0}, "ann")
    live_on(loop, 360.0)
    runs_of = [asked(loop, row["id"]) for row in ended_placements(loop.store, 285.0, 320.0)[:3]]
    assert any(not run["result"]["is_exact"] for run in runs_of)


def test_what_cannot_be_told_is_said(loop: Loop) -> None:
    store, now_s = loop.store, loop.live.now_s
    on_its_way = next(row for row in readers.decisions(store, 500) if readers.workflow(store, row["workflow"]) is None)
    assert "not ended yet" in asked(loop, on_its_way["id"])["result"]["problem"]
    assert "no placement 999999 is in the store" in asked(loop, 999_999)["result"]["problem"]
    loop.history.states.clear()
    loop.history.keep_state(loop.live)
    old = ended_placements(store, 10.0, now_s)[-1]
    problem = asked(loop, old["id"])["result"]["problem"]
    assert problem.startswith("no state of the fleet is kept from before it; the oldest is ")


@pytest.mark.slow
def test_too_many_at_once_are_refused(loop: Loop) -> None:
    numbers = [commands.submit(loop.store, "regret", {"decision": k}, "ann") for k in range(10)]
    loop.tick(0.1)
    loop.record()
    states = [(commands.get(loop.store, number) or {})["state"] for number in numbers]
    assert states == ["applied"] * 8 + ["refused"] * 2


def test_a_replay_changes_nothing_of_the_live_fleet(loop: Loop) -> None:
    row = ended_placements(loop.store, 125.0, 200.0)[0]
    before = checkpoint.save(loop.live)
    loop.live.regrets.append(row["id"])
    loop.follow_up()
    loop.regrets.wait()
    loop.follow_up()
    assert checkpoint.save(loop.live) == before
    assert runs.recent(loop.store, 1, kind="regret")[0]["params"]["decision"] == row["id"]


@pytest.mark.slow
def test_an_engine_that_ends_breaks_a_replay_off(loop: Loop) -> None:
    row = ended_placements(loop.store, 125.0, 200.0)[0]
    loop.regrets.stopping = True
    loop.live.regrets.append(row["id"])
    loop.follow_up()
    loop.regrets.wait()
    loop.regrets.close()
    assert loop.regrets.job is not None
    assert loop.regrets.job.future.exception() is not None
