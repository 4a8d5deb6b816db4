"""A setting that was applied from a what-if, and its promise: taken back by itself where it is broken."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from control.engine.orders import obey
from control.engine.orders_kv import retention_of
from control.engine.outcome import Outcome
from control.engine.state import Live
from control.tuning.whatif.promise import KEPT, REPLACED, ROLLED_BACK, WATCHING, Guard
from control.twin.caps import caps_of

Row = dict[str, Any]
Command = tuple[str, Row]
TOLERANCE_S = 1e-9
EARLY = 0.25  # share of a guard's time in which it only watches


def promise(result: Mapping[str, Any], setting: Mapping[str, Any], minutes: float) -> tuple[float, float]:
    """The band of P95 (s) that the run's line has after so many minutes, or at its end where that is sooner."""
    times_s, line = np.asarray(result["times_s"]), setting["lines"]["p95_s"]
    k = min(int(np.searchsorted(times_s, 60.0 * minutes)), len(times_s) - 1)
    low_s, high_s = line["low"][k], line["high"][k]
    return (0.0 if low_s is None else low_s), (float("inf") if high_s is None else high_s)


def inverse(live: Live, kind: str, payload: Mapping[str, Any]) -> Command | None:
    """The command that takes `kind` back, as things stand before it; None where nothing does."""
    if kind == "alpha":
        return "alpha", {"alpha": live.alpha}
    if kind == "policy":
        return "policy", {"policy": live.policy}
    if kind == "retention":
        return "retention", {"retention": retention_of(live.world)}
    if kind == "power_caps":
        caps = zip(live.fleet.instances, caps_of(live.fleet), strict=True)
        return "power_caps", {"caps": {spec.name: cap for spec, cap in caps if spec.name in payload["caps"]}}
    return {"drain": ("undrain", dict(payload)), "kill": ("revive", dict(payload))}.get(kind)


def apply_all(live: Live, wanted: Sequence[Command], tell: Callable[[Outcome], None]) -> tuple[list[list[Any]], str]:
    """Obey `wanted` in order; the commands that take them back, in order, and why one was refused, "" if none was.

    Where one is refused, those before it are taken back at once. `tell` is told each outcome that was applied.
    """
    back: list[list[Any]] = []
    for kind, payload in wanted:
        undo = inverse(live, kind, payload)
        outcome = obey(live, {"kind": kind, "payload": payload, "expected": None})
        if not outcome.applied:
            take_back(live, back, tell)
            return [], outcome.reason
        tell(outcome)
        back[:0] = [] if undo is None else [list(undo)]
    return back, ""


def take_back(live: Live, back: Sequence[Sequence[Any]], tell: Callable[[Outcome], None]) -> None:
    """Obey the commands that take a setting back; one that no longer applies is passed over."""
    for kind, payload in back:
        outcome = obey(live, {"kind": kind, "payload": payload, "expected": None})
        if outcome.applied:
            tell(outcome)


def is_replaced(live: Live, guard: Guard) -> bool:
    """Whether somebody has set another alpha or policy since."""
    moved = abs(live.alpha - float(guard.set["alpha"])) > TOLERANCE_S
    return moved or live.policy != guard.set["policy"]


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
