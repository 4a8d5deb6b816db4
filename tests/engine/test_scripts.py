"""What scenarios do by themselves: every act is obeyed at its time, once, and shows what the story says."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from control.config import EngineSettings
from control.engine import checkpoint
from control.engine.loop import Loop
from control.engine.source import Source
from control.engine.state import Live, start
from control.model.fleet import load_fleet
from control.present.changes import changes
from control.present.marks import MARKED, SCRIPTED
from control.workload.scenarios import scenario, scenario_names, scenarios
from storage import commands
from storage.open import Store
from tests.support.live import check_live

LENGTH_S = 600.0
SCRIPTED_NAMES = tuple(known.name for known in scenarios() if known.script)
Row = dict[str, Any]


def begun(name: str, seed: int = 0, **changed: Any) -> Live:
    """The live state of a scenario at time 0."""
    mix = replace(scenario(name), **changed)
    return start(load_fleet(mix.fleet), Source(name, seed, scenario=mix), mix.policy, 0.5, 1.0)


def loop_of(live: Live, store: Store) -> Loop:
    """An engine's loop around it."""
    return Loop(live, store, EngineSettings(), "test", lambda: False)


def lived(name: str, store: Store, until_s: float = LENGTH_S, **changed: Any) -> Loop:
    """A scenario lived through, with all that it told."""
    loop = loop_of(begun(name, **changed), store)
    loop.advance(until_s)
    loop.tuner.close()
    return loop


def ended(loop: Loop, from_s: float, to_s: float) -> list[Row]:
    """The workflows that ended in a stretch of simulated time."""
    return [row for row in loop.pending.workflows if from_s <= row["finished_sim_s"] < to_s]


def attained(rows: list[Row], tenant: str | None = None) -> float:
    """The share of them that met their SLO."""
    return float(np.mean([row["debt_s"] == 0.0 for row in rows if tenant in (None, row["tenant"])]))


def p95_s(rows: list[Row]) -> float:
    """The P95 latency of them."""
    return float(np.percentile([row["latency_s"] for row in rows], 95))


QUICK = ("burst", "instance-failure", "kv-squeeze")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in scenario_names()]
)
def test_ten_minutes_pass_without_refusals_and_every_act_is_done_in_time(store: Store, name: str) -> None:
    loop = lived(name, store)
    assert loop.live.rolling.refused == 0
    assert {row["state"] for row in loop.pending.workflows} <= {"completed"}
    assert len(loop.pending.workflows) >= 10  # step-load is quiet until then
    told = [(event["sim_s"], event["text"].startswith(SCRIPTED)) for event in loop.pending.events]
    assert told == [(act.at_s, True) for act in scenario(name).script]
    assert {event["kind"] for event in loop.pending.events} <= MARKED - {"act_refused"}
    check_live(loop.live.world)


@pytest.mark.parametrize("name", SCRIPTED_NAMES)
def test_acts_are_commands_in_order_of_time_that_leave_the_scenario_as_it_is(store: Store, name: str) -> None:
    times = [act.at_s for act in scenario(name).script]
    assert times == sorted(times)
    assert times[0] > 0.0
    for act in scenario(name).script:
        assert act.kind not in ("scenario", "step", "pause", "speed")
        assert commands.submit(store, act.kind, dict(act.payload), "test") > 0


@pytest.mark.slow
def test_the_ticks_do_not_move_an_act(store: Store) -> None:
    whole, bitwise = lived("instance-failure", store, 200.0), loop_of(begun("instance-failure"), store)
    while bitwise.live.now_s < 200.0:
        bitwise.advance(min(3.7, 200.0 - bitwise.live.now_s))
    assert [e["sim_s"] for e in bitwise.pending.events] == [e["sim_s"] for e in whole.pending.events] == [180.0, 185.0]
    receipts = {"candidates", "filtered"}  # how many of them are kept goes by the wall clock
    told = [[{k: row[k] for k in row.keys() - receipts} for row in loop.pending.decisions] for loop in (bitwise, whole)]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "cut_s", [180.0, 182.5, *(pytest.param(cut_s, marks=pytest.mark.slow) for cut_s in (179.9, 185.0, 300.0))]
)
def test_a_restart_in_the_middle_does_each_act_once(store: Store, cut_s: float) -> None:
    whole, first = lived("instance-failure", store, 320.0), loop_of(begun("instance-failure"), store)
    first.advance(cut_s)
    blob = checkpoint.save(first.live)
    second = loop_of(checkpoint.load(blob, first.live.given, first.live.source), store)
    second.advance(320.0 - cut_s)
    assert first.pending.events + second.pending.events == whole.pending.events
    assert first.pending.workflows + second.pending.workflows == whole.pending.workflows


