"""What to do with a tuning result, and whether a change kept its promise. Pure rules; the engine acts on them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from control.tuning.alpha import Choice
from control.tuning.replay import Review

OFF, SUGGEST, AUTO = "off", "suggest", "auto"
MODES = (OFF, SUGGEST, AUTO)
SIGMAS = 3.0


@dataclass(frozen=True)
class TunerSettings:
    """How eager the tuner is. Times are simulated seconds."""

    window_s: float = 600.0  # replayed history
    least_calls: int = 200  # fewer say nothing
    period_s: float = 600.0  # between runs without another trigger
    least_gain: float = 0.03  # expected relative P95 gain that is worth a change
    least_step: float = 0.04  # a smaller change of alpha is not worth a mark on the charts
    cooldown_s: float = 300.0  # after a change, no other one
    rollback_cooldown_s: float = 1200.0  # after a roll-back
    drift: float = 0.25  # relative change of arrival rate or mean tokens that triggers a run, unless it is chance
    least_ended: int = 30  # workflows that must have ended before a change is judged
    resamples: int = 5
    most_active: int = 2000  # active workflows beyond which a replay would take minutes of CPU


@dataclass(frozen=True)
class Verdict:
    """What to do, and why."""

    decision: str  # applied | suggested | kept
    reason: str


def points(share: float) -> str:
    """A share in percentage points, with a true minus and none before a zero."""
    return f"{round(100.0 * share, 1) + 0.0:.1f}".replace("-", "−")


def verdict(choice: Choice, mode: str, pinned: bool, cooling_s: float, settings: TunerSettings) -> Verdict:
    """Whether a choice is applied, suggested or not worth it.

    It must be expected to gain at least `least_gain`, with the band of the gain excluding zero.
    """
    if abs(choice.alpha - choice.current) < settings.least_step:
        return Verdict("kept", f"α {choice.current:.2f} is the best already")
    if choice.gain < settings.least_gain:
        return Verdict("kept", f"expected gain {points(choice.gain)} % is under {100 * settings.least_gain:.0f} %")
    if choice.gain_low <= 0.0:
        low, high = points(choice.gain_low), points(choice.gain_high)
        return Verdict("kept", f"the band of the gain, {low} to {high} %, holds zero")
    if mode != AUTO:
        return Verdict("suggested", "the tuner only suggests")
    if pinned:
        return Verdict("suggested", "alpha is pinned by an operator")
    if cooling_s > 0.0:
        return Verdict("suggested", f"cooling down for {cooling_s:.0f} s more")
    return Verdict("applied", f"P95 expected {100 * choice.gain:.1f} % lower")


@dataclass(frozen=True)
class Promise:
    """A change that was made, to be judged after the next window."""

    run_id: int
    made_s: float  # simulated s
    before: float  # alpha before
    after: float  # alpha set
    high_s: float  # upper end of the predicted band of P95, s


def is_broken(promise: Promise, realised_p95_s: float | None) -> bool:
    """Whether the realised P95 is worse than predicted beyond the band."""
    return realised_p95_s is not None and realised_p95_s > promise.high_s


@dataclass(frozen=True)
class Load:
    """What drift is measured on, over some span."""

    arrived: int  # workflows
    rate_wps: float  # arrivals a simulated second
    tokens: float  # mean input and output tokens of a workflow
    tokens_sd: float  # of that mean
    up: int  # instances that take calls


@dataclass
class Memory:
    """What the live tuner knows that outlives a restart. Times are simulated seconds."""

    promise: Promise | None = None
    suggested: float | None = None
    last_run: int | None = None
    last_s: float = 0.0  # when the last run began
    last_load: Load | None = None
    cool_until_s: float = 0.0

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> "Memory":
        """What `dataclasses.asdict` made of a memory, as a memory."""
        memory = cls(**saved)
        memory.promise = Promise(**saved["promise"]) if saved["promise"] else None
        memory.last_load = Load(**saved["last_load"]) if saved["last_load"] else None
        return memory


class Judged(NamedTuple):
    """What came of a change of alpha."""

    promise: Promise
    realised_p95_s: float | None
    review: Review | None
    roll_back: bool

    @property
    def outcome(self) -> str:
        """The same in words."""
        promise, review = self.promise, self.review
        if self.realised_p95_s is None:
            return "nothing has ended that could be judged"
        if not is_broken(promise, self.realised_p95_s):
            return f"P95 {self.realised_p95_s:.1f} s, as promised"
        said = f"P95 {self.realised_p95_s:.1f} s, promised at most {promise.high_s:.1f} s"
        if review is None:
            return said
        both = f"replayed, α {promise.after:.2f} gives {review.after_p95_s:.1f} s and {promise.before:.2f} "
        return f"{said}; {both}{review.before_p95_s:.1f} s"


def has_drifted(then: Load, now: Load, drift: float) -> bool:
    """Whether the load is another one: other instances, or a rate or size that moved by more than the share `drift`.

    A move within SIGMAS standard deviations (arrivals counted as Poisson) is chance.
    """
    rate_sd = then.rate_wps * math.sqrt(1.0 / max(1, then.arrived) + 1.0 / max(1, now.arrived))
    tokens_sd = math.hypot(then.tokens_sd, now.tokens_sd)
    rate = has_moved(then.rate_wps, now.rate_wps, drift, rate_sd)
    return rate or then.up != now.up or has_moved(then.tokens, now.tokens, drift, tokens_sd)


def has_moved(then: float, now: float, drift: float, sd: float) -> bool:
    """Whether a figure moved by more than the share `drift` of what it was, and not by chance."""
    return then > 0.0 and now > 0.0 and abs(now - then) > max(drift * then, SIGMAS * sd)
