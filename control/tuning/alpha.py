"""The alpha tuner: replay recent history over a grid of alpha, keep the alpha of the lowest P95.

HexGen-Flow (section 4) tunes alpha by trace-driven replay over a grid of 0.1; window, trigger and cost are ours.
Several bootstrap resamples of the window's arrivals, the same for every alpha, give a confidence band: of P95, and of
the gain over the alpha in force, resample by resample.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from control.errors import SettingError
from control.metrics.latency import percentile, workflow_latencies_s
from control.policy.tables import Floats
from control.twin.kernel import advance
from control.twin.world import World, fork

GRID = tuple(round(0.1 * k, 1) for k in range(11))
FINE = (-0.05, 0.05)  # second pass: around the best of the grid
BAND = (10.0, 90.0)  # percentiles of the resamples that the band spans
RESAMPLES = 5
CONFIRMATIONS = 10  # fresh resamples on which the chosen alpha meets the current one
WORKERS = 2


@dataclass
class Curve:
    """P95 workflow latency by alpha and resample."""

    alphas: list[float]
    p95_s: Floats  # [alphas, resamples]
    events: int = 0
    calls: int = 0

    def rows(self) -> list[dict[str, float]]:
        """One entry per alpha, sorted: mean P95 and its band, s."""
        order = np.argsort(self.alphas)
        lows, highs = np.percentile(self.p95_s, BAND, axis=1)
        means = self.p95_s.mean(axis=1)
        return [
            {
                "alpha": self.alphas[k],
                "p95_s": float(means[k]),
                "low_s": float(lows[k]),
                "high_s": float(highs[k]),
            }
            for k in order
        ]

    def best(self, current: float) -> int:
        """Position of the lowest mean P95; on a tie the alpha nearest to the current one."""
        means = self.p95_s.mean(axis=1)
        return min(range(len(self.alphas)), key=lambda k: (means[k], abs(self.alphas[k] - current), self.alphas[k]))


@dataclass(frozen=True)
class Choice:
    """What the tuner found."""

    alpha: float
    current: float
    gain: float  # expected relative P95 gain over the current alpha
    gain_low: float
    gain_high: float
    predicted_p95_s: float
    predicted_low_s: float
    predicted_high_s: float
    curve: list[dict[str, float]] = field(default_factory=list)
    calls: int = 0
    events: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The choice as stored and printed."""
        return {
            "alpha": self.alpha,
            "current_alpha": self.current,
            "gain": self.gain,
            "gain_low": self.gain_low,
            "gain_high": self.gain_high,
            "predicted_p95_s": self.predicted_p95_s,
            "predicted_low_s": self.predicted_low_s,
            "predicted_high_s": self.predicted_high_s,
            "curve": self.curve,
            "calls": self.calls,
            "events": self.events,
        }


def replayed(base: World, alpha: float) -> World:
    """`base`, forked, after it has run to its end under `alpha`. Releases the GIL while it runs."""
    world = fork(base)
    world.policy[0]["alpha"] = alpha
    advance(world, np.inf)
    return world


def replay_p95_s(base: World, alpha: float, first_workflow: int) -> tuple[float, int]:
    """P95 latency (s) of the workflows from row `first_workflow` on, when `base` runs to its end under `alpha`.

    Also the number of events.
    """
    world = replayed(base, alpha)
    value = percentile(workflow_latencies_s(world.workflows[first_workflow:]), 95.0)
    return (np.inf if value is None else value), int(world.clock[0]["events"])


