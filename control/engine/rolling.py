"""Live figures over the last simulated minutes: latency percentiles, attainment, rates."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from control.policy.tables import Floats


class Ended(NamedTuple):
    """A workflow that ended."""

    at_s: float  # simulated s
    latency_s: float
    met: bool  # within its SLO, and not broken
    done: bool  # ran to its end


class Meter(NamedTuple):
    """Running totals at a moment."""

    at_s: float  # simulated s
    energy_j: float
    generated: int  # tokens
    context: int  # full-context tokens of completed calls
    idle_j: float = 0.0  # J of energy_j drawn while idle


@dataclass
class Rolling:
    """What ended, and the meters, over the last `window_s` simulated seconds."""

    window_s: float = 300.0
    ended: deque[Ended] = field(default_factory=deque)
    meters: deque[Meter] = field(default_factory=deque)
    completed: int = 0  # workflows, since the start
    failed: int = 0  # workflows that broke, since the start
    refused: int = 0  # calls, since the start
    context: int = 0  # full-context tokens of completed calls, since the start
    version: int = 0  # changes with `ended`
    looked_at: tuple[int, Floats, int] = (-1, np.zeros(0), 0)  # version, latencies of those done, s, and how many met

    def note(self, ended: Ended) -> None:
        """A workflow ended."""
        self.ended.append(ended)
        self.version += 1
        self.completed += ended.done
        self.failed += not ended.done

    def read(self, meter: Meter) -> None:
        """Take a reading of the running totals and forget what left the window."""
        if self.meters and self.meters[-1].at_s == meter.at_s:
            self.meters.pop()  # simulated time stands still
        self.meters.append(meter)
        while len(self.meters) > 2 and self.meters[1].at_s <= meter.at_s - self.window_s:
            self.meters.popleft()
        while self.ended and self.ended[0].at_s < meter.at_s - self.window_s:
            self.ended.popleft()
            self.version += 1

    def look(self) -> tuple[int, Floats, int]:
        """Version, latencies of the workflows that ran to their end, s, and how many met their SLO; made once."""
        if self.looked_at[0] != self.version:
            done = np.array([e.latency_s for e in self.ended if e.done])
            self.looked_at = self.version, done, sum(e.met for e in self.ended)
        return self.looked_at

    def percentile_s(self, q: float) -> float | None:
        """The q-th percentile of latency over the window, s; None when nothing ran to its end in it."""
        done = self.look()[1]
        return float(np.percentile(done, q)) if len(done) else None

    def attainment(self) -> float | None:
        """Share of the window's ended workflows that met their SLO; None when none ended."""
        return self.look()[2] / len(self.ended) if self.ended else None

    def throughput_wps(self, now_s: float) -> float:
        """Workflows that ran to their end per simulated second."""
        span_s = min(self.window_s, now_s)
        return len(self.look()[1]) / span_s if span_s > 0.0 else 0.0

    def tokens_per_s(self) -> float:
        """Generated tokens per simulated second."""
        if len(self.meters) < 2 or self.meters[-1].at_s <= self.meters[0].at_s:
            return 0.0
        first, last = self.meters[0], self.meters[-1]
        return (last.generated - first.generated) / (last.at_s - first.at_s)

    def joules(self, idle_billed: bool = True) -> float:
        """J drawn over the window; not `idle_billed`: without those drawn while idle."""
        if not self.meters:
            return 0.0
        first, last = self.meters[0], self.meters[-1]
        return last.energy_j - first.energy_j - (0.0 if idle_billed else last.idle_j - first.idle_j)

    def tokens_per_joule(self, idle_billed: bool = True) -> float | None:
        """Full-context tokens of completed calls per joule drawn, idle included unless told; None before any joule."""
        joules = self.joules(idle_billed)
        return (self.meters[-1].context - self.meters[0].context) / joules if joules > 0.0 else None

    def joules_per_workflow(self, idle_billed: bool = True) -> float | None:
        """J drawn per workflow that ran to its end in the window; None before one did."""
        done = len(self.look()[1])
        return self.joules(idle_billed) / done if done else None
