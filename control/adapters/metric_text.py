"""A Prometheus text of vLLM or SGLang as a Reading, added over data-parallel ranks."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from control.adapters.exposition import Sample, Samples
from control.adapters.histogram import Histogram, merged
from control.adapters.names import (
    COUNTED_IN_BLOCKS,
    COUNTS,
    KV_USAGE,
    PREFIX_HITS,
    PREFIX_QUERIES,
    PREFIX_RATE,
    TIMES,
    Quantity,
)
from control.adapters.reading import Reading

#: Labels that tell data-parallel ranks apart: vLLM's, SGLang's.
RANK_LABELS = ("engine", "dp_rank")
#: Above this a usage that should be 0-1 is a percentage; a little over 1 is rounding.
MOST_FRACTION = 1.001


class Cache(NamedTuple):
    """The KV cache of an engine."""

    capacity: dict[str, float]  # tokens by rank
    block_tokens: float | None


def engine_of(samples: Samples) -> str | None:
    """ "vllm", "sglang", or None where the text holds metrics of neither."""
    for engine in COUNTS:
        if any(True for _ in samples.starting_with(f"{engine}:")):
            return engine
    return None


def read_engine(samples: Samples, taken_s: float, in_percent: bool = False) -> Reading:
    """The reading of an engine.

    Args:
        samples: the parsed text.
        taken_s: Unix time at which it was read.
        in_percent: the source is known to give the KV usage as 0-100, so that 0.8 means 0.8 %.
    """
    engine = engine_of(samples)
    if engine is None:
        return Reading(taken_s, "prometheus")
    lead = one_worker(samples)
    found: dict[str, Any] = {q.field: total(lead, q, engine) for q in COUNTS[engine]}
    found |= kv_fields(lead, engine, in_percent, found) | prefix_fields(lead, engine)
    times: dict[str, Any] = {q.field: histogram(lead, q, engine) for q in TIMES[engine]}
    about: dict[str, Any] = {"model": model_of(lead, engine), "ranks": ranks_of(lead, engine), "awake": awake(lead)}
    return Reading(taken_s, engine, engine=engine, **about, **found, **times)


def one_worker(samples: Samples) -> Samples:
    """Without the tensor- and pipeline-parallel workers after the first: they repeat what it says."""

    def leads(sample: Sample) -> bool:
        return all(sample.labels.get(rank, "0") == "0" for rank in ("tp_rank", "pp_rank"))

    return Samples({name: [s for s in found if leads(s)] for name, found in samples.by_name.items()}, samples.help)


def total(samples: Samples, wanted: Quantity, engine: str) -> float | None:
    """Sum of a quantity over ranks, models and the labels that are not asked for; None where it is not there."""
    found = samples.first(wanted, f"{engine}:")
    return None if found is None else sum(sample.value for sample in found[1])


def rank_of(sample: Sample) -> str:
    """The data-parallel rank a sample belongs to; "" where it does not say."""
    return next((sample.labels[label] for label in RANK_LABELS if label in sample.labels), "")


def ranks_of(samples: Samples, engine: str) -> int:
    """How many data-parallel ranks the text tells of."""
    named = {rank_of(sample) for sample in samples.starting_with(f"{engine}:")} - {""}
    return max(1, len(named))


def model_of(samples: Samples, engine: str) -> str | None:
    """The name of the model where all samples agree on it."""
    names = {sample.labels.get("model_name") for sample in samples.starting_with(f"{engine}:")} - {None, ""}
    return names.pop() if len(names) == 1 else None


def awake(samples: Samples) -> float | None:
    """1 where every rank says it is awake, 0 where one sleeps; None where nothing is said."""
    states = [s for s in samples.by_name.get("vllm:engine_sleep_state", []) if s.labels.get("sleep_state") == "awake"]
    return min(state.value for state in states) if states else None


def kv_fields(samples: Samples, engine: str, in_percent: bool, found: dict[str, float | None]) -> dict[str, Any]:
    """Usage, capacity and tokens in use of the KV cache."""
    by_rank, percent = usage_by_rank(samples, engine, in_percent)
    cache = cache_of(samples, engine, by_rank.keys())
    capacity = found.get("kv_capacity_tokens") or (sum(cache.capacity.values()) if cache.capacity else None)
    used_fraction = weighted(by_rank, cache.capacity)
    used = found.get("kv_used_tokens")
    if used is None and used_fraction is not None and capacity is not None:
        used = used_fraction * capacity
    return {
        "kv_used_fraction": used_fraction,
        "kv_in_percent": percent,
        "kv_capacity_tokens": capacity,
        "kv_used_tokens": used,
        "kv_block_tokens": cache.block_tokens,
    }


def usage_by_rank(samples: Samples, engine: str, in_percent: bool) -> tuple[dict[str, float], bool]:
    """Share of the KV cache in use by rank, and whether the source gives it as a percentage."""
    found = samples.first(KV_USAGE[engine], f"{engine}:")
    by_rank = {rank_of(sample): sample.value for sample in found[1]} if found else {}
    percent = in_percent or any(value > MOST_FRACTION for value in by_rank.values())
    return {rank: value / 100 if percent else value for rank, value in by_rank.items()}, percent


def weighted(by_rank: dict[str, float], capacity: dict[str, float]) -> float | None:
    """Mean usage, weighted by the capacity of each rank where it is known of all; None without usage."""
    if not by_rank:
        return None
    weights = {rank: capacity.get(rank, 0.0) for rank in by_rank}
    if not all(weights.values()):
        weights = dict.fromkeys(by_rank, 1.0)
    return sum(by_rank[rank] * weights[rank] for rank in by_rank) / sum(weights.values())


def cache_of(samples: Samples, engine: str, ranks: Iterable[str]) -> Cache:
    """Capacity by rank in tokens; a rank without a word of its own is like the one that has one."""
    told = samples.by_name.get(f"{engine}:cache_config_info", [])
    capacity = {rank_of(sample): tokens for sample in told if (tokens := capacity_tokens(sample)) is not None}
    blocks = [block for sample in told if (block := label_number(sample, "block_size")) is not None]
    if capacity and (missing := set(ranks) - capacity.keys()):
        common = capacity.pop("", None) or next(iter(capacity.values()))
        capacity |= dict.fromkeys(missing, common)
    return Cache(capacity, blocks[0] if blocks else None)


def capacity_tokens(config: Sample) -> float | None:
    """Tokens the KV cache of one rank holds; None where the configuration does not tell."""
    tokens = label_number(config, "kv_cache_size_tokens")
    if tokens is not None:
        return tokens
    blocks, block_size = label_number(config, "num_gpu_blocks"), label_number(config, "block_size")
    return blocks * block_size if blocks is not None and block_size is not None else None


def label_number(sample: Sample, label: str) -> float | None:
    """A positive number in a label; labels are strings and may read "None"."""
    try:
        value = float(sample.labels.get(label, ""))
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def prefix_fields(samples: Samples, engine: str) -> dict[str, float | None]:
    """What the prefix cache found: tokens looked up, tokens found, their share."""
    queries = samples.first(PREFIX_QUERIES[engine], f"{engine}:")
    hits = samples.first(PREFIX_HITS[engine], f"{engine}:")
    if queries is None or hits is None:
        rate = total_rate(samples, engine)
        return {"prefix_hit_fraction": rate}
    asked, found = (sum(sample.value for sample in part[1]) for part in (queries, hits))
    unit = unit_tokens(samples, engine, queries[0])
    return {
        "prefix_hit_fraction": found / asked if asked > 0 else None,
        "prefix_hit_tokens": None if unit is None else found * unit,
        "prefix_query_tokens": None if unit is None else asked * unit,
    }


def total_rate(samples: Samples, engine: str) -> float | None:
    """The mean hit rate over ranks where the engine gives only that; None before anything was looked up."""
    found = samples.first(PREFIX_RATE[engine], f"{engine}:")
    rates = [sample.value for sample in found[1] if sample.value >= 0] if found else []
    return sum(rates) / len(rates) if rates else None


def unit_tokens(samples: Samples, engine: str, name: str) -> float | None:
    """Tokens one count of the prefix cache stands for: 1, or a block; None where its size is not known."""
    said = samples.help.get(f"{engine}:{name}", "")
    in_blocks = "blocks" in said or (name in COUNTED_IN_BLOCKS and "tokens" not in said)
    return cache_of(samples, engine, ()).block_tokens if in_blocks else 1.0


def histogram(samples: Samples, wanted: Quantity, engine: str) -> Histogram | None:
    """A time, added over ranks; None where it is not there."""
    for name in wanted.names:
        full = f"{engine}:{name.name}"
        counts = samples.by_name.get(f"{full}_count") or samples.by_name.get(f"{full}_bucket")
        if counts:
            return merged(one_histogram(samples, full, key) for key in series_keys(counts))
    return None


Key = tuple[tuple[str, str], ...]


def series_keys(found: list[Sample]) -> list[Key]:
    """The label sets of a histogram's series, each once."""
    return list(dict.fromkeys(series_key(sample) for sample in found))


def series_key(sample: Sample) -> Key:
    """All labels of a sample but its bucket's bound."""
    return tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))


def one_histogram(samples: Samples, name: str, key: Key) -> Histogram:
    """The histogram of one series."""

    def of(suffix: str) -> list[Sample]:
        return [sample for sample in samples.by_name.get(name + suffix, []) if series_key(sample) == key]

    buckets = sorted((float(sample.labels["le"]), sample.value) for sample in of("_bucket") if "le" in sample.labels)
    counts, sums = of("_count"), of("_sum")
    count = counts[0].value if counts else (buckets[-1][1] if buckets else 0.0)
    return Histogram(count, sums[0].value if sums else None, tuple(buckets))
