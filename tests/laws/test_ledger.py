"""Every second of every workflow is on its ledger, whatever fails; and nobody overtakes a call that has aged."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.metrics.ledger import CAUSES, debts_s, spent_s
from control.policy.tables import Table
from control.twin.kernel import advance
from control.twin.pack import build_world
from tests.support.failures import Order, disturbed, orders
from tests.support.scenes import Scene, examples, scenes
from tests.support.worlds import CallSpec, Flow, fleet, instance, with_constant_steps, workload


@examples(120)
@given(scene=scenes(), exact=st.booleans(), happens=st.one_of(st.just([]), orders()))
def test_causes_sum_to_elapsed_minus_plan(scene: Scene, exact: bool, happens: list[Order]) -> None:
    check_causes(scene, exact, happens)


@pytest.mark.slow
@examples(1000)
@given(scene=scenes(), exact=st.booleans(), happens=st.one_of(st.just([]), orders()))
def test_causes_sum_to_elapsed_minus_plan_in_a_thousand_worlds(scene: Scene, exact: bool, happens: list[Order]) -> None:
    check_causes(scene, exact, happens)


def check_causes(scene: Scene, exact: bool, happens: list[Order]) -> None:
    """All workflows end; the laws sum each one's causes, and each call's phases, to 1e-6 s."""
    world = disturbed(scene, exact, happens)
    assert np.isfinite(debts_s(world.workflows, world.calls)).all()
    assert happens or not world.calls["failure_s"].any()
    assert world.calls["preemptions"].any() or not world.calls["preempted_s"].any()


def test_ledger_of_a_group_a_tool_and_a_wait_by_hand() -> None:
    """One seat, 0.1 s an iteration: a stranger holds it for 0.5 s, then come two calls in turn, and a tool of 2 s.

    The second call of the first group is the one waited for: 0.5 s behind the stranger, 0.3 s behind its sibling.
    """
    stranger = Flow(0.0, [CallSpec(10, 5)], slo_s=9.0, tenant=1)
    late = CallSpec(10, 4, tool_s=2.0)
    mine = Flow(0.0, [CallSpec(10, 3), late, CallSpec(10, 2, group=1)], slo_s=9.0)
    world = build_world(workload([stranger, mine], tenants=("me", "you")), fleet(instance(max_num_seqs=1)), "rr-fcfs")
    world = with_constant_steps(world, 0.1)
    advance(world, math.inf)
    spent = dict(zip(CAUSES, spent_s(world.workflows, world.calls)[1], strict=True))
    expected = {"queue_own": 0.3, "queue_other": 0.5, "prefill": 0.1 + 0.1, "decode": 0.3 + 0.1, "tool": 2.0}
    assert spent == pytest.approx({cause: expected.get(cause, 0.0) for cause in CAUSES})
    assert world.calls["critical"].tolist() == [1, 0, 1, 1]


def overtaken(calls: Table, aging_s: float) -> list[tuple[int, int]]:
    """Pairs (b, a): `b` came later than `a` to the same queue and was admitted while `a` had waited too long."""
    found = []
    for a, one in enumerate(calls):
        rivals = (calls["instance"] == one["instance"]) & (calls["placed_s"] > one["placed_s"])
        rivals &= (calls["started_s"] >= 0) & (calls["started_s"] < one["started_s"])
        rivals &= calls["started_s"] - one["ready_s"] > aging_s
        found += [(int(b), a) for b in np.flatnonzero(rivals)]
    return found


@examples(200)
@given(
    scene=scenes(policies=("hexgen", "rr-pq")), exact=st.booleans(), aging_s=st.sampled_from([0.001, 0.02, 0.1, 0.5])
)
def test_nobody_overtakes_a_call_that_has_aged(scene: Scene, exact: bool, aging_s: float) -> None:
    world = replace(scene, aging_s=aging_s).world(exact)
    advance(world, np.inf)
    assert overtaken(world.calls, aging_s) == []


def test_without_aging_urgent_calls_overtake_for_ever() -> None:
    """The same scene twice: late workflows go first until the patient one has aged."""
    patient = Flow(0.001, [CallSpec(10, 5)], slo_s=1000.0)
    late = [Flow(0.4 * k, [CallSpec(10, 5)], slo_s=0.0) for k in range(20)]
    work, small = workload([patient, *late]), fleet(instance(max_num_seqs=1))
    started_s = []
    for aging_s in (math.inf, 2.0):
        world = with_constant_steps(build_world(work, small, "rr-pq", aging_s=aging_s), 0.1)
        advance(world, math.inf)
        started_s.append(float(world.calls["started_s"][world.workflows["slo_s"] == 1000.0][0]))
    assert started_s[0] == pytest.approx(10.0)
    assert started_s[1] == pytest.approx(2.5)
