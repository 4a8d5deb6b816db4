"""Fast-forward against one event per iteration: the same decisions, times within 1e-9 s."""

import numpy as np
import pytest
from hypothesis import given

from control.model.workload import Workload
from control.twin.kernel import advance
from control.twin.simulate import simulate
from control.twin.world import World
from tests.support.laws import check_world
from tests.support.scenes import Scene, examples, scenes
from tests.support.worlds import CallSpec, fleet, instance, lone_calls, single_calls

DECISIONS = ("state", "instance", "runner_up", "preemptions", "cached_tokens", "emitted")
TIMES = ("ready_s", "placed_s", "started_s", "first_token_s", "finished_s", "budget_s")


def check_modes(fast: World, exact: World) -> None:
    """Both runs decided alike, at the same times."""
    for name in DECISIONS:
        assert np.array_equal(fast.calls[name], exact.calls[name]), name
    for name in TIMES:
        assert np.allclose(fast.calls[name], exact.calls[name], rtol=0.0, atol=1e-9), name
    for name in ("preemptions", "iterations", "kv_peak", "prefill_tokens", "decode_tokens"):
        assert np.array_equal(fast.instances[name], exact.instances[name]), name
    assert np.allclose(fast.calls["energy_j"], exact.calls["energy_j"], rtol=1e-9, atol=1e-6)
    assert fast.clock[0]["events"] <= exact.clock[0]["events"]


def crowded() -> Workload:
    """10,000 requests at 10 a second, too many for the memory at times."""
    rng = np.random.default_rng(0)
    arrivals_s = np.cumsum(rng.exponential(0.1, 10_000))
    inputs, outputs = (np.maximum(1, rng.exponential(mean, 10_000).astype(int)) for mean in (1450, 199))
    return single_calls(arrivals_s, inputs, outputs, seed=1)


@pytest.mark.parametrize("policy", ["least-loaded", "hexgen", "rr-pq", "p2c"])
def test_ten_thousand_requests_with_preemptions(policy: str) -> None:
    gpus = ("A100", "A100", "L40S", "H100")
    tight = fleet(*(instance(gpu, kv_tokens=12_000, max_num_seqs=256, max_num_batched_tokens=2048) for gpu in gpus))
    fast, exact = (simulate(crowded(), tight, policy, 0.3, exact=mode) for mode in (False, True))
    assert fast.instances["preemptions"].sum() > 10
    assert fast.clock[0]["events"] < 0.2 * exact.clock[0]["events"]
    check_modes(fast, exact)
    check_world(fast, ended=True)


@examples(150)
@given(scene=scenes(grid=False))
def test_random_scene_is_decided_alike(scene: Scene) -> None:
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
