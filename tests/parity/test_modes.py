"""Fast-forward against one event per iteration: the same decisions, times within 1e-9 s."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.model.workload import Workload
from control.policy.codes import VTC
from control.twin.kernel import advance
from control.twin.simulate import simulate
from control.twin.world import World
from tests.support.laws import check_world
from tests.support.scenes import ALIKE, Scene, examples, scenes
from tests.support.worlds import CallSpec, fleet, instance, lone_calls, single_calls

DECISIONS = ("state", "instance", "runner_up", "preemptions", "cached_tokens", "emitted", "critical")
TIMES: tuple[str, ...] = ("ready_s", "placed_s", "started_s", "first_token_s", "finished_s", "budget_s")
TIMES += ("queue_own_s", "queue_other_s", "prefill_s", "decode_s", "preempted_s")


GPUS = ("A100", "A100", "L40S", "H100")
TIGHT = fleet(*(instance(gpu, kv_tokens=12_000, max_num_seqs=256, max_num_batched_tokens=2048) for gpu in GPUS))


def check_modes(fast: World, exact: World) -> None:
    """Both runs decided alike, at the same times."""
    for name in DECISIONS:
        assert np.array_equal(fast.calls[name], exact.calls[name]), name
    for name in TIMES:
        assert np.allclose(fast.calls[name], exact.calls[name], rtol=0.0, atol=1e-9), name
    for name in ("preemptions", "iterations", "kv_peak", "prefill_tokens", "decode_tokens"):
        assert np.array_equal(fast.instances[name], exact.instances[name]), name
    for name in ("tool_s", "attained_s", "plan_prefill_s", "plan_decode_s", "plan_tool_s"):
        assert np.allclose(fast.workflows[name], exact.workflows[name], rtol=0.0, atol=1e-9), name
    if fast.policy[0]["queue"] == VTC:  # other orders never read them, and charge a longer run at its end
        assert np.array_equal(fast.counters, exact.counters)
    assert np.allclose(fast.templates, exact.templates, rtol=0.0, atol=1e-12)
    assert np.allclose(fast.calls["energy_j"], exact.calls["energy_j"], rtol=1e-9, atol=1e-6)
    assert fast.clock[0]["events"] <= exact.clock[0]["events"]


def crowded(n: int) -> Workload:
    """`n` requests at 10 a second, too many for the memory at times."""
    rng = np.random.default_rng(0)
    arrivals_s = np.cumsum(rng.exponential(0.1, n))
    inputs, outputs = (np.maximum(1, rng.exponential(mean, n).astype(int)) for mean in (1450, 199))
    return single_calls(arrivals_s, inputs, outputs, seed=1)


@pytest.mark.parametrize("policy", ["least-loaded", "hexgen", "rr-pq", "p2c"])
def test_ten_thousand_requests_with_preemptions(policy: str) -> None:
    fast, exact = (simulate(crowded(10_000), TIGHT, policy, 0.3, exact=mode) for mode in (False, True))
    assert fast.instances["preemptions"].sum() > 10
    assert fast.clock[0]["events"] < 0.2 * exact.clock[0]["events"]
    check_modes(fast, exact)
    check_world(fast, ended=True)


@pytest.mark.parametrize("policy", ["vtc", "qlm", "sjf", "edf", "plas"])
def test_thousand_requests_in_every_other_order(policy: str) -> None:
    fast, exact = (simulate(crowded(1_000), TIGHT, policy, 0.3, exact=mode) for mode in (False, True))
    assert fast.instances["preemptions"].sum() > 0
    assert fast.clock[0]["events"] < exact.clock[0]["events"]
    check_modes(fast, exact)
    check_world(fast, ended=True)


@pytest.mark.parametrize("policy", ALIKE)
@examples(40)
@given(data=st.data())
def test_random_scene_is_decided_alike(policy: str, data: st.DataObject) -> None:
    scene = data.draw(scenes(grid=False, policies=(policy,)))
    fast, exact = scene.world(), scene.world(exact=True)
    advance(fast, np.inf)
    advance(exact, np.inf)
    check_modes(fast, exact)


def test_preempted_call_comes_back_by_the_prompt_that_another_uses() -> None:
    """Two calls hold the same prompt twice; the younger is preempted, and finds room by sharing the elder's copy."""
    call = CallSpec(20, 40, shared_key=0, shared_tokens=16)
    small = fleet(instance(block_size=4, kv_tokens=64))
    scene = Scene(lone_calls([0.0, 0.0], [call, call]), small, "rr-fcfs", 0.5, 1.0, -1)
    fast, exact = scene.world(), scene.world(exact=True)
    advance(fast, np.inf)
    advance(exact, np.inf)
    assert fast.calls["preemptions"].tolist()[0] == 0
    assert fast.calls["preemptions"].tolist()[1] > 0
    assert fast.calls["cached_tokens"][1] >= 16 * fast.calls["preemptions"][1]
    check_modes(fast, exact)
    check_world(fast, ended=True)
