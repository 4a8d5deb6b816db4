"""All settings of a fork, over all seeds, the most wanted first; what is there is told as it comes."""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np

from control.errors import HeadwayError
from control.policy.tables import Floats
from control.tuning.whatif.apply import commands_of
from control.tuning.whatif.deck import deck_of
from control.tuning.whatif.fork import Base, Fork, own_future, resampled
from control.tuning.whatif.patience import Patience, StoppedError
from control.tuning.whatif.run import FIGURES, LINES, Ahead, run_ahead, times_ahead_s
from control.tuning.whatif.spec import RESAMPLED, Setting, Spec

Row = dict[str, Any]
BAND = (10.0, 90.0)  # percentiles over seeds
WORKERS = 2
NICE = 10  # of the threads that run ahead: together they take all of a small machine, its dashboard too
LEAST_THROUGHPUT = 0.95  # a setting that completes less than this share of what is completed now is not the best
SIGNIFICANT = 12  # digits kept of what is told
MOST_HELD = 1_000_000  # calls of bases kept for settings to come, half a kB each
STOPPED = "stopped: another fork was asked for"


def give_way() -> None:
    """Have this thread yield to whoever shows what it computes, on Linux: elsewhere only processes have a priority."""
    if sys.platform == "linux":
        with suppress(OSError):
            me = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, me, max(NICE, os.getpriority(os.PRIO_PROCESS, me)))


class Lab:
    """One fork under evaluation. A setting that takes longer than `most_s` (wall s) is given up, with the reason."""

    def __init__(self, given: Fork, spec: Spec, most_s: float = math.inf) -> None:
        self.given, self.spec, self.most_s = given, spec, most_s
        self.deck = deck_of(given.contents, len(given.names.steps))
        self.bases: dict[tuple[int, float, float], Base] = {}  # by seed, load and scale of deadlines
        self.making = Lock()
        self.p95_s: dict[int, Floats] = {}  # of settings that are done, by seed
        self.begun_s, self.first_s, self.cpu_s = time.perf_counter(), 0.0, 0.0
        self.events = 0

    def evaluate(self, tell: Callable[[Row], None], should_stop: Callable[[], bool] = lambda: False) -> Row:
        """Run every setting; `tell` is given the result so far after each. The last result is returned.

        `should_stop` is asked all the time, by several threads: True ends it at once, as failed.
        """
        done: list[Row] = []
        with ThreadPoolExecutor(WORKERS, "whatif", give_way) as pool:
            for index, setting in enumerate(self.spec.settings):
                patience = self.patience(should_stop)
                try:
                    early = [] if done else self.early(index, setting, pool, patience, tell)
                    done.append(self.setting(index, setting, pool, patience, early))
                except StoppedError:
                    return self.result(done, "failed", STOPPED)
                self.first_s = self.first_s or time.perf_counter() - self.begun_s
                if len(done) < len(self.spec.settings):
                    tell(self.result(done, "running"))
        return self.result(done, "done")

    def patience(self, should_stop: Callable[[], bool]) -> Patience:
        """What is asked while one setting is at work."""
        return Patience(should_stop, self.most_s, self.spec.seeds * self.spec.horizon_s)

    def early(
        self, index: int, setting: Setting, pool: ThreadPoolExecutor, patience: Patience, tell: Callable[[Row], None]
    ) -> list[Ahead]:
        """The runs of the first seeds, told at once, so that there is something to see; its row says of how many.

        Raises:
            StoppedError: it was to end.
        """
        if self.spec.seeds <= WORKERS:
            return []
        try:
            runs = self.runs(range(WORKERS), setting, pool, patience)
        except HeadwayError:
            return []  # the whole setting fails in the same way, and says why
        self.first_s = time.perf_counter() - self.begun_s
        tell(self.result([self.row(index, setting, runs) | {"seeds": len(runs)}], "running") | {"progress": 0.0})
        return runs

    def runs(self, seeds: range, setting: Setting, pool: ThreadPoolExecutor, patience: Patience) -> list[Ahead]:
        """One setting over some seeds."""
        patience.look()
        return list(pool.map(lambda seed: self.timed(seed, setting, patience), seeds))

    def setting(
        self, index: int, setting: Setting, pool: ThreadPoolExecutor, patience: Patience, early: Sequence[Ahead] = ()
    ) -> Row:
        """One setting over all seeds, the first of which have run.

        Raises:
            StoppedError: it was to end.
        """
        try:
            runs = [*early, *self.runs(range(len(early), self.spec.seeds), setting, pool, patience)]
        except HeadwayError as error:
            return {"index": index, "name": setting.name, "problem": str(error)}
        self.p95_s[index] = np.array([run.figures[FIGURES.index("p95_s")] for run in runs])
        self.events += sum(run.events for run in runs)
        return self.row(index, setting, runs)

    def row(self, index: int, setting: Setting, runs: Sequence[Ahead]) -> Row:
        """What is told of one setting."""
        commands, why_not = commands_of(setting, self.given.fleet)
        return {
            "index": index,
            "name": setting.name,
            "problem": None,
            "figures": figures_of(runs),
            "lines": lines_of(runs),
            "applicable": not why_not,
            "why_not": why_not,
            "commands": [list(command) for command in commands],
        }

    def timed(self, seed: int, setting: Setting, patience: Patience) -> Ahead:
        """One run; its CPU time is counted."""
        cpu_s = time.thread_time()
        try:
            base = self.base_for(seed, setting, patience)
            return run_ahead(self.given, base, setting, self.spec.horizon_s, patience.look)
        finally:
            self.cpu_s += time.thread_time() - cpu_s

    def base_for(self, seed: int, setting: Setting, patience: Patience) -> Base:
        """The fork with its work, of one seed; settings of equal load share it, as far as there is room for so many."""
        key = (seed, setting.load, setting.slo_scale)
        with self.making:
            patience.look()
            if key in self.bases:
                return self.bases[key]
            if self.spec.arrivals == RESAMPLED:
                base = resampled(self.given, self.deck, *key, self.spec.horizon_s)
            else:
                base = own_future(self.given, *key[1:])
            held = sum(len(one.world.calls) for one in self.bases.values())
            if held + len(base.world.calls) <= MOST_HELD:
                self.bases[key] = base
            return base

    def result(self, done: list[Row], state: str, reason: str | None = None) -> Row:
        """What is there so far."""
        return {
            "state": state,
            "reason": reason,
            "progress": len(done) / len(self.spec.settings),
            "wall_s": time.perf_counter() - self.begun_s,
            "cpu_s": self.cpu_s,
            "first_s": self.first_s,
            "events": self.events,
            "times_s": times_ahead_s(self.spec.horizon_s).tolist(),
            "settings": list(done),
            "best": self.best(done),
            "guard": None,
        }

    def best(self, done: Sequence[Row]) -> int:
        """The setting of the lowest mean P95 that beats the first one by more than chance, else the first one.

        Beyond chance: the band of the gain over seeds, pair by pair, lies above zero. A setting that completes clearly
        less than the first one is no candidate: what never ends has no latency.
        """
        first = self.p95_s.get(0)
        if first is None or not done or done[0].get("problem"):
            return 0
        floor = LEAST_THROUGHPUT * (done[0]["figures"]["throughput_wps"]["mean"] or 0.0)
        best, lowest = 0, float(np.mean(first))
        for row in done[1:]:
            p95_s = self.p95_s.get(row["index"])
            if p95_s is None or (row["figures"]["throughput_wps"]["mean"] or 0.0) < floor:
                continue
            gain_low = banded(1.0 - p95_s / first)[0]
            if gain_low > 0.0 and float(np.mean(p95_s)) < lowest:
                best, lowest = row["index"], float(np.mean(p95_s))
        return best