def test_an_act_that_an_operator_forestalled_is_told_as_not_done(store: Store) -> None:
    loop = loop_of(begun("instance-failure"), store)
    loop.advance(100.0)
    loop.obey({"id": 1, "kind": "kill", "payload": {"instance": "h100-0"}, "expected": None})
    loop.advance(81.0)
    assert [event["kind"] for event in loop.pending.events] == ["kill", "act_refused"]
    assert "h100-0 is down" in loop.pending.events[-1]["text"]


def test_acts_stand_in_the_list_of_changes_under_the_scenarios_name(store: Store) -> None:
    loop = lived("slow-gpu", store, 130.0)
    rows = [event | {"id": k, "at": float(k), "command_id": None} for k, event in enumerate(loop.pending.events)]
    (change,) = changes([], rows, 9)
    assert change.author == "scenario"
    assert change.what == "an A100 runs at a quarter of its speed (a100-0 takes ×1 → ×4 as long)"


def test_a_failure_costs_attainment_until_the_gpus_are_back(store: Store) -> None:
    loop = lived("instance-failure", store)
    before, without, after = (attained(ended(loop, *span)) for span in ((60, 180), (200, 300), (390, 600)))
    assert without < before - 0.15
    assert after > without + 0.15
    assert p95_s(ended(loop, 200, 360)) > 1.2 * p95_s(ended(loop, 60, 180))


@pytest.mark.slow
def test_a_slow_gpu_holds_workflows_up_until_calls_avoid_it(store: Store) -> None:
    calm = p95_s(ended(lived("slow-gpu", store, script=()), 0, 600))
    slow = lived("slow-gpu", store, script=scenario("slow-gpu").script[:1])
    assert p95_s(ended(slow, 360, 600)) > 1.4 * calm
    assert attained(ended(lived("slow-gpu", store), 420, 600)) > attained(ended(slow, 420, 600)) + 0.2


@pytest.mark.slow
def test_wrong_predictions_cost_what_conserve_does_not_pay(store: Store) -> None:
    wrong, blind = lived("wrong-predictions", store), lived("wrong-predictions", store, policy="conserve")
    assert p95_s(ended(wrong, 0, 600)) > 1.3 * p95_s(ended(blind, 0, 600))


@pytest.mark.slow
def test_a_limit_on_idle_contexts_lets_held_conversations_in(store: Store) -> None:
    held = [
        int(lived("kv-squeeze", store, **changed).live.world.clock[0]["n_held"]) for changed in ({"script": ()}, {})
    ]
    assert held[0] > 10
    assert held[1] < held[0] / 4


def watts_and_yield(loop: Loop, seconds: float) -> tuple[float, float]:
    """Mean draw, W, and context tokens a joule over the next stretch."""
    world, context = loop.live.world, loop.live.rolling.context
    drawn_j = float(world.instances["energy_j"].sum())
    loop.advance(seconds)
    joules = float(loop.live.world.instances["energy_j"].sum()) - drawn_j
    return joules / seconds, (loop.live.rolling.context - context) / joules


def test_caps_lower_watts_and_raise_tokens_per_joule(store: Store) -> None:
    loop = loop_of(begun("power-cap"), store)
    loop.advance(60.0)
    free, capped = watts_and_yield(loop, 119.0), watts_and_yield(loop, 180.0)
    assert capped[0] < 0.8 * free[0]
    assert capped[1] > 1.1 * free[1]


@pytest.mark.slow
def test_laxity_helps_the_tenant_in_a_hurry_and_costs_the_other_nothing(store: Store) -> None:
    as_told, unchanged = (ended(lived("two-tenants", store, **c), 330, 600) for c in ({}, {"script": ()}))
    assert attained(as_told, "interactive") > attained(unchanged, "interactive") + 0.2
    assert attained(as_told, "reports") > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hexgen-paper", "conserve-paper"])
def test_the_papers_policy_beats_what_was_before_it(store: Store, name: str) -> None:
    at_s = scenario(name).script[0].at_s
    with_it, without = (ended(lived(name, store, 900.0, **c), at_s + 100, 900) for c in ({}, {"script": ()}))
    assert np.mean([row["latency_s"] for row in with_it]) < 0.8 * np.mean([row["latency_s"] for row in without])


@pytest.mark.slow
def test_session_affinity_saves_watts_beside_agents(store: Store) -> None:
    draw = {}
    for policy in ("hexgen", "session-affinity"):
        loop = loop_of(begun("text2sql-agents", policy=policy), store)
        loop.advance(120.0)
        draw[policy] = watts_and_yield(loop, 480.0)
    assert draw["session-affinity"][0] < 0.97 * draw["hexgen"][0]
    assert draw["session-affinity"][1] > draw["hexgen"][1]
