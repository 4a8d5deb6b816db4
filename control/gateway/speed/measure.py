"""Rounds over all systems in turn, and what they come to."""

import asyncio
import gc
import os
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import uvloop

from control.config import within
from control.gateway.speed.client import request_for, stream_for
from control.gateway.speed.systems import BARE, DIRECT, GATEWAY, System, started

Say = Callable[[str], None]


@dataclass(frozen=True)
class SpeedSettings:
    """How much is measured. SettingError on a value out of bounds."""

    rounds: int = 5
    stream_s: float = 10.0  # s of new streams, a round
    rate: float = 200.0  # new streams/s
    request_s: float = 4.0  # s of requests that are not streamed, a round
    connections: int = 32  # for those

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        within("--rounds", self.rounds, 1, 1000)
        within("--seconds", self.stream_s, 0.1, 3600.0)
        within("--rate", self.rate, 1.0, 10_000.0)
        within("--connections", self.connections, 1, 10_000)


QUICK = SpeedSettings(rounds=1, stream_s=1.0, rate=40.0, request_s=0.5)


class Target(NamedTuple):
    """What the gateway is to reach."""

    name: str
    limit: float
    is_most: bool


TARGETS = (
    Target("first_chunk_added_p50_ms", 1.0, True),
    Target("first_chunk_added_p99_ms", 3.0, True),
    Target("cpu_s_per_1000_streams", 2.5, True),
    Target("requests_per_s", 4000.0, False),
    Target("cpu_ratio_to_pass_through", 1.6, True),
)


@dataclass
class Rounds:
    """Figures of one system, a value a round."""

    values: dict[str, list[float]] = field(default_factory=dict)
    streams: int = 0
    requests: int = 0
    failed: int = 0

    def note(self, **figures: float) -> None:
        """Figures of a round."""
        for name, value in figures.items():
            self.values.setdefault(name, []).append(value)

    def summary(self) -> dict[str, Any]:
        """Medians over the rounds."""
        medians = {name: median(values) for name, values in self.values.items()}
        return medians | {"streams": self.streams, "requests": self.requests, "failed": self.failed}


def measure_gateway(settings: SpeedSettings, router: str | None, say: Say) -> dict[str, Any]:
    """Every figure of every system, and whether the targets are met.

    Raises:
        SettingError: `router` is no program.
        MeasureError: a system does not come up, or ends early.
    """
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as folder, started(Path(folder), router, say) as systems:
        rounds = {system.name: Rounds() for system in systems}
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(warm_up(systems))
            for k in range(settings.rounds):
                say(f"round {k + 1} of {settings.rounds}, load average {os.getloadavg()[0]:.1f}")
                for system in systems:
                    runner.run(one_round(system, settings, k, rounds[system.name]))
                compare(rounds)
    return result_of(settings, rounds, router, load)


async def warm_up(systems: Sequence[System]) -> None:
    """Have every system open its connections and load what it needs."""
    for system in systems:
        await stream_for(system.urls, 40.0, 0.5, 0)
        await request_for(system.urls, 8, 0.3)


async def one_round(system: System, settings: SpeedSettings, k: int, rounds: Rounds) -> None:
    """Streams, then requests, through one system."""
    gc.collect()
    gc.disable()
    try:
        before_s = system.cpu_s()
        streams = await stream_for(system.urls, settings.rate, settings.stream_s, k)
        between_s = system.cpu_s()
        requests = await request_for(system.urls, settings.connections, settings.request_s)
        after_s = system.cpu_s()
    finally:
        gc.enable()
    n = max(1, streams.complete + streams.failed)
    rounds.streams += streams.complete
    rounds.requests += requests.answered
    rounds.failed += streams.failed + requests.failed
    rounds.note(
        first_chunk_p50_ms=streams.percentile_ms(50),
        first_chunk_p99_ms=streams.percentile_ms(99),
        events_per_stream=streams.chunks / n,
        cpu_s_per_1000_streams=1e3 * (between_s - before_s) / n,
        requests_per_s=requests.answered / requests.seconds,
        cpu_ms_per_request=1e3 * (after_s - between_s) / max(1, requests.answered + requests.failed),
    )


def compare(rounds: dict[str, Rounds]) -> None:
    """Figures of the last round against other systems' of the same round."""
    direct, bare = rounds[DIRECT].values, rounds[BARE].values
    for name, mine in rounds.items():
        if name == DIRECT:
            continue
        for q in ("p50", "p99"):
            there = f"first_chunk_{q}_ms"
            mine.note(**{f"first_chunk_added_{q}_ms": mine.values[there][-1] - direct[there][-1]})
        cpu = "cpu_s_per_1000_streams"
        mine.note(cpu_ratio_to_pass_through=mine.values[cpu][-1] / max(1e-9, bare[cpu][-1]))


def result_of(settings: SpeedSettings, rounds: dict[str, Rounds], router: str | None, load: float) -> dict[str, Any]:
    """The whole result as plain values."""
    systems = {name: one.summary() for name, one in rounds.items()}
    ours = systems[GATEWAY]
    targets = []
    for target in TARGETS:
        value = ours[target.name]
        met = value <= target.limit if target.is_most else value >= target.limit
        targets.append(
            {"name": target.name, "limit": target.limit, "at_most": target.is_most, "value": value, "met": met}
        )
    skipped = {} if router else {"vllm-router": "no --router was given"}
    return {
        "command": command(settings, router),
        "systems": systems,
        "by_round": {name: one.values for name, one in rounds.items()},
        "targets": targets,
        "skipped": skipped,
        "rounds": settings.rounds,
        "rate_per_s": settings.rate,
        "stream_s": settings.stream_s,
        "connections": settings.connections,
        "machine": machine() | {"load_average_before": load, "load_average_after": os.getloadavg()[0]},
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def command(settings: SpeedSettings, router: str | None) -> str:
    """What was run, as far as it differs from the defaults."""
    words = ["headway bench gateway"]
    names = {"rounds": "rounds", "stream_s": "seconds", "rate": "rate", "connections": "connections"}
    for name, option in names.items():
        value = getattr(settings, name)
        if value != getattr(SpeedSettings(), name):
            words.append(f"--{option} {value:g}")
    return " ".join(words + (["--router vllm-router"] if router else []) + ["--out docs/benchmarks.md"])


def machine() -> dict[str, Any]:
    """Where it was measured."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return {"processor": model, "cores": os.cpu_count(), "python": platform.python_version()}
