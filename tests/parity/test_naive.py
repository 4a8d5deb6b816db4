"""The compiled twin against the slow one, bit for bit, on random scenes and on the cases they once shrank to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.twin.kernel import advance, settle_energy
from control.twin.world import World
from tests.naive.twin import NaiveTwin
from tests.support.laws import check_world
from tests.support.parity import differences
from tests.support.scenes import ALL_POLICIES, Scene, examples, scenes
from tests.support.worlds import CallSpec, Flow, fleet, instance, lone_calls, workload

MODES = pytest.mark.parametrize("exact", [False, True], ids=["fast-forward", "per-iteration"])


def check_parity(world: World) -> World:
    """Run `world` and the slow twin of it to the end: no value may differ, and every law holds."""
    naive = NaiveTwin(world)
    advance(world, np.inf)
    settle_energy(world)
    naive.run()
    assert differences(naive, world) == []
    check_world(world, ended=True)
    return world


@MODES
@pytest.mark.parametrize("policy", ALL_POLICIES)
@examples(30)
@given(data=st.data())
def test_random_scene_runs_alike(exact: bool, policy: str, data: st.DataObject) -> None:
    check_parity(data.draw(scenes(policies=(policy,))).world(exact))


@MODES
def test_admission_leaves_decoding_calls_their_next_block(exact: bool) -> None:
    """The first call is at the edge of a block when the second, which would take the last free one, waits."""
    work = lone_calls([0.0, 0.001], [CallSpec(8, 3), CallSpec(4, 2)])
    small = fleet(instance(block_size=4, kv_tokens=12, max_model_len=12))
    world = check_parity(Scene(work, small, "rr-fcfs", 0.5, 1.0, -1).world(exact))
    assert world.instances["preemptions"].sum() == 0
    assert world.calls["started_s"][1] >= world.calls["finished_s"][0]


@MODES
def test_stream_loses_the_shared_prefix_it_builds_on(exact: bool) -> None:
    """A conversation comes back after others have evicted the prompt in front of its context."""
    turn = CallSpec(40, 4, shared_key=0, shared_tokens=32, stream=0)
    again = CallSpec(60, 4, group=1, shared_key=0, shared_tokens=32, stream=0, history_tokens=40)
    crowd = [Flow(1.0 + 0.001 * k, [CallSpec(90, 6)]) for k in range(3)]
    turn = CallSpec(**{**vars(turn), "tool_s": 2.0})
    small = fleet(instance(kv_tokens=176))
    check_parity(Scene(workload([Flow(0.0, [turn, again]), *crowd]), small, "rr-fcfs", 0.5, 1.0, -1).world(exact))


@MODES
@pytest.mark.parametrize("knee", [1.0, 300.0, 1000.0])
def test_decode_run_crosses_the_knee(exact: bool, knee: float) -> None:
    """A long run of decoding starts on one cost line and ends on the other."""
    work = lone_calls([0.0, 0.0, 0.5], [CallSpec(20, 200), CallSpec(30, 150), CallSpec(10, 90)])
    small = fleet(instance("A40", "Qwen3-0.6B"))
    check_parity(Scene(work, small, "least-loaded", 0.5, knee, -1).world(exact))
