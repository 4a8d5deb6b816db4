"""From measured durations to a calibrated profile: a fit with non-negative coefficients and relative weights.

Decode-only iterations give a0, a1, a2; iterations with prefill give c0 .. c5 (see model/profile.py). A TTFT also holds
what a request costs outside the engine (HTTP, tokenisation): a constant of its own, told from c0 by the gaps that
prompts tear into decoding streams, and left out of the profile. A line over B or T
becomes a piecewise one where the points speak for it strongly (Bayesian information criterion).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from control.errors import SettingError
from control.model.calibrated import Calibrated
from control.model.measured import Iteration, Limits, Point
from control.model.profile import Curve, DecodeLine, Floats, MixedCost
from control.tuning.nnls import nnls

RESAMPLES = 200
STRONGLY = 10.0  # difference of the criterion from which evidence counts as very strong (Kass and Raftery 1995)
EXACT = 1e-12  # mean square of relative residuals that is as good as none
POINTS_A_SEGMENT = 2
LEAST_DECODE, LEAST_PREFILL = 3, 3

Columns = Callable[[Iteration], list[float]]


@dataclass(frozen=True)
class Fitted:
    """Coefficients of one of the two forms, with what is known of their error."""

    knots: tuple[float, ...]  # ends of the segments of the curve; () for a line
    values: Floats  # base, slope a segment (or one), rest, ms
    low: Floats  # 90 % interval, bootstrap over residuals
    high: Floats
    left_out: Floats  # relative errors, each point predicted by the fit of the others
    errors: Floats  # relative errors of the fit itself

    @property
    def segments(self) -> int:
        """Slopes of the curve."""
        return max(1, len(self.knots))

    @property
    def curve(self) -> Curve:
        """Cost over B or T."""
        base, slopes = float(self.values[0]), [float(v) for v in self.values[1 : 1 + self.segments]]
        if not self.knots:
            return Curve((0.0, 1.0), (base, base + slopes[0]))
        heights = base + np.cumsum(np.diff([0.0, *self.knots]) * slopes)
        return Curve((0.0, *self.knots), (base, *(float(h) for h in heights)))

    @property
    def rest(self) -> list[float]:
        """Coefficients behind the curve."""
        return [float(v) for v in self.values[1 + self.segments :]]


def calibrate(points: Sequence[Point], limits: Limits, gpu: str, date: str, gpus: int = 1) -> Calibrated:
    """The profile that `points` of a server with `limits` give.

    Raises:
        SettingError: too few points of a regime.
    """
    decode = [point for point in points if point.regime == "decode"]
    mixed = [point for point in points if point.regime != "decode"]
    prefills = sum(point.regime == "prefill" for point in mixed)
    if len(decode) < LEAST_DECODE or prefills < LEAST_PREFILL:
        raise SettingError(
            f"calibration: {len(decode)} decode and {prefills} prefill points: at least {LEAST_DECODE} and "
            f"{LEAST_PREFILL} are needed; allow more time"
        )
    one, two = best_fit(decode, lambda i: i.decoding, of_decode), best_fit(mixed, lambda i: i.tokens, of_mixed)
    kv, area, seq, ctx, request_ms = two.rest
    return Calibrated(
        gpu=gpu,
        model=limits.model,
        gpus=gpus,
        engine_version=limits.version,
        date=date,
        decode=DecodeLine(one.curve, one.rest[0]),
        mixed=MixedCost(two.curve, area, kv, seq, ctx),
        limits=known_limits(limits),
        fit=quality(one, two, mixed) | {"request_ms": request_ms},
        intervals=intervals(one, "a", ("a2_ms",))
        | intervals(two, "c", ("c2_ms", "c3_ms", "c4_ms", "c5_ms", "request_ms")),
    )


def of_decode(i: Iteration) -> list[float]:
    """Columns behind the curve over B."""
    return [i.kv]


def of_mixed(i: Iteration) -> list[float]:
    """Columns behind the curve over T."""
    return [i.kv, i.area, float(i.decoding), float(i.held)]


def best_fit(points: Sequence[Point], count: Callable[[Iteration], int], rest: Columns) -> Fitted:
    """A line over `count`, or a piecewise one where the points ask for it."""
    line = fit(points, (), count, rest)
    knots = possible_knots(points, count)
    if len(knots) < 2:
        return line
    bent = fit(points, knots, count, rest)
    return bent if criterion(line) - criterion(bent) > STRONGLY else line


def criterion(found: Fitted) -> float:
    """n ln(mean square residual) + k ln n: the smaller, the better does the form explain the points."""
    n = len(found.errors)
    return n * float(np.log(max(EXACT, float(np.mean(found.errors**2))))) + len(found.values) * float(np.log(n))


def possible_knots(points: Sequence[Point], count: Callable[[Iteration], int]) -> tuple[float, ...]:
    """Powers of four within the counts that were measured, each segment with points of its own; () for none."""
    counts = sorted(count(iteration) for point in points for iteration in point.iterations)
    if not counts:
        return ()
    ends, start, four = [], 0.0, 4.0
    while four < counts[-1]:
        inside, beyond = sum(start < c <= four for c in counts), sum(c > four for c in counts)
        if min(inside, beyond) >= POINTS_A_SEGMENT:
            ends.append(four)
            start = four
        four *= 4.0
    return (*ends, float(counts[-1])) if ends else ()


def fit(points: Sequence[Point], knots: tuple[float, ...], count: Callable[[Iteration], int], rest: Columns) -> Fitted:
    """The fit of `points` with these knots; rows are weighted by 1 / ms, so errors are relative."""
    rows = np.array([summed(point, knots, count, rest) for point in points])
    if {point.regime for point in points} == {"prefill"}:
        rows[:, -1] = 0.0  # nothing tells a request's own cost from the iteration's
    rows /= np.array([[point.ms] for point in points])
    ones = np.ones(len(points))
    values = nnls(rows, ones)
    residuals = ones - rows @ values
    low, high = bootstrap(rows, residuals)
    return Fitted(knots, values, low, high, left_out_errors(rows), np.abs(residuals))


def summed(point: Point, knots: tuple[float, ...], count: Callable[[Iteration], int], rest: Columns) -> Floats:
    """Columns of a point, summed over its iterations; with prefill, the last one is the request's own cost."""
    rows = [[1.0, *segments(count(i), knots), *rest(i)] for i in point.iterations]
    request = [] if point.regime == "decode" else [float(point.regime == "prefill")]
    return np.asarray([*np.sum(rows, axis=0), *request], np.float64)


