"""What a user would notice if a profile or its cost table were wrong."""

import json
from pathlib import Path

import numpy as np
import pytest

from control.errors import CatalogueError, SettingError
from control.model.catalogue import catalogue
from control.model.hardware import CostTable, cost_table, gpu_names, model_names, profile

# GPU, model: a0 a1 a2 | c0 c1 c2 c3, the linear fits of the same measurements, and their error bound
LINEAR = {
    ("A100", "Llama-3.1-8B"): ((11.086, 0.03893, 8.258e-5), (8.401, 0.05049, 7.368e-5, 5.011e-6)),
    ("L40S", "Llama-3.1-8B"): ((22.335, 0.03261, 1.955e-4), (18.817, 0.05562, 1.681e-4, 8.762e-6)),
    ("H100", "Llama-3.1-8B"): ((6.535, 0.01257, 4.105e-5), (5.523, 0.01638, 3.700e-5, 2.280e-6)),
    ("H200", "Llama-3.1-8B"): ((5.057, 0.01386, 2.927e-5), (4.178, 0.01695, 2.753e-5, 2.020e-6)),
    ("B200", "Llama-3.1-8B"): ((3.576, 0.00532, 1.752e-5), (3.235, 0.00860, 1.597e-5, 8.400e-7)),
}


def decode_ms(table: CostTable, sequences: int, kv: int) -> float:
    return float((table.decode_ms[:, sequences] + table.decode_kv_ms * kv).max())


def mixed_ms(table: CostTable, prefill: int, held: int, sequences: int, kv: int) -> float:
    area = prefill * (held + prefill / 2)
    if table.additive:
        start = decode_ms(table, sequences, kv) if sequences else table.mix_base_ms
        return start + table.mix_token_ms * prefill + table.mix_area_ms * area
    return float(
        table.mix_ms[prefill + sequences]
        + table.mix_kv_ms * kv
        + table.mix_area_ms * area
        + table.mix_seq_ms * sequences
        + table.mix_ctx_ms * held
    )


def all_pairs() -> list[tuple[str, str]]:
    return [(gpu, model) for gpu in gpu_names() for model in model_names()]


@pytest.mark.parametrize(("gpu", "model"), LINEAR)
@pytest.mark.parametrize(("sequences", "kv"), [(1, 500), (16, 16_000), (64, 64_000), (128, 150_000)])
def test_decode_agrees_with_the_linear_fit(gpu: str, model: str, sequences: int, kv: int) -> None:
    a0, a1, a2 = LINEAR[gpu, model][0]
    table = cost_table(profile(gpu, model), 256, 2048)
    assert decode_ms(table, sequences, kv) == pytest.approx(a0 + a1 * sequences + a2 * kv, rel=0.08)


@pytest.mark.parametrize(("gpu", "model"), LINEAR)
@pytest.mark.parametrize(("prefill", "sequences", "kv"), [(1024, 0, 0), (1984, 64, 64_000), (1500, 16, 16_000)])
def test_mixed_agrees_with_the_linear_fit(gpu: str, model: str, prefill: int, sequences: int, kv: int) -> None:
    c0, c1, c2, c3 = LINEAR[gpu, model][1]
    table = cost_table(profile(gpu, model), 256, 2048)
    linear = c0 + c1 * (prefill + sequences) + c2 * kv + c3 * prefill**2 / 2
    assert mixed_ms(table, prefill, 0, sequences, kv) == pytest.approx(linear, rel=0.12)


def test_a_batch_on_a_knot_costs_the_sum_of_its_segments() -> None:
    shared = Path(__file__).resolve().parents[2].parent / "shared/perf/iteration_cost_llama3_8b.json"
    if not shared.exists():
        pytest.skip("the published fits are not beside this checkout")
    fits = json.loads(shared.read_text())["h100_sxm"]["knots"]
    intercept, *slopes, kv_ms = fits["dec"]
    widths = (16, 16, 32, 64, 128)
    expected = intercept + sum(w * s for w, s in zip(widths, slopes, strict=False))
    table = cost_table(profile("H100", "Llama-3.1-8B"), 512, 2048)
    assert decode_ms(table, 256, 100_000) == pytest.approx(expected + kv_ms * 100_000, rel=1e-4)


@pytest.mark.parametrize(("gpu", "model"), all_pairs())
def test_every_pair_gives_a_rising_cost_or_says_what_is_missing(gpu: str, model: str) -> None:
    try:
        found = profile(gpu, model)
    except CatalogueError:
        with pytest.raises(CatalogueError, match=r"does not fit .* GiB .* GiB are available"):
            profile(gpu, model)
        found = profile(gpu, model, kv_tokens=16_000)
    table = cost_table(found, 512, 4096)
    assert found.source
    assert found.provenance in {"measured", "fitted", "estimated"}
    assert decode_ms(table, 1, 0) > 0
    assert (np.diff(table.decode_ms[0, 1:]) >= 0).all()
    assert (np.diff(table.mix_ms) >= 0).all()
    rest = (table.mix_kv_ms, table.mix_area_ms, table.mix_seq_ms, table.mix_ctx_ms, *table.decode_kv_ms)
    assert min(rest) >= 0
    assert max(table.decode_kv_ms) > 0
    assert (np.diff(table.power_w) > 0).sum() >= 200


