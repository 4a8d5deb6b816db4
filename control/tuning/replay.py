"""Replays of a live fleet's recent past, on forks of a state it was in."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from control.metrics.latency import mean, percentile, workflow_latencies_s
from control.metrics.slo import attainment, finished_debt_s
from control.model.workload import Workload
from control.policy.codes import FUTURE
from control.policy.tables import Ints, Table
from control.tuning.alpha import CONFIRMATIONS, Choice, replay_p95_s, replayed, sweep
from control.tuning.episodes import Arrival, Episode, Names, as_it_came, resample
from control.twin.repack import repack
from control.twin.world import World, silent

Row = dict[str, Any]
REVIEWS = 5  # draws of what is not known yet of what came


class Found(NamedTuple):
    """What a tuning run found, the twin runs behind its prediction, and what it cost."""

    choice: Choice
    predicted: Row  # figures of a twin run under the chosen alpha
    unchanged: Row  # the same arrivals under the alpha in force
    wall_s: float
    cpu_s: float


class Review(NamedTuple):
    """P95 (s) of what really came, under the alpha that was set and under the one before; means over draws."""

    after_p95_s: float
    before_p95_s: float

    @property
    def gain(self) -> float:
        """What the change gained, relative; below 0 it lost."""
        return 1.0 - self.after_p95_s / self.before_p95_s


@dataclass
class Past:
    """A state of the past, forked, and what has come since."""

    state: World
    streams: Ints
    declared: Table
    arrivals: Sequence[Arrival | Episode]
    contents: Sequence[Episode]
    names: Names
    instances: Sequence[str]  # names
    policy: Table

    def sweep(self, current: float, resamples: int, progress: Callable[[float], None]) -> Found:
        """The choice among alphas over bootstrap resamples of the arrivals."""
        wall_s, cpu_s = time.perf_counter(), time.thread_time()
        bases = [self.resampled(seed) for seed in range(resamples + CONFIRMATIONS)]
        some, fresh = bases[:resamples], bases[resamples:]
        choice = sweep(some, fresh, current, progress=progress, workers=1)
        predicted = self.figures(*fresh[0], choice.alpha)
        is_same = abs(choice.alpha - current) < 1e-9
        unchanged = predicted if is_same else self.figures(*fresh[0], current)
        return Found(choice, predicted, unchanged, time.perf_counter() - wall_s, time.thread_time() - cpu_s)

    def review(self, after: float, before: float) -> Review:
        """How two alphas would have done on what really came."""
        bases = [self.as_it_came(seed) for seed in range(REVIEWS)]
        means = [
            float(np.mean([replay_p95_s(base, alpha, first)[0] for base, first in bases])) for alpha in (after, before)
        ]
        return Review(*means)

    def resampled(self, seed: int) -> tuple[World, int]:
        """The state with a resample of what arrived since, and the row of its first workflow."""
        start_s = float(self.state.clock[0]["now_s"])
        return self.with_work(resample(self.arrivals, self.contents, self.names, start_s, seed))

    def as_it_came(self, seed: int) -> tuple[World, int]:
        """The state with what really arrived since, and the row of its first workflow."""
        return self.with_work(as_it_came(self.arrivals, self.contents, self.names, seed))

    def with_work(self, work: Workload) -> tuple[World, int]:
        """The state about to take in `work`, and the row of its first workflow."""
        used = work.calls["stream"] >= 0
        work.calls["stream"][used] += int(self.streams.max(initial=-1)) + 1
        world = silent(self.state)._replace(policy=self.policy.copy())
        world, _ = repack(world, self.streams, work, self.declared, drop_future=True)
        return world, int((world.workflows["state"] != FUTURE).sum())

    def figures(self, base: World, first: int, alpha: float) -> Row:
        """What a twin run under `alpha` gives: of the workflows that arrive in it, and of each instance."""
        world = replayed(base, alpha)
        arrived = world.workflows[first:]
        latencies_s = workflow_latencies_s(arrived)
        span_s = float(world.clock[0]["now_s"] - base.clock[0]["now_s"])
        return {
            "alpha": alpha,
            "workflows": len(arrived),
            "p50_s": percentile(latencies_s, 50),
            "p95_s": percentile(latencies_s, 95),
            "p99_s": percentile(latencies_s, 99),
            "mean_s": mean(latencies_s),
            "slo_attainment": attainment(arrived),
            "slo_debt_s": finished_debt_s(arrived),
            "span_s": span_s,
            "per_instance": [
                {
                    "name": name,
                    "finished": int(after["finished"] - before["finished"]),
                    "busy_fraction": float(after["busy_s"] - before["busy_s"]) / span_s if span_s > 0.0 else None,
                    "preemptions": int(after["preemptions"] - before["preemptions"]),
                }
                for name, before, after in zip(self.instances, base.instances, world.instances, strict=True)
            ],
        }
