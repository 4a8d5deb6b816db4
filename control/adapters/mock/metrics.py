"""The server's figures under the names of vLLM 0.33, for /metrics and the load header."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from control.adapters.mock.core import Core, Flow, Load
from control.adapters.mock.settings import MockSettings

ENGINE = "0"  # the only data-parallel rank
FIRST_TOKEN_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0)
TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
REQUEST_S = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0)
TOKENS = tuple(float(digit * 10**power) for power in range(6) for digit in (1, 2, 5))
ITERATION = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)

#: Histogram -> (help, upper bounds).
HISTOGRAMS = {
    "time_to_first_token_seconds": ("Time to first token, s.", FIRST_TOKEN_S),
    "inter_token_latency_seconds": ("Time from token to token, s.", TOKEN_S),
    "request_time_per_output_token_seconds": ("Mean time from token to token of a request, s.", TOKEN_S),
    "e2e_request_latency_seconds": ("Time from arrival to last token, s.", REQUEST_S),
    "request_queue_time_seconds": ("Time in the waiting queue, s.", REQUEST_S),
    "request_prefill_time_seconds": ("Time from a seat to the first token, s.", REQUEST_S),
    "request_decode_time_seconds": ("Time from the first to the last token, s.", REQUEST_S),
    "request_prompt_tokens": ("Prompt tokens of a request.", TOKENS),
    "request_generation_tokens": ("Tokens generated for a request.", TOKENS),
    "iteration_tokens_total": ("Tokens of an engine step.", ITERATION),
}


class Tally:
    """A histogram: counts by upper bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Count `value` so many times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def buckets(self) -> list[tuple[str, float]]:
        """Counts at or below each bound."""
        below, rows = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            rows.append((bound, float(below)))
        return rows


