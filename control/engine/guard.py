"""A setting that was applied from a what-if, and its promise: whether it is kept, and as from when it is broken."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from control.engine.state import Live
from control.engine.things import same
from control.tuning.whatif.promise import KEPT, REPLACED, ROLLED_BACK, WATCHING, Guard

EARLY = 0.25  # share of a guard's time in which it only watches


def promise(result: Mapping[str, Any], setting: Mapping[str, Any], minutes: float) -> tuple[float, float]:
    """The band of P95 (s) that the run's line has after so many minutes, or at its end where that is sooner."""
    times_s, line = np.asarray(result["times_s"]), setting["lines"]["p95_s"]
    k = min(int(np.searchsorted(times_s, 60.0 * minutes)), len(times_s) - 1)
    low_s, high_s = line["low"][k], line["high"][k]
    return (0.0 if low_s is None else low_s), (float("inf") if high_s is None else high_s)


def is_replaced(live: Live, guard: Guard) -> bool:
    """Whether somebody has set another alpha or policy since."""
    return not same(live.alpha, guard.set["alpha"]) or live.policy != guard.set["policy"]


def verdict(live: Live, guard: Guard) -> tuple[str, float | None, str]:
    """State of the guard now, the realised P95 (s) and why.

    Judged at the end of its time; from a quarter of it on where P95 lies beyond the band by more than its width.
    """
    realised_s = live.rolling.percentile_s(95)
    if is_replaced(live, guard):
        return REPLACED, realised_s, "alpha or policy was changed by somebody else"
    if realised_s is None:
        return (KEPT if live.now_s >= guard.until_s else WATCHING), None, "nothing has ended that could be judged"
    far_s = guard.high_s + (guard.high_s - guard.low_s)
    said = f"P95 {realised_s:.1f} s, promised {guard.low_s:.1f} to {guard.high_s:.1f} s"
    if live.now_s >= guard.until_s:
        return (ROLLED_BACK if realised_s > guard.high_s else KEPT), realised_s, said
    is_early = live.now_s < guard.made_s + EARLY * (guard.until_s - guard.made_s)
    return (ROLLED_BACK if realised_s > far_s and not is_early else WATCHING), realised_s, said
