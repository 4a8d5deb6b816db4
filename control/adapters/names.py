"""Under which name each quantity is found: newest name first, one table per source.

Names stand without the prefix of the engine and without `_total`: clients differ in whether they add it, so both
spellings are looked for. Sources: `/metrics` of vLLM 0.4 to 0.33 and SGLang's collector.
"""

from typing import NamedTuple


class Name(NamedTuple):
    """A name of a quantity, and the factor that turns its values into our unit."""

    name: str
    scale: float = 1.0


class Quantity(NamedTuple):
    """Where one field of a reading comes from."""

    field: str
    unit: str
    names: tuple[Name, ...]
    label: tuple[str, str] | None = None  # only samples that carry this label


def quantity(field: str, unit: str, *names: str | Name, label: tuple[str, str] | None = None) -> Quantity:
    """A quantity with its names, newest first."""
    return Quantity(field, unit, tuple(name if isinstance(name, Name) else Name(name) for name in names), label)


#: Sums over data-parallel ranks.
COUNTS: dict[str, tuple[Quantity, ...]] = {
    "vllm": (
        quantity("running", "requests", "num_requests_running"),
        quantity("waiting", "requests", "num_requests_waiting", "num_requests_waiting_by_reason"),
        quantity("waiting_capacity", "requests", "num_requests_waiting_by_reason", label=("reason", "capacity")),
        quantity("waiting_deferred", "requests", "num_requests_waiting_by_reason", label=("reason", "deferred")),
        quantity("swapped", "requests", "num_requests_swapped"),
        quantity("preemptions", "", "num_preemptions"),
        quantity("prompt_tokens", "tokens", "prompt_tokens"),
        quantity("generation_tokens", "tokens", "generation_tokens"),
        quantity("requests_finished", "requests", "request_success"),
        quantity("rejections", "requests", "admission_rejections"),
        quantity("kv_expired_requests", "requests", "nixl_num_kv_expired_reqs"),
        quantity("kv_failed_transfers", "", "nixl_num_failed_transfers"),
    ),
    "sglang": (
        quantity("running", "requests", "num_running_reqs"),
        quantity("waiting", "requests", "num_queue_reqs"),
        quantity("preemptions", "", "num_retracted_requests"),
        quantity("prompt_tokens", "tokens", "prompt_tokens"),
        quantity("generation_tokens", "tokens", "generation_tokens"),
        quantity("requests_finished", "requests", "num_requests"),
        quantity("kv_used_tokens", "tokens", "num_used_tokens"),
        quantity("kv_capacity_tokens", "tokens", "max_total_num_tokens"),
        quantity("kv_failed_transfers", "", "num_transfer_failed_reqs"),
    ),
}

#: Share of the KV cache in use; a mean over ranks, weighted by their capacity. 0-1, or 0-100 in some sources.
KV_USAGE = {
    "vllm": quantity("kv_used_fraction", "fraction", "kv_cache_usage_perc", "gpu_cache_usage_perc"),
    "sglang": quantity("kv_used_fraction", "fraction", "token_usage"),
}

#: Prefix cache: looked up and found. Tokens, or blocks where the help text or an old name says so.
PREFIX_QUERIES = {
    "vllm": quantity("prefix_query_tokens", "tokens", "prefix_cache_queries", "gpu_prefix_cache_queries"),
    "sglang": quantity("prefix_query_tokens", "tokens", "prompt_tokens"),
}
PREFIX_HITS = {
    "vllm": quantity("prefix_hit_tokens", "tokens", "prefix_cache_hits", "gpu_prefix_cache_hits"),
    "sglang": quantity("prefix_hit_tokens", "tokens", "cached_tokens"),
}
#: The share itself, where the two counters are not there; below 0 means nothing was looked up yet.
PREFIX_RATE = {
    "vllm": quantity("prefix_hit_fraction", "fraction", "gpu_prefix_cache_hit_rate"),
    "sglang": quantity("prefix_hit_fraction", "fraction", "cache_hit_rate"),
}
#: Names that count in blocks unless their help text says otherwise.
COUNTED_IN_BLOCKS = frozenset({"gpu_prefix_cache_queries", "gpu_prefix_cache_hits"})

#: Times of requests, histograms in seconds.
TIMES: dict[str, tuple[Quantity, ...]] = {
    "vllm": (
        quantity("ttft", "s", "time_to_first_token_seconds"),
        quantity("itl", "s", "inter_token_latency_seconds", "time_per_output_token_seconds"),
        quantity("tpot", "s", "request_time_per_output_token_seconds"),
        quantity("e2e", "s", "e2e_request_latency_seconds"),
        quantity("queue", "s", "request_queue_time_seconds"),
        quantity("prefill", "s", "request_prefill_time_seconds"),
        quantity("decode", "s", "request_decode_time_seconds"),
    ),
    "sglang": (
        quantity("ttft", "s", "time_to_first_token_seconds"),
        quantity("itl", "s", "inter_token_latency_seconds", "time_per_output_token_seconds"),
        quantity("e2e", "s", "e2e_request_latency_seconds"),
        quantity("queue", "s", "queue_time_seconds"),
    ),
}

#: Columns of the recorded series that benchmark runs leave beside their results, last row = latest.
SERIES = (
    quantity("running", "requests", "num_requests_running", "running"),
    quantity("waiting", "requests", "num_requests_waiting", "waiting"),
    quantity("kv_used_fraction", "fraction", "kv_cache_usage_perc", "gpu_cache_usage_perc", Name("kv_cache_pct", 0.01)),
    quantity("preemptions", "", "num_preemptions"),
    quantity("prompt_tokens", "tokens", "prompt_tokens"),
    quantity("generation_tokens", "tokens", "generation_tokens"),
    quantity("requests_finished", "requests", "request_success"),
)
