"""Arrival times, deadlines' scale and the policies' own randomness, all drawn before a run."""

import math

import numpy as np

from control.errors import SettingError
from control.model.workload import Workload
from control.workload.build import settle
from control.workload.table import Floats

PROCESSES = ("poisson", "gamma", "recorded")

#: Rate of a trace that has no times and is given none, workflows/s.
UNTIMED_RATE = 0.1

_ARRIVALS, _DRAW_A, _DRAW_B = range(3)


def generator(seed: int, *stream: int) -> np.random.Generator:
    """PCG64 for one purpose: other `stream` numbers of one seed give independent numbers.

    Raises SettingError on a seed below 0.
    """
    if seed < 0:
        raise SettingError(f"seed = {seed}: expected a whole number >= 0")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=stream)))


def has_times(workload: Workload) -> bool:
    """Whether the workload knows when its workflows arrive."""
    return not bool(np.isnan(workload.workflows["arrival_s"]).any())


def arrange(
    workload: Workload,
    *,
    rate: float | None = None,
    process: str = "poisson",
    cv: float = 1.0,
    seed: int = 0,
    slo_scale: float = 1.0,
    scale: float = 1.0,
) -> Workload:
    """`workload` ready to run: arrivals set, workflows sorted, deadlines scaled, draws filled in.

    rate (workflows/s) draws new arrivals by `process`: poisson, or gamma gaps with coefficient of variation
    `cv`; recorded stretches the recorded times to that mean rate. Without a rate recorded times stay, and
    a trace without times gets UNTIMED_RATE (Poisson, where `process` is recorded). `scale` plays arrivals
    that many times faster. slo_scale multiplies every workflow's scale and every deadline the trace states.
    The draws of a call depend on the seed and its place in `workload` alone, and gaps are unit gaps over
    the rate, so runs at two rates see the same chance. Raises SettingError.
    """
    _check(rate=1.0 if rate is None else rate, cv=cv, slo_scale=slo_scale, scale=scale)
    if process not in PROCESSES:
        raise SettingError(f"process = {process!r}: expected one of {', '.join(PROCESSES)}")
    workflows, calls = workload.workflows.copy(), workload.calls.copy()
    workflows["arrival_s"] = _arrivals(workload, rate, process, cv, seed) / scale
    workflows["slo_scale"] *= slo_scale
    workflows["slo_s"] *= slo_scale
    calls["draw_a"] = generator(seed, _DRAW_A).random(len(calls))
    calls["draw_b"] = generator(seed, _DRAW_B).random(len(calls))
    return settle(workload._replace(workflows=workflows, calls=calls))


def _check(**positive: float) -> None:
    for name, value in positive.items():
        if not (math.isfinite(value) and value > 0):
            raise SettingError(f"{name} = {value}: expected a finite number > 0")


def _arrivals(workload: Workload, rate: float | None, process: str, cv: float, seed: int) -> Floats:
    recorded: Floats = workload.workflows["arrival_s"]
    timed = has_times(workload)
    if timed and rate is None:
        return recorded
    if timed and process == "recorded" and rate is not None:
        return _stretched(recorded, rate)
    shape = cv if process == "gamma" else 1.0
    return poisson_or_gamma(len(recorded), UNTIMED_RATE if rate is None else rate, shape, seed)


def poisson_or_gamma(n: int, rate: float, cv: float, seed: int) -> Floats:
    """`n` arrival times in s: gamma gaps of mean 1/rate and coefficient of variation `cv` (1: Poisson)."""
    rng = generator(seed, _ARRIVALS)
    shape = 1.0 / (cv * cv)
    gaps = rng.standard_exponential(n) if cv == 1.0 else rng.gamma(shape, 1.0 / shape, n)
    arrivals: Floats = np.cumsum(gaps) / rate
    return arrivals


def _stretched(recorded: Floats, rate: float) -> Floats:
    """Recorded times with their mean gap made 1/rate; the first arrival stays at 0."""
    since = recorded - recorded.min(initial=np.inf)
    span = float(since.max(initial=0.0))
    stretched: Floats = since * ((len(since) - 1) / rate / span) if span > 0 else since
    return stretched
