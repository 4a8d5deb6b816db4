"""Workflows: refusals, parallel groups, tools, budgets. Every iteration takes 0.1 s."""

import math

import numpy as np
import pytest

from control.policy.codes import (
    BROKEN,
    CANCELLED,
    COMPLETED,
    DONE,
    DOWN,
    NO_INSTANCE,
    REFUSED,
    TOO_LONG,
    WORKFLOW_ENDED,
)
from control.twin.kernel import advance
from control.twin.pack import build_world
from control.twin.world import World
from tests.support.laws import check_world
from tests.support.worlds import CallSpec, Flow, fleet, instance, with_constant_steps, workload

SHORT, LONG = CallSpec(10, 2), CallSpec(2000, 2)


def grouped(*calls: CallSpec, groups: tuple[int, ...] = ()) -> list[CallSpec]:
    """The calls in the given groups, one after the other by default."""
    numbers = groups or tuple(range(len(calls)))
    return [CallSpec(**{**vars(call), "group": group}) for call, group in zip(calls, numbers, strict=True)]


def run(*flows: Flow, down: bool = False) -> World:
    """The world of one instance at its end, the laws checked."""
    world = with_constant_steps(build_world(workload(flows), fleet(instance()), "rr-fcfs"), 0.1)
    world.instances["state"] = DOWN if down else world.instances["state"]
    advance(world, math.inf)
    check_world(world, ended=True)
    return world


def test_context_too_long_for_every_instance_is_refused_and_ends_the_workflow() -> None:
    world = run(Flow(1.0, grouped(SHORT, LONG, SHORT, SHORT)))
    assert world.calls["state"].tolist() == [COMPLETED, REFUSED, CANCELLED, CANCELLED]
    assert world.calls["cause"].tolist() == [0, TOO_LONG, WORKFLOW_ENDED, WORKFLOW_ENDED]
    assert (world.workflows[0]["state"], world.workflows[0]["cause"]) == (BROKEN, TOO_LONG)
    assert world.workflows[0]["finished_s"] == pytest.approx(1.2)


def test_workflow_that_goes_on_skips_the_refused_call() -> None:
    world = run(Flow(1.0, grouped(SHORT, LONG, SHORT), go_on=1))
    assert world.calls["state"].tolist() == [COMPLETED, REFUSED, COMPLETED]
    assert world.workflows[0]["state"] == DONE
    assert world.workflows[0]["finished_s"] == pytest.approx(1.4)


def test_call_that_suits_an_instance_which_is_down_is_refused_for_want_of_one() -> None:
    world = run(Flow(1.0, grouped(SHORT, SHORT)), down=True)
    assert world.calls["state"].tolist() == [REFUSED, CANCELLED]
    assert world.calls["cause"][0] == NO_INSTANCE
    assert world.workflows[0]["finished_s"] == 1.0


def test_workflow_of_refusals_alone_ends_broken_though_it_goes_on() -> None:
    world = run(Flow(1.0, grouped(LONG, LONG, LONG), go_on=1))
    assert (world.calls["state"] == REFUSED).all()
    assert world.workflows[0]["state"] == BROKEN
    assert world.workflows[0]["cause"] == TOO_LONG


def test_siblings_of_a_refused_call_are_served_before_the_workflow_ends() -> None:
    world = run(Flow(0.0, grouped(LONG, SHORT, SHORT, groups=(0, 0, 1))))
    assert world.calls["state"].tolist() == [REFUSED, COMPLETED, CANCELLED]
    assert world.workflows[0]["finished_s"] == pytest.approx(0.2)


def test_output_is_cut_at_the_context_limit() -> None:
    world = run(Flow(0.0, [CallSpec(1000, 100)]))
    assert world.calls[0]["emitted"] == 24


def test_next_group_waits_for_the_last_call_and_the_last_tool() -> None:
    """Calls end at 0.2 and 0.5 s; their tools return at 0.9 and 0.6 s."""
    one, two = CallSpec(10, 2, tool_s=0.7), CallSpec(10, 5, tool_s=0.1)
    world = run(Flow(0.0, grouped(one, two, SHORT, groups=(0, 0, 1))))
    assert world.calls["ready_s"] == pytest.approx([0.0, 0.0, 0.9])
    assert world.workflows[0]["finished_s"] == pytest.approx(1.1)


