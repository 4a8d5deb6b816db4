"""What a source said at one moment. None = not there; 0 is 0."""

from dataclasses import dataclass, fields
from typing import Any

from control.adapters.histogram import Histogram

#: Quantiles given for every time.
QUANTILES = {"p50": 0.5, "p95": 0.95}


@dataclass(frozen=True)
class GpuReading:
    """One GPU; every field may be unknown."""

    index: int | None = None
    uuid: str | None = None
    name: str | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_limit_min_w: float | None = None
    power_limit_max_w: float | None = None
    energy_j: float | None = None  # a counter: only differences mean something
    utilization: float | None = None  # 0-1; no measure of load: one sequence already reads 0.98
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    temperature_c: float | None = None


@dataclass(frozen=True)
class Reading:
    """One reading of an inference engine, of GPUs, or of both."""

    taken_s: float  # Unix time at which it was read
    source: str  # what kind of text it was
    engine: str | None = None  # "vllm" or "sglang"
    version: str | None = None
    model: str | None = None
    ranks: int | None = None  # data-parallel ranks it was added over
    running: float | None = None
    waiting: float | None = None
    waiting_capacity: float | None = None  # of these, for want of room
    waiting_deferred: float | None = None  # of these, held back for another reason
    swapped: float | None = None
    kv_used_fraction: float | None = None  # 0-1
    kv_used_tokens: float | None = None
    kv_capacity_tokens: float | None = None
    kv_block_tokens: float | None = None
    kv_in_percent: bool = False  # the source gave the usage as 0-100
    prefix_hit_fraction: float | None = None  # 0-1, since the engine started
    prefix_hit_tokens: float | None = None
    prefix_query_tokens: float | None = None
    preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    requests_finished: float | None = None
    rejections: float | None = None
    kv_expired_requests: float | None = None
    kv_failed_transfers: float | None = None
    awake: float | None = None  # 1 awake, 0 asleep
    ttft: Histogram | None = None
    itl: Histogram | None = None
    tpot: Histogram | None = None
    e2e: Histogram | None = None
    queue: Histogram | None = None
    prefill: Histogram | None = None
    decode: Histogram | None = None
    power_w: float | None = None  # sum over the GPUs that tell
    gpus: tuple[GpuReading, ...] = ()

    def is_empty(self) -> bool:
        """Whether nothing in it tells about an engine or a GPU, as in the first scrape of a server that starts."""
        return self.engine is None and not self.gpus

    def to_dict(self) -> dict[str, Any]:
        """All fields for JSON; a time becomes `<name>_mean_s`, `<name>_p50_s`, `<name>_p95_s` and `<name>_count`."""
        out: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in TIME_FIELDS:
                out |= time_figures(field.name, value)
            elif field.name == "gpus":
                out["gpus"] = [{part.name: getattr(gpu, part.name) for part in fields(gpu)} for gpu in value]
            else:
                out[field.name] = value
        return out


TIME_FIELDS = tuple(field.name for field in fields(Reading) if field.type == Histogram | None)
#: What only grows while an engine works.
COUNTERS = ("prompt_tokens", "generation_tokens", "requests_finished", "preemptions", "prefix_query_tokens")


def time_figures(name: str, times: Histogram | None) -> dict[str, float | None]:
    """Mean, quantiles and count of one time."""
    figures = {f"{name}_mean_s": times.mean_s() if times else None}
    figures |= {f"{name}_{label}_s": times.quantile_s(q) if times else None for label, q in QUANTILES.items()}
    return figures | {f"{name}_count": times.count if times else None}


def total_power_w(gpus: tuple[GpuReading, ...]) -> float | None:
    """Power of all GPUs that tell theirs; None where none does."""
    known = [gpu.power_w for gpu in gpus if gpu.power_w is not None]
    return sum(known) if known else None