def sweep(
    bases: Sequence[tuple[World, int]],
    fresh: Sequence[tuple[World, int]],
    current: float,
    grid: Sequence[float] = GRID,
    progress: Callable[[float], None] = lambda share: None,
    workers: int = WORKERS,
) -> Choice:
    """Evaluate the grid, then around its best, on every resampled world; choose the lowest mean P95.

    The best of many is partly lucky: what it gains over the current alpha, and the P95 to be expected of it, are taken
    from fresh resamples that had no part in the choice.

    Args:
        bases: worlds about to run, each with the row of the first workflow that counts.
        fresh: the same of other resamples.
        current: the alpha in force, evaluated too.
        grid: alphas of the first pass, each in [0, 1].
        progress: told the share done, from 0 to 1.
        workers: threads; the twin runs without the GIL. 1: all on the caller's.

    Raises:
        SettingError: an empty grid or an alpha outside [0, 1].
    """
    check_grid(grid)
    first = sorted({*grid, round(current, 6)})
    total = (len(first) + len(FINE)) * len(bases) + 2 * len(fresh)
    with ThreadPoolExecutor(workers) if workers > 1 else nullcontext() as pool:
        curve = evaluate(bases, first, pool, lambda done: progress(done / total))
        best = curve.alphas[curve.best(current)]
        second = sorted({round(best + d, 6) for d in FINE if 0.0 <= best + d <= 1.0} - set(first))
        finer = evaluate(bases, second, pool, lambda done: progress((len(first) * len(bases) + done) / total))
        joined = Curve(curve.alphas + finer.alphas, np.concatenate([curve.p95_s, finer.p95_s]))
        chosen = joined.alphas[joined.best(current)]
        duel = evaluate(fresh, [chosen, round(current, 6)], pool, lambda done: progress(1.0 - 2 * len(fresh) / total))
    progress(1.0)
    joined.events = curve.events + finer.events + duel.events
    joined.calls = sum(len(base.calls) for base, _ in (*bases, *fresh))
    return choose(joined, duel, current)


def evaluate(
    bases: Sequence[tuple[World, int]],
    alphas: Sequence[float],
    pool: ThreadPoolExecutor | None,
    progress: Callable[[int], None],
) -> Curve:
    """P95 of every alpha on every world, on the threads of `pool` or on this one."""
    pairs = [(base, alpha, first) for alpha in alphas for base, first in bases]
    values, events = [], 0
    results = (pool.map if pool else map)(lambda pair: replay_p95_s(*pair), pairs)
    for done, (p95_s, n) in enumerate(results, 1):
        values.append(p95_s)
        events += n
        progress(done)
    return Curve(list(alphas), np.array(values).reshape(len(alphas), len(bases)), events)


def choose(curve: Curve, duel: Curve, current: float) -> Choice:
    """The best alpha of a curve, with its gain over the current one and the band it is expected in.

    `duel` holds P95 of the best alpha (first row) and of the current one (second row) on fresh resamples.
    """
    gains = 1.0 - duel.p95_s[0] / duel.p95_s[1]
    gain_low, gain_high = np.percentile(gains, BAND)
    low_s, high_s = np.percentile(duel.p95_s[0], BAND)
    return Choice(
        alpha=duel.alphas[0],
        current=current,
        gain=float(gains.mean()),
        gain_low=float(gain_low),
        gain_high=float(gain_high),
        predicted_p95_s=float(duel.p95_s[0].mean()),
        predicted_low_s=float(low_s),
        predicted_high_s=float(high_s),
        curve=curve.rows(),
        calls=curve.calls,
        events=curve.events,
    )


def check_grid(grid: Sequence[float]) -> None:
    """Refuse a grid that cannot be evaluated.

    Raises:
        SettingError: it is empty, or has an alpha outside [0, 1].
    """
    if not grid:
        raise SettingError("grid is empty: expected alphas from 0 to 1")
    for alpha in grid:
        if not 0.0 <= alpha <= 1.0:
            raise SettingError(f"grid: alpha = {alpha:g}: expected a number from 0 to 1")


def parse_grid(text: str) -> tuple[float, ...]:
    """Alphas of "start:stop:step" (stop included) or of a comma list.

    Raises:
        SettingError: neither form, or out of bounds.
    """
    try:
        if ":" in text:
            start, stop, step = (float(part) for part in text.split(":"))
            if not 0.001 <= step <= 1.0:
                raise ValueError
            grid = tuple(round(float(a), 6) for a in np.arange(start, stop + step / 2.0, step))
        else:
            grid = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise SettingError(f"grid = {text!r}: expected start:stop:step, such as 0:1:0.1, or alphas by commas") from None
    check_grid(grid)
    return grid