def test_tool_time_after_the_last_group_is_nobodys_latency() -> None:
    world = run(Flow(0.0, [CallSpec(10, 2, tool_s=9.0)]))
    assert world.workflows[0]["finished_s"] == pytest.approx(0.2)


def test_call_that_arrives_during_a_run_starts_at_the_next_boundary() -> None:
    world = run(Flow(0.0, [CallSpec(10, 50)]), Flow(1.23, [SHORT]))
    assert world.calls["started_s"][1] == pytest.approx(1.3)
    assert world.calls["finished_s"] == pytest.approx([5.0, 1.5])


def test_call_that_arrives_at_a_boundary_starts_there_and_then() -> None:
    """The seventh iteration ends at exactly the time of the arrival."""
    at_s = 7 * 100.0 * 1e-3
    world = run(Flow(0.0, [CallSpec(10, 50, stream=0)]), Flow(0.1 + at_s, [SHORT]))
    assert world.calls["started_s"][1] == 0.1 + at_s


def test_runs_that_end_now_are_seen_by_what_arrives_now() -> None:
    """The first call ends at 0.2 s, when another arrives: its instance is the least loaded again."""
    two = fleet(instance(), instance())
    flows = [Flow(0.0, [CallSpec(10, 2)]), Flow(0.0, [CallSpec(10, 9)]), Flow(0.2, [SHORT])]
    world = with_constant_steps(build_world(workload(flows), two, "least-loaded"), 0.1)
    advance(world, math.inf)
    assert world.calls["instance"].tolist() == [0, 1, 0]


def test_long_prompt_is_prefilled_in_chunks_beside_decoding() -> None:
    """200 tokens at 63 an iteration, one token of 64 being the decoding call's."""
    world = run(Flow(0.0, [CallSpec(10, 50)]), Flow(1.0, [CallSpec(200, 1)]))
    assert world.calls["first_token_s"][1] == pytest.approx(1.4)
    assert world.calls["finished_s"][0] == pytest.approx(5.0)


def test_ninth_call_waits_for_one_of_eight_seats() -> None:
    world = run(*(Flow(0.0, [CallSpec(5, 3 + k)]) for k in range(9)))
    assert world.calls["started_s"] == pytest.approx([0.0] * 8 + [0.3])


def test_parallel_calls_of_one_step_take_one_entry_off_the_template() -> None:
    """The candidates of a group are one stage: the budgets of all its calls are alike."""
    steps = ("generate_candidate", "evaluate")
    calls = grouped(SHORT, SHORT, CallSpec(10, 2, step=1), groups=(0, 0, 1))
    flows = [Flow(0.0, calls, slo_s=60.0)]
    world = build_world(workload(flows, ("text2sql",), steps), fleet(instance()), "hexgen")
    t_s = world.steps["mean_exec_s"].copy()
    advance(world, 0.0)
    assert world.remaining[0].tolist() == [0.0, 1.0]
    assert world.calls["budget_s"][:2] == pytest.approx([60.0 * t_s[0] / t_s.sum()] * 2)


def test_budget_of_a_late_stage_is_what_is_left() -> None:
    world = run(Flow(0.0, grouped(CallSpec(10, 30), SHORT), slo_s=2.0))
    assert world.calls["budget_s"][1] == pytest.approx(-1.0)


def test_decision_is_recorded_with_both_terms_and_the_runner_up() -> None:
    two = fleet(instance("H100"), instance("L4"))
    world = build_world(workload([Flow(0.0, [SHORT])] * 2), two, "hexgen", alpha=1.0)
    advance(world, 0.0)
    first, second = world.calls
    assert first["instance"] == second["instance"] == 0
    assert first["runner_up"] == 1
    assert first["score"] == -first["t_comp_s"] > first["runner_up_score"]
    assert (first["t_queue_s"], second["t_queue_s"]) == (0.0, first["t_comp_s"])


def test_empty_workload_has_no_events() -> None:
    world = run()
    assert world.clock[0]["events"] == 0
    assert np.array_equal(world.instances["energy_j"], [0.0])
