"""Building a world: settings that contradict each other, capacities, derived deadlines."""

import math

import pytest

from control.errors import SettingError
from control.model.fleet import Fleet
from control.policy.cost import exec_s
from control.twin.pack import build_world
from tests.support.worlds import CallSpec, Flow, fleet, instance, lone_calls, workload

ONE = lone_calls([0.0], [CallSpec(10, 5)])


@pytest.mark.parametrize("alpha", [-0.1, 1.5, math.nan])
def test_alpha_out_of_bounds_is_refused(alpha: float) -> None:
    with pytest.raises(SettingError, match=r"alpha = .*: expected a number from 0"):
        build_world(ONE, fleet(instance()), "hexgen", alpha)


def test_more_seats_than_tokens_an_iteration_are_refused() -> None:
    crowded: Fleet = fleet(instance(max_num_seqs=65))
    with pytest.raises(SettingError, match="i0: max_num_seqs = 65: expected at most max_num_batched_tokens = 64"):
        build_world(ONE, crowded, "hexgen")


def test_capacity_is_whole_blocks_and_bounds_the_context() -> None:
    world = build_world(ONE, fleet(instance(kv_tokens=1000, watermark=0.05)), "hexgen")
    [made] = world.instances
    assert (made["blocks"], made["free"], made["watermark"], made["max_model_len"]) == (62, 62, 3, 992)


def test_instances_of_one_kind_share_a_profile() -> None:
    world = build_world(ONE, fleet(instance(), instance("L4"), instance()), "hexgen")
    assert world.instances["profile"].tolist() == [0, 1, 0]
    assert len(world.costs.profiles) == 2


def test_declared_deadline_is_kept() -> None:
    world = build_world(workload([Flow(0.0, [CallSpec(10, 5)], slo_s=7.0)]), fleet(instance()), "hexgen")
    assert world.workflows["slo_s"][0] == 7.0


def test_deadline_of_a_conversation_is_five_times_its_time_alone_on_the_fastest() -> None:
    """Two turns, the second behind a history of which two blocks stand in the cache, 3 s of thought between them."""
    turns = [CallSpec(40, 5, stream=0, tool_s=3.0), CallSpec(60, 7, group=1, stream=0, history_tokens=44)]
    world = build_world(workload([Flow(0.0, turns)]), fleet(instance("L4"), instance("H100")), "hexgen")
    fast = world.instances[1]
    alone_s = exec_s(world.costs, fast, 40, 0, 5.0) + 3.0 + exec_s(world.costs, fast, 60, 32, 7.0)
    assert world.workflows["slo_s"][0] == pytest.approx(5.0 * alone_s)


def test_fastest_instance_that_does_not_suit_does_not_count() -> None:
    both = fleet(instance("L4"), instance("H100", max_model_len=20))
    world = build_world(lone_calls([0.0], [CallSpec(40, 5)]), both, "hexgen")
    assert world.workflows["slo_s"][0] == pytest.approx(5.0 * exec_s(world.costs, world.instances[0], 40, 0, 5.0))


def test_parallel_calls_count_once_by_the_longest() -> None:
    group = [CallSpec(40, 5), CallSpec(40, 50)]
    world = build_world(workload([Flow(0.0, group)]), fleet(instance()), "hexgen")
    assert world.workflows["slo_s"][0] == pytest.approx(5.0 * exec_s(world.costs, world.instances[0], 40, 0, 50.0))


def test_deadline_of_a_declared_template_is_its_fleet_mean_time() -> None:
    steps = ("generate_candidate", "evaluate")
    flows = [Flow(0.0, [CallSpec(10, 5)])]
    world = build_world(workload(flows, ("text2sql",), steps), fleet(instance("L4"), instance("H100")), "hexgen")
    assert world.workflows["slo_s"][0] == pytest.approx(world.steps["mean_exec_s"].sum())
