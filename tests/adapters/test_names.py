"""A renamed metric must not blank a chart: the tables find every core metric in every release that has it."""

import csv
from pathlib import Path

import pytest

from control.adapters.names import COUNTS, KV_USAGE, PREFIX_HITS, PREFIX_QUERIES, PREFIX_RATE, TIMES
from control.adapters.recognise import read_text

#: Releases with the engine generations they carry; a server runs one of them.
RELEASES = {
    "0.4.3": ("V0",),
    "0.6.6": ("V0",),
    "0.8.5": ("V0", "V1"),
    "0.10.2": ("V0", "V1"),
    "0.12.0": ("V1",),
    "0.20.2": ("V1",),
    "0.33.0": ("V1",),
}
SERVERS = [(release, generation) for release, generations in RELEASES.items() for generation in generations]
HISTOGRAMS = {"iteration_tokens_total"}
#: Core metrics that no field of a reading holds, and why.
NOT_READ = {
    "cpu_cache_usage_perc": "no engine swaps to the CPU any more",
    "external_prefix_cache_queries": "of a store outside the engine, not of its own cache",
    "prompt_tokens_by_source": "a split of prompt_tokens",
    "prompt_tokens_cached": "the same as the hits of the prefix cache",
    "request_inference_time_seconds": "prefill and decode together",
    "iteration_tokens_total": "tokens of an iteration, no load",
    "engine_sleep_state": "read by its label, see test_metric_text",
    "lora_requests_info": "its value is a time stamp, not a figure",
    "cache_config_info": "read by its labels, see test_metric_text",
    "cache_config": "the same under the name its client was given",
}
QUANTITIES = (*COUNTS["vllm"], KV_USAGE["vllm"], *TIMES["vllm"])


def names_of(recorded: Path, release: str, generation: str = "V") -> list[str]:
    """Core metrics that a release has, as its source names them."""
    with (recorded / "metrics" / "core_metric_presence.csv").open() as file:
        return [row["metric"] for row in csv.DictReader(file) if generation in row[release]]


def exposed(name: str, number: int, suffix: str) -> list[str]:
    """Lines of one metric; a histogram of `number` requests, or a value."""
    if name.endswith("_seconds") or name in HISTOGRAMS:
        rows = [f"vllm:{name}_count {number}", f"vllm:{name}_sum {number * 2}"]
        return [f'vllm:{name}_bucket{{le="+Inf"}} {number}', *rows]
    end = "" if name.endswith("_total") else suffix
    return [f"vllm:{name}{end} {number}"]


@pytest.mark.parametrize("suffix", ["", "_total"])
@pytest.mark.parametrize(("release", "generation"), SERVERS)
def test_every_release_fills_the_fields_it_can(recorded: Path, release: str, generation: str, suffix: str) -> None:
    names = names_of(recorded, release, generation)
    plain = {name.removesuffix("_total"): number for number, name in enumerate(names, 1)}
    text = "\n".join(line for number, name in enumerate(names, 1) for line in exposed(name, number, suffix)) + "\n"
    reading = read_text(text, release)
    for quantity in QUANTITIES:
        found = [name.name for name in quantity.names if name.name in plain]
        if quantity.label is not None:
            continue
        value = getattr(reading, quantity.field)
        if not found:
            assert value is None, quantity.field
        elif quantity in TIMES["vllm"]:
            assert value.count == plain[found[0]], quantity.field
        elif quantity is KV_USAGE["vllm"]:
            assert value == pytest.approx(plain[found[0]] / 100), "a value over 1 is a percentage"
        else:
            assert value == plain[found[0]], quantity.field
    has_prefix_cache = any("prefix_cache_hit" in name and "external" not in name for name in names)
    assert (reading.prefix_hit_fraction is not None) == has_prefix_cache


def test_every_core_metric_is_read_or_left_for_a_reason(recorded: Path) -> None:
    tables = (*QUANTITIES, PREFIX_HITS["vllm"], PREFIX_QUERIES["vllm"], PREFIX_RATE["vllm"])
    read = {name.name for quantity in tables for name in quantity.names}
    known = {name.removesuffix("_total") for release in RELEASES for name in names_of(recorded, release)}
    left = {name.removesuffix("_total") for name in NOT_READ}
    assert known - read == left


def test_newest_name_wins_where_a_release_has_both() -> None:
    text = "vllm:gpu_cache_usage_perc 0.9\nvllm:kv_cache_usage_perc 0.2\n"
    assert read_text(text, "both").kv_used_fraction == 0.2
