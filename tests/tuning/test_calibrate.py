"""The fit behind `headway calibrate`: it finds the costs behind noisy points, and says how sure it is."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from control.errors import SettingError
from control.model.calibrated import Calibrated, as_fields, as_profile
from control.model.costs import cost_table
from control.model.hardware import profile
from control.model.measured import Iteration, Limits, Point, chunked
from control.model.scaling import stretched
from control.tuning.calibrate import calibrate
from control.tuning.nnls import nnls

LIMITS = Limits("tiny", "0.19.0", 4096, 65_536, 16, 16, 512)
A = 18.9, 0.78, 0.00193
C = 18.0, 1.142, 0.0022, 5e-5, 0.4, 0.001
BUDGET = 512


def decode_ms(i: Iteration) -> float:
    return A[0] + A[1] * i.decoding + A[2] * i.kv


def mixed_ms(i: Iteration) -> float:
    return C[0] + C[1] * i.tokens + C[2] * i.kv + C[3] * i.area + C[4] * i.decoding + C[5] * i.held


def points(noise: float = 0.0, seed: int = 0, bend: float = 0.0) -> list[Point]:
    """What a probe would measure; `bend`: ms more for each sequence beyond 16."""
    chance = np.random.default_rng(seed)
    made: list[Point] = []
    for b, context in product((1, 2, 4, 8, 16, 24, 32, 64), (64, 512, 2048)):
        i = Iteration(b, float(b * context))
        made.append(Point("decode", decode_ms(i) + bend * max(0, b - 16), (i,)))
    for tokens in (16, 64, 128, 256, 512, 1024, 2048, 4000):
        parts = chunked(tokens, BUDGET)
        made.append(Point("prefill", sum(mixed_ms(i) for i in parts), parts))
    for b, context, tokens in product((1, 4, 12), (64, 1024), (64, 384)):
        i = Iteration(b, float(b * context), tokens)
        made.append(Point("mixed", mixed_ms(i), (i,)))
    return [point._replace(ms=point.ms * float(chance.normal(1.0, noise))) for point in made]


def found(noise: float = 0.0, bend: float = 0.0, seed: int = 1) -> Calibrated:
    return calibrate(points(noise, seed, bend), LIMITS, "cpu-small", "2026-01-02T03:04:05Z")


def test_exact_points_give_the_coefficients_back() -> None:
    got = found()
    assert got.decode.base.y == pytest.approx((A[0], A[0] + A[1]))
    assert got.decode.kv_ms == pytest.approx(A[2])
    assert got.mixed.tokens is not None
    assert got.mixed.tokens.y == pytest.approx((C[0], C[0] + C[1]))
    rest = got.mixed.kv_ms, got.mixed.area_ms, got.mixed.seq_ms, got.mixed.ctx_ms
    assert rest == pytest.approx(C[2:], rel=1e-6)
    assert got.fit["all"]["mean_error"] < 1e-9


def test_what_a_request_costs_outside_the_engine_is_kept_out_of_the_profile() -> None:
    """HTTP and tokenisation lengthen every TTFT, and no iteration."""
    late = [point._replace(ms=point.ms + 7.0) if point.regime == "prefill" else point for point in points()]
    got = calibrate(late, LIMITS, "cpu-small", "")
    assert got.fit["request_ms"] == pytest.approx(7.0)
    assert got.mixed.tokens is not None
    assert got.mixed.tokens.y[0] == pytest.approx(C[0])


def test_noisy_points_give_costs_within_the_noise() -> None:
    """5 % noise on each point: the costs of whole iterations come out within 5 %, and the errors say 5 %."""
    got = found(0.05)
    table = cost_table(as_profile(got, "test"), 64, 512)
    for b, kv in ((1, 500), (16, 16_000), (64, 60_000)):
        wanted = decode_ms(Iteration(b, kv))
        assert table.decode_ms[0, b] + table.decode_kv_ms[0] * kv == pytest.approx(wanted, rel=0.05)
    assert table.mix_ms[512] == pytest.approx(C[0] + C[1] * 512, rel=0.07)
    assert 0.02 < got.fit["decode"]["mean_error"] < 0.08
    assert got.fit["decode"]["leave_one_out_error"] >= got.fit["decode"]["mean_error"]
    counted = {name: part["points"] for name, part in got.fit.items() if isinstance(part, dict)}
    assert counted == {
        "decode": 24,
        "prefill": 8,
        "mixed": 12,
        "all": 44,
    }


def test_intervals_hold_the_truth_and_narrow_with_the_noise() -> None:
    loose, tight = found(0.05).intervals, found(0.005).intervals
    truth = dict(zip(("a0_ms", "a1_ms", "a2_ms"), A, strict=True))
    assert sum(loose[name][0] <= value <= loose[name][1] for name, value in truth.items()) >= 2
    assert all(tight[name][1] - tight[name][0] < loose[name][1] - loose[name][0] for name in truth)


def test_a_bend_in_the_data_makes_a_piecewise_curve() -> None:
    got = found(0.01, bend=2.0)
    assert len(got.decode.base.x) > 2
    for b in (8, 16, 32, 64):
        wanted = decode_ms(Iteration(b, 0.0)) + 2.0 * max(0, b - 16)
        assert float(got.decode.base.at(b)) == pytest.approx(wanted, rel=0.05)


def test_noise_alone_seldom_makes_one() -> None:
    assert sum(len(found(0.05, seed=seed).decode.base.x) > 2 for seed in range(8)) <= 1


def test_what_was_fitted_is_written_for_people() -> None:
    fields = as_fields(found(0.05))
    assert json.loads(json.dumps(fields)) == fields
    assert {"a0_ms", "a1_ms", "a2_ms"} == fields["decode"].keys()
    assert {"c0_ms", "c1_ms", "c2_ms", "c3_ms", "c4_ms", "c5_ms"} == fields["mixed"].keys()
    assert fields["limits"] == {
        "kv_tokens": 65_536,
        "block_size": 16,
        "max_num_seqs": 16,
        "max_num_batched_tokens": 512,
        "max_model_len": 4096,
    }


def test_too_few_points_are_refused() -> None:
    with pytest.raises(SettingError, match="2 decode and 8 prefill points"):
        calibrate(points()[22:], LIMITS, "cpu", "")


def test_no_coefficient_is_negative() -> None:
    matrix = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert nnls(matrix, np.array([3.0, 2.0, 1.0])) == pytest.approx([2.0, 0.0])
    assert nnls(matrix, np.array([-1.0, 0.0, 1.0])) == pytest.approx([0.0, 1.0 / 7.0])
    assert nnls(matrix, np.array([3.0, 5.0, 7.0])) == pytest.approx([1.0, 2.0])
    assert nnls(np.zeros((3, 2)), np.ones(3)) == pytest.approx([0.0, 0.0])


def test_other_times_leave_the_rest_of_a_profile_alone() -> None:
    base = profile("A40", "Qwen3-0.6B")
    got = stretched(base, 1.5, 1.2)
    assert replace(got, decode=base.decode, mixed=base.mixed) == base
    assert got.mixed.base_ms == pytest.approx(1.5 * base.mixed.base_ms)
    plain, scaled = cost_table(base, 16, 512), cost_table(got, 16, 512)
    assert scaled.decode_ms[0, 8] == pytest.approx(1.2 * plain.decode_ms[0, 8])
