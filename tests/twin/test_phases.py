"""Where the time of a call goes, on one instance whose every iteration takes 0.1 s."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from control.policy.codes import COMPLETED
from control.policy.tables import Table
from control.twin.acts import kill
from control.twin.kernel import advance
from control.twin.pack import build_world
from control.twin.world import World
from tests.support.laws import PHASES, check_world
from tests.support.worlds import CallSpec, Flow, fleet, instance, with_constant_steps, workload

TENANTS = ("ours", "theirs")


def world_of(*flows: Flow, seats: int = 1, instances: int = 1, **settings: Any) -> World:
    """A world of equal instances of so many seats."""
    specs = [replace(instance(max_num_seqs=seats), **settings) for _ in range(instances)]
    world = build_world(workload(flows, tenants=TENANTS), fleet(*specs), "rr-fcfs")
    return with_constant_steps(world, 0.1)


def ended(world: World) -> Table:
    """The calls at the end, the laws checked."""
    advance(world, math.inf)
    check_world(world, ended=True)
    return world.calls


def phases(call: Table) -> dict[str, float]:
    """The phases in which the call spent time."""
    return {name: float(call[name]) for name in PHASES if abs(call[name]) > 1e-9}


def test_call_alone_prefills_and_decodes() -> None:
    [call] = ended(world_of(Flow(0.0, [CallSpec(200, 6)])))
    assert phases(call) == pytest.approx({"prefill_s": 0.4, "decode_s": 0.5})


def test_wait_is_shared_by_whose_calls_run_meanwhile() -> None:
    """Three seats held for 0.9 s by two calls of theirs and one of ours: a third of the wait is on our account."""
    flows = [Flow(0.0, [CallSpec(10, 9)], tenant=tenant) for tenant in (0, 1, 1)]
    call = ended(world_of(*flows, Flow(0.3, [CallSpec(10, 2)]), seats=3))[3]
    assert phases(call) == pytest.approx({"queue_own_s": 0.2, "queue_other_s": 0.4, "prefill_s": 0.1, "decode_s": 0.1})


def test_call_that_comes_inside_an_iteration_waits_for_its_end() -> None:
    call = ended(world_of(Flow(0.0, [CallSpec(10, 9)], tenant=1), Flow(0.33, [CallSpec(10, 2)]), seats=2))[1]
    assert phases(call) == pytest.approx({"queue_other_s": 0.07, "prefill_s": 0.1, "decode_s": 0.1})


def test_lost_instance_makes_all_time_so_far_lost() -> None:
    """Its instance fails 0.5 s into the call, which starts anew on the other at once."""
    world = world_of(Flow(0.0, [CallSpec(10, 20)]), instances=2)
    advance(world, 0.5)
    kill(world, int(world.calls[0]["instance"]))
    [call] = ended(world)
    assert call["state"] == COMPLETED
    assert phases(call) == pytest.approx({"failure_s": 0.5, "prefill_s": 0.1, "decode_s": 1.9})


def test_preempted_call_recomputes_on_account_of_that() -> None:
    """Two calls outgrow six blocks of four tokens: the younger is sent away, waits, computes again, goes on."""
    world = world_of(*(Flow(0.0, [CallSpec(8, 8)]) for _ in range(2)), seats=2, block_size=4, kv_tokens=24)
    elder, younger = ended(world)
    assert (elder["preemptions"], younger["preemptions"]) == (0, 1)
    assert phases(elder) == pytest.approx({"prefill_s": 0.1, "decode_s": 0.7})
    assert phases(younger)["prefill_s"] == pytest.approx(0.1)
    assert phases(younger)["preempted_s"] > 0.1
    assert phases(younger)["decode_s"] < 0.7


def test_meters_run_while_the_instance_does() -> None:
    world = world_of(Flow(0.0, [CallSpec(10, 9)], tenant=1), Flow(2.0, [CallSpec(10, 4)]))
    ended(world)
    assert world.meters[0] == pytest.approx([0.4, 0.9])
    assert world.instances["busy_s"] == pytest.approx(np.array([1.3]))