@pytest.mark.parametrize("model", ["Llama-3.1-8B", "Qwen3-0.6B", "Qwen3-30B-A3B"])
def test_longer_prefill_never_costs_less(model: str) -> None:
    table = cost_table(profile("H100", model), 256, 2048)
    costs = [mixed_ms(table, prefill, 0, 8, 8_000) for prefill in range(1, 2000, 50)]
    assert costs == sorted(costs)


def test_a_pair_without_measurements_is_marked_and_follows_the_datasheet() -> None:
    measured = cost_table(profile("L40S", "Llama-3.1-8B"), 256, 2048)
    guess = profile("A6000", "Llama-3.1-8B")
    table = cost_table(guess, 256, 2048)
    assert guess.provenance == "estimated"
    assert "L40S" in guess.source
    assert decode_ms(table, 64, 50_000) == pytest.approx(decode_ms(measured, 64, 50_000) * 864 / 768)


def test_scaling_across_models_lands_near_the_measured_larger_model() -> None:
    """Qwen3-32B is measured on the RTX PRO 6000; the rules applied to Llama-3.1-8B there must come close."""
    small = cost_table(profile("RTXPRO6000", "Llama-3.1-8B"), 256, 2048)
    large = cost_table(profile("RTXPRO6000", "Qwen3-32B"), 256, 2048)
    assert large.decode_ms[0, 1] / small.decode_ms[0, 1] == pytest.approx(32.76 / 8.03, rel=0.05)
    assert large.decode_kv_ms[0] / small.decode_kv_ms[0] == pytest.approx(2.0, rel=0.05)


def test_tensor_parallel_divides_time_at_85_percent_and_adds_memory() -> None:
    one, two = profile("H100", "Llama-3.1-8B"), profile("H100", "Llama-3.1-8B", 2)
    fast, slow = cost_table(two, 64, 2048), cost_table(one, 64, 2048)
    assert decode_ms(slow, 32, 9_000) / decode_ms(fast, 32, 9_000) == pytest.approx(1.7)
    assert two.provenance == "estimated"
    assert two.kv_tokens() > 2 * one.kv_tokens()
    assert fast.idle_w == 2 * slow.idle_w


def test_experts_make_the_fixed_part_grow_with_the_batch() -> None:
    table = cost_table(profile("H200", "Qwen3-30B-A3B"), 256, 2048)
    dense = cost_table(profile("H200", "Llama-3.1-8B"), 256, 2048)
    assert table.decode_ms[0, 1] < dense.decode_ms[0, 1]  # 3.3 B parameters are read for one sequence
    assert table.decode_ms[0, 256] > 2 * dense.decode_ms[0, 256]  # all 30 B for many


def test_kv_capacity_is_what_weights_and_reserve_leave() -> None:
    free_gib = 0.9 * 80.0 - 16.06e9 / 2**30 - 2.0
    assert profile("H100", "Llama-3.1-8B").kv_tokens() == int(free_gib * 2**30 // 131_072)


@pytest.mark.parametrize(
    ("gpu", "model", "gpus", "words"),
    [
        ("H1000", "Llama-3.1-8B", 1, ("'H1000'", "did you mean H100?", "RTX4090")),
        ("H100", "llama-3.1-8b", 1, ("did you mean Llama-3.1-8B?", "Qwen3-32B")),
        ("H100", "Llama-3.1-70B", 1, ("133.4 GiB", "72.0 GiB", "kv_tokens")),
        ("H100", "Llama-3.1-8B", 0, ("gpus = 0", "at least 1")),
    ],
)
def test_a_wrong_pair_is_refused_with_what_exists(gpu: str, model: str, gpus: int, words: tuple[str, ...]) -> None:
    with pytest.raises(CatalogueError) as caught:
        profile(gpu, model, gpus)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_table_sizes_below_one_are_refused() -> None:
    with pytest.raises(SettingError, match="max_seqs = 0"):
        cost_table(profile("H100", "Llama-3.1-8B"), 0, 2048)


def test_the_a40_step_is_the_larger_of_two_lines() -> None:
    table = cost_table(profile("A40", "Qwen3-0.6B"), 1024, 8192)
    assert table.additive == 1
    assert decode_ms(table, 4, 10_000) == pytest.approx(14.0 + 0.030 * 4)
    assert decode_ms(table, 20, 300_000) == pytest.approx(4.935 + 0.0524 * 20 + 1.934e-4 * 300_000)


@pytest.mark.parametrize("tokens", [1_000, 4_000, 16_000])
def test_a_cold_prefill_on_the_a40_follows_its_quadratic(tokens: int) -> None:
    table = cost_table(profile("A40", "Qwen3-0.6B"), 1024, 8192)
    seconds = 0.02045 + 1.4873e-5 * tokens + 1.348e-9 * tokens**2
    assert mixed_ms(table, tokens, 0, 0, 0) == pytest.approx(1e3 * seconds)


def test_an_append_on_the_a40_costs_the_increment_of_the_cold_line() -> None:
    table = cost_table(profile("A40", "Qwen3-0.6B"), 1024, 8192)
    step = decode_ms(table, 8, 120_000)
    increment = 1.4873e-5 * 68 + 1.348e-9 * ((15_000 + 68) ** 2 - 15_000**2)
    assert mixed_ms(table, 68, 15_000, 8, 120_000) == pytest.approx(step + 1e3 * increment)


def test_every_gpu_without_fits_points_at_one_with_the_reference_fit() -> None:
    book = catalogue()
    for key, gpu in book.gpus.items():
        assert (gpu.like or key, "Llama-3.1-8B") in book.entries["pair"]