def figures_of(runs: Sequence[Ahead]) -> Row:
    """Each figure with its mean and band over the runs."""
    values = np.stack([run.figures for run in runs])
    return {name: spread(values[:, k]) for k, name in enumerate(FIGURES)}


def lines_of(runs: Sequence[Ahead]) -> Row:
    """Each line with its mean and band over the runs, point by point."""
    values = np.stack([run.lines for run in runs])  # [runs, LINES, STEPS]
    known = np.asarray(~np.isnan(values).any(axis=0))
    filled = np.where(known, values, 0.0)
    low, high = np.percentile(filled, BAND, axis=0, method="weibull")
    parts = {"mean": filled.mean(axis=0), "low": low, "high": high}
    told: Row = {}
    for k, name in enumerate(LINES):
        told[name] = {part: column(points[k], known[k]) for part, points in parts.items()}
    return told


def column(points: Floats, known: Any) -> list[float | None]:
    """Points of a line as they are told; None where nothing was measured in some run."""
    pairs = zip(points.tolist(), known.tolist(), strict=True)
    return [rounded(value) if is_known else None for value, is_known in pairs]


def spread(values: Floats) -> dict[str, float | None]:
    """Mean and band of what was measured; None where nothing was."""
    known = values[~np.isnan(values)]
    if not len(known):
        return {"mean": None, "low": None, "high": None}
    low, high = banded(known)
    return {"mean": rounded(float(known.mean())), "low": rounded(low), "high": rounded(high)}


def banded(values: Floats) -> tuple[float, float]:
    """Where one more draw would lie in 80 of 100 cases, as far as so few can tell (Weibull's plotting position)."""
    low, high = np.percentile(values, BAND, method="weibull")
    return float(low), float(high)


def rounded(value: float) -> float:
    """The value with SIGNIFICANT digits."""
    return float(f"{value:.{SIGNIFICANT}g}")
