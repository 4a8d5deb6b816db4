"""Costs: closed forms against loops, estimates against the twin itself."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from control.policy.cost import (
    chunk_area,
    decode_alone_s,
    decode_run_ms,
    exec_s,
    max_series_ms,
    mean_decode_s,
    mean_prefill_s,
    mixed_ms,
    prefill_alone_s,
    series_ms,
)
from control.twin.kernel import advance
from control.twin.pack import build_world
from tests.support import tables
from tests.support.worlds import CallSpec, fleet, instance, lone_calls

MS = st.floats(0.0, 100.0)
SLOPE = st.floats(0.0, 1.0)
N = st.integers(1, 400)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(a=MS, s=SLOPE, b=MS, r=SLOPE, n=N)
@example(a=5.0, s=0.0, b=0.0, r=1.0, n=6)  # the lines meet exactly at the last term
@example(a=5.0, s=0.0, b=0.0, r=1.0, n=7)
@example(a=3.0, s=0.5, b=3.0, r=0.25, n=4)  # equal starts
@example(a=3.0, s=0.25, b=3.0, r=0.5, n=4)
@example(a=2.0, s=0.1, b=2.0, r=0.1, n=3)  # one line twice
@example(a=1e-12, s=0.0, b=0.0, r=1.0, n=2)
def test_sum_of_the_larger_line_is_that_of_a_loop(a: float, s: float, b: float, r: float, n: int) -> None:
    looped = sum(max(a + s * j, b + r * j) for j in range(n))
    assert max_series_ms(a, s, b, r, n) == pytest.approx(looped, rel=1e-12, abs=1e-12)
    assert max_series_ms(b, r, a, s, n) == pytest.approx(looped, rel=1e-12, abs=1e-12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(first=MS, slope=SLOPE, n=st.integers(0, 400))
def test_sum_of_a_line_is_that_of_a_loop(first: float, slope: float, n: int) -> None:
    assert series_ms(first, slope, n) == pytest.approx(sum(first + slope * j for j in range(n)), rel=1e-12)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(b=st.integers(1, 64), k=st.integers(0, 10_000), n=N, knee=SLOPE, low=SLOPE)
def test_decode_run_is_the_sum_of_its_iterations(b: int, k: int, n: int, knee: float, low: float) -> None:
    """One iteration costs host + max over lines of base + slope K; each sequence adds one token an iteration."""
    assume(knee > 0.0)
    cost = tables.costs({"kv_ms_0": low * 1e-3, "kv_ms_1": knee * 1e-3}, decode_ms=8.0, second_ms=2.0)
    one_by_one = sum(1.5 + max(8.0 + low * 1e-3 * (k + b * j), 2.0 + knee * 1e-3 * (k + b * j)) for j in range(n))
    assert decode_run_ms(cost, 0, 1.5, b, k, n) == pytest.approx(one_by_one, rel=1e-12)


def test_plain_mixed_iteration_adds_every_term() -> None:
    profile = {"mix_kv_ms": 1e-3, "mix_area_ms": 1e-6, "mix_seq_ms": 0.1, "mix_ctx_ms": 1e-4}
    cost = tables.costs(profile, mix_ms=7.0)
    ms = mixed_ms(cost, 0, 1.0, 3, 500, 100, 200.0, chunk_area(200.0, 100.0))
    assert ms == pytest.approx(1.0 + 7.0 + 0.5 + 0.025 + 0.3 + 0.02)


@pytest.mark.parametrize(
    ("b", "k", "expected"),
    [(0, 0, 1.0 + 20.0 + 1.5 + 0.005), (4, 1000, 1.0 + (9.0 + 2.0) + 1.5 + 0.005)],
    ids=["nothing decodes: its own base", "sequences decode: their step is the base"],
)
def test_additive_mixed_iteration(b: int, k: int, expected: float) -> None:
    profile = {"kv_ms_0": 2e-3, "additive": 1, "mix_base_ms": 20.0, "mix_token_ms": 0.015, "mix_area_ms": 1e-6}
    cost = tables.costs(profile, decode_ms=9.0)
    assert mixed_ms(cost, 0, 1.0, b, k, 100, 0.0, chunk_area(0.0, 100.0)) == pytest.approx(expected)


def test_prefill_alone_goes_in_chunks_behind_what_is_cached() -> None:
    cost = tables.costs({"mix_ctx_ms": 1e-3}, mix_ms=10.0)
    [small] = tables.instances({"max_num_batched_tokens": 100, "host_ms": 2.0})
    three_chunks_ms = 3 * (2.0 + 10.0) + 1e-3 * (50 + 150 + 250)
    assert prefill_alone_s(cost, small, 201, 50) == pytest.approx(three_chunks_ms * 1e-3)
    assert prefill_alone_s(cost, small, 0, 50) == 0.0


@pytest.mark.parametrize("steps", [0.0, -0.5])
def test_call_of_one_token_decodes_for_no_time(steps: float) -> None:
    cost = tables.costs({}, decode_ms=9.0)
    assert decode_alone_s(cost, tables.instances({})[0], 100.0, steps) == 0.0


def test_fleet_mean_weighs_every_instance_alike() -> None:
    cost = tables.costs({}, {}, decode_ms=10.0, mix_ms=20.0)
    three = tables.instances({"host_ms": 0.0}, {"host_ms": 0.0, "profile": 1}, {"host_ms": 3.0})
    assert mean_prefill_s(cost, three, 100) == pytest.approx((0.020 + 0.020 + 0.023) / 3)
    assert mean_decode_s(cost, three, 100, 5.0) == pytest.approx((0.040 + 0.040 + 0.052) / 3)


@pytest.mark.parametrize("gpu", ["A100", "H100", "L4"])
@pytest.mark.parametrize(("tokens", "outputs"), [(1, 1), (50, 1), (64, 30), (65, 7), (700, 250)])
@pytest.mark.parametrize("exact", [False, True])
def test_estimate_is_the_time_of_a_call_alone(gpu: str, tokens: int, outputs: int, exact: bool) -> None:
    """t_comp at the true length equals what the twin takes, where decoding has one cost line."""
    world = build_world(lone_calls([0.0], [CallSpec(tokens, outputs)]), fleet(instance(gpu)), "hexgen", exact=exact)
    estimate_s = exec_s(world.costs, world.instances[0], tokens, 0, float(outputs))
    advance(world, np.inf)
    [call] = world.calls
    assert call["finished_s"] - call["started_s"] == pytest.approx(estimate_s, rel=0.0, abs=1e-9)