def segments(count: int, knots: tuple[float, ...]) -> list[float]:
    """How much of `count` falls into each segment; the last one goes on."""
    starts, ends = (0.0, *knots[:-1]), (*knots[:-1], np.inf)
    return [float(min(max(count - start, 0.0), end - start)) for start, end in zip(starts, ends, strict=True)]


def left_out_errors(rows: Floats) -> Floats:
    """Relative error at each point under the fit of all others."""
    keep = ~np.eye(len(rows), dtype=bool)
    fits = [nnls(rows[others], np.ones(len(rows) - 1)) for others in keep]
    return np.array([abs(1.0 - row @ values) for row, values in zip(rows, fits, strict=True)])


def bootstrap(rows: Floats, residuals: Floats) -> tuple[Floats, Floats]:
    """5th and 95th percentile of every coefficient when the residuals are drawn again."""
    chance = np.random.Generator(np.random.PCG64(0))
    freedom = np.sqrt(len(rows) / max(1, len(rows) - rows.shape[1]))
    fitted = 1.0 - residuals
    draws = [nnls(rows, fitted + freedom * chance.choice(residuals, len(rows))) for _ in range(RESAMPLES)]
    low, high = np.percentile(draws, [5.0, 95.0], axis=0)
    return low, high


def quality(decode: Fitted, mixed: Fitted, points: Sequence[Point]) -> dict[str, Any]:
    """Errors by regime, as shares of the measured time."""
    regimes = np.array([point.regime for point in points])
    parts = {name: (mixed.errors[regimes == name], mixed.left_out[regimes == name]) for name in ("prefill", "mixed")}
    parts = {"decode": (decode.errors, decode.left_out), **parts}
    every = tuple(np.concatenate([part[k] for part in parts.values()]) for k in (0, 1))
    return {name: stated(*part) for name, part in (parts | {"all": (every[0], every[1])}).items() if len(part[0])}


def stated(errors: Floats, left_out: Floats) -> dict[str, Any]:
    """Number of points with the mean and the 95th percentile of their errors."""
    return {
        "points": len(errors),
        "mean_error": float(errors.mean()),
        "p95_error": float(np.percentile(errors, 95)),
        "leave_one_out_error": float(left_out.mean()),
    }


def intervals(found: Fitted, letter: str, rest: tuple[str, ...]) -> dict[str, list[float]]:
    """90 % interval of every coefficient by name; slopes of segments are numbered from 0."""
    slopes = [f"{letter}1_ms"] if not found.knots else [f"{letter}1_ms[{k}]" for k in range(found.segments)]
    names = [f"{letter}0_ms", *slopes, *rest]
    return {name: [float(a), float(b)] for name, a, b in zip(names, found.low, found.high, strict=True)}


def known_limits(limits: Limits) -> dict[str, int]:
    """The limits that the server states."""
    names = ("kv_tokens", "block_size", "max_num_seqs", "max_num_batched_tokens", "max_model_len")
    return {name: value for name in names if (value := getattr(limits, name)) is not None}
