"""What to do with a tuning result, and whether a change kept its promise. Pure rules; the engine acts on them."""

from dataclasses import dataclass

from control.tuning.alpha import Choice

OFF, SUGGEST, AUTO = "off", "suggest", "auto"
MODES = (OFF, SUGGEST, AUTO)


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
    drift: float = 0.25  # relative change of arrival rate or mean tokens that triggers a run
    least_ended: int = 30  # workflows that must have ended before a change is judged
    resamples: int = 5


@dataclass(frozen=True)
class Verdict:
    """What to do, and why."""

    decision: str  # applied | suggested | kept
    reason: str


def verdict(choice: Choice, mode: str, pinned: bool, cooling_s: float, settings: TunerSettings) -> Verdict:
    """Whether a choice is applied, suggested or not worth it.

    It must be expected to gain at least `least_gain`, with the band of the gain excluding zero.
    """
    if abs(choice.alpha - choice.current) < settings.least_step:
        return Verdict("kept", f"alpha {choice.current:.2f} is the best already")
    if choice.gain < settings.least_gain:
        return Verdict("kept", f"expected gain {100 * choice.gain:.1f} % is under {100 * settings.least_gain:.0f} %")
    if choice.gain_low <= 0.0:
        low, high = 100 * choice.gain_low, 100 * choice.gain_high
        return Verdict("kept", f"the band of the gain, {low:.1f} to {high:.1f} %, holds zero")
    if pinned:
        return Verdict("suggested", "alpha is pinned by an operator")
    if mode != AUTO:
        return Verdict("suggested", "the tuner only suggests")
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


def has_drifted(then: float, now: float, drift: float) -> bool:
    """Whether a measure of load moved by more than the share `drift` of what it was."""
    return then > 0.0 and abs(now - then) > drift * then