class Book(Collector):
    """What the server has done; written as Prometheus text on demand."""

    def __init__(self, settings: MockSettings, core: Core) -> None:
        self.settings, self.core = settings, core
        self.active: set[Flow] = set()
        self.tallies = {name: Tally(bounds) for name, (_, bounds) in HISTOGRAMS.items()}
        self.success: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()  # of calls that are over: prompt, generated, cached, external
        self.expired_leases = 0
        self.failed_transfers = 0
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def close(self, flow: Flow, reason: str | None) -> None:
        """`flow` is over; `reason` is its finish_reason, None where the client left (vLLM counts none then)."""
        self.active.discard(flow)
        for name, value in sums_of(flow).items():
            self.sums[name] += value
        if reason is None:
            return
        self.success[reason] += 1
        first_s, decode_s = flow.first_s - flow.arrived_s, flow.finished_s - flow.first_s
        steps = max(1, flow.tokens - 1)
        self.tallies["time_to_first_token_seconds"].add(first_s)
        self.tallies["request_queue_time_seconds"].add(flow.started_s - flow.arrived_s)
        self.tallies["request_prefill_time_seconds"].add(flow.first_s - flow.started_s)
        self.tallies["request_decode_time_seconds"].add(decode_s)
        self.tallies["e2e_request_latency_seconds"].add(flow.finished_s - flow.arrived_s)
        self.tallies["request_prompt_tokens"].add(flow.call.prompt_tokens)
        self.tallies["request_generation_tokens"].add(flow.tokens)
        self.tallies["iteration_tokens_total"].add(flow.call.prompt_tokens - flow.cached_tokens)
        if flow.tokens > 1:
            self.tallies["request_time_per_output_token_seconds"].add(decode_s / steps)
            self.tallies["inter_token_latency_seconds"].add(decode_s / steps, steps)
            self.tallies["iteration_tokens_total"].add(1.0, steps)

    def totals(self) -> Counter[str]:
        """Token counts of all calls so far, those under way included."""
        sums = self.sums.copy()
        for flow in self.active:
            sums.update(sums_of(flow))
        return sums

    def text(self) -> bytes:
        """All of it as Prometheus text."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """The metric families, as prometheus_client asks for them."""
        load, sums = self.core.load(), self.totals()
        yield from self.gauges(load)
        yield from self.counters(load, sums)
        for name, (told, _) in HISTOGRAMS.items():
            tally = self.tallies[name]
            family = HistogramMetricFamily(f"vllm:{name}", told, labels=("model_name", "engine"))
            family.add_metric((self.settings.served[0], ENGINE), tally.buckets(), tally.sum)
            yield family

    def gauges(self, load: Load) -> Iterator[Metric]:
        """What is at this moment."""
        yield self.gauge("num_requests_running", "Requests in the batch.", load.running)
        yield self.gauge("num_requests_waiting", "Requests waiting.", load.waiting)
        reasons = {"capacity": load.waiting, "deferred": 0}
        yield self.gauges_by("num_requests_waiting_by_reason", "Requests waiting, by reason.", "reason", reasons)
        yield self.gauge("kv_cache_usage_perc", "KV cache in use, 1 is all of it.", load.kv_fraction)
        states = {"awake": 1, "weights_offloaded": 0, "discard_all": 0}
        yield self.gauges_by("engine_sleep_state", "Whether the engine sleeps.", "sleep_state", states)
        yield self.cache_config(load)

    def counters(self, load: Load, sums: Counter[str]) -> Iterator[Metric]:
        """What only grows."""
        prompt, external = sums["prompt"], sums["external"]
        local = prompt - external
        yield self.counter("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", local)
        yield self.counter("prefix_cache_hits", "Prompt tokens found there.", sums["cached"])
        yield self.counter("prompt_tokens", "Prompt tokens.", prompt)
        yield self.counter("generation_tokens", "Tokens generated.", sums["generated"])
        yield self.counter("num_preemptions", "Preemptions.", load.preemptions)
        yield self.counter("nixl_num_kv_expired_reqs", "Hand-overs whose KV was dropped unread.", self.expired_leases)
        yield self.counter("nixl_num_failed_transfers", "Hand-overs whose KV was not found.", self.failed_transfers)
        sources = {"local_compute": local - sums["cached"], "local_cache_hit": sums["cached"]}
        sources["external_kv_transfer"] = external
        yield self.counters_by(
            "prompt_tokens_by_source", "Prompt tokens by where their KV came from.", "source", sources
        )
        reasons = {name: self.success[name] for name in ("stop", "length", "abort", "error")}
        yield self.counters_by("request_success", "Requests that ended.", "finished_reason", reasons)
        rejected = {"max_num_queued_reqs": self.rejected["max_num_queued_reqs"]}
        yield self.counters_by("admission_rejections", "Requests turned away.", "reason", rejected)

    def cache_config(self, load: Load) -> Metric:
        """The size of the cache, in labels as vLLM tells it."""
        size = self.settings.block_size
        values = {"block_size": size, "num_gpu_blocks": load.capacity_tokens // size, "num_cpu_blocks": None}
        values |= {"kv_cache_size_tokens": load.capacity_tokens, "enable_prefix_caching": True}
        family = GaugeMetricFamily("vllm:cache_config_info", "The KV cache.", labels=("engine", *values))
        family.add_metric((ENGINE, *map(str, values.values())), 1)
        return family

    def gauge(self, name: str, told: str, value: float) -> Metric:
        """One gauge."""
        family = GaugeMetricFamily(f"vllm:{name}", told, labels=("model_name", "engine"))
        family.add_metric((self.settings.served[0], ENGINE), value)
        return family

    def gauges_by(self, name: str, told: str, label: str, values: dict[str, int]) -> Metric:
        """One gauge for each value of a label."""
        family = GaugeMetricFamily(f"vllm:{name}", told, labels=("model_name", "engine", label))
        for which, value in values.items():
            family.add_metric((self.settings.served[0], ENGINE, which), value)
        return family

    def counter(self, name: str, told: str, value: float) -> Metric:
        """One counter; `_total` is added to its name."""
        family = CounterMetricFamily(f"vllm:{name}", told, labels=("model_name", "engine"))
        family.add_metric((self.settings.served[0], ENGINE), value)
        return family

    def counters_by(self, name: str, told: str, label: str, values: dict[str, int]) -> Metric:
        """One counter for each value of a label."""
        family = CounterMetricFamily(f"vllm:{name}", told, labels=("model_name", "engine", label))
        for which, value in values.items():
            family.add_metric((self.settings.served[0], ENGINE, which), value)
        return family


def sums_of(flow: Flow) -> dict[str, int]:
    """Token counts of a call: those of its prompt count from its first token on."""
    if flow.first_s < 0.0:
        return {"generated": 0}
    prompt = flow.call.prompt_tokens
    return {
        "prompt": prompt,
        "generated": flow.tokens,
        "cached": flow.cached_tokens,
        "external": prompt if flow.call.external else 0,
    }


def load_header(load: Load, form: str) -> str | None:
    """The value of `endpoint-load-metrics` in the form asked for, TEXT or JSON; None for another."""
    values: dict[str, Any] = {
        "kv_cache_usage_perc": round(load.kv_fraction, 6),
        "num_requests_waiting": float(load.waiting),
    }
    if form.upper() == "TEXT":
        return "TEXT " + ", ".join(f"named_metrics.{name}={value}" for name, value in values.items())
    if form.upper() == "JSON":
        return "JSON " + orjson.dumps({"named_metrics": values}).decode()
    return None
