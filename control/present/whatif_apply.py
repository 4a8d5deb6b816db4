"""Applying a setting of a fork: what would be done, what is promised, and what the guard found."""

from collections.abc import Mapping
from typing import Any

from control.present.cells import measured
from control.present.units import number
from control.present.whatif import AS_IT_IS, Run, band, figure, result_of, setting_of, with_band
from control.present.wording import asked

Guard = Mapping[str, Any]
#: Bounds and default of the guard, simulated minutes; 0 is no guard.
GUARD_MINUTES, DEFAULT_GUARD = (0, 60), 5
#: What the fork does and why one would make one.
EMPTY = (
    "A fork copies the running fleet with all its queues and lets each setting go on from there, several times with "
    "other arrivals. What comes out is the next minutes of each, side by side, and one click applies the best."
)


def preview(run: Run, index: int) -> list[str]:
    """The commands that applying would send, in words."""
    found = setting_of(run, index) or {}
    return [asked({"kind": kind, "payload": payload}) for kind, payload in found.get("commands") or ()]


def blocked(run: Run, index: int) -> str:
    """Why the setting cannot be applied now, "" where it can."""
    found = setting_of(run, index)
    if found is None:
        return "It is not computed yet."
    if found.get("problem"):
        return f"It cannot be: {found['problem']}."
    if found.get("applicable") is False:
        return str(found.get("why_not") or "It cannot be applied to the running fleet.")
    if result_of(run).get("state") == "running":
        return "The fork is not done yet."
    if found.get("commands"):
        return ""
    return "It is in force already." if index == AS_IT_IS else "It needs no change of the running fleet."


def promise(run: Run, index: int) -> str:
    """What is foretold of a setting, e.g. "P95 12.1 s, band 10.9 to 13.4 s; as it is 14 s"."""
    found = setting_of(run, index)
    if found is not None and found.get("problem"):
        return "nothing is foretold of it"
    p95 = figure(found, "p95_s")
    if p95.mean is None:
        return "no P95 is foretold, for nothing ends in that time"
    spread = "" if p95.low is None else f", band {band(p95)}"
    unchanged = figure(setting_of(run, AS_IT_IS), "p95_s")
    beside = "" if index == AS_IT_IS or unchanged.mean is None else f"; as it is {with_band(unchanged)}"
    return f"P95 {measured(p95.mean, 's')}{spread}{beside}"


def guard_note(minutes: int) -> str:
    """What the guard will do, in words."""
    if not minutes:
        return "Nothing watches it: what is applied stays until it is undone."
    return f"If P95 of what ends in the next {minutes} min is above the band, all of it is taken back."


def guard_of(run: Run | None) -> Guard | None:
    """The guard of a run, None where nothing of it was applied under guard."""
    found = result_of(run).get("guard") if run else None
    return found if isinstance(found, Mapping) else None


def watching(run: Run | None) -> bool:
    """Whether the guard of a run still watches."""
    found = guard_of(run)
    return found is not None and found.get("state") == "watching"


def guard_words(run: Run) -> tuple[str, str]:
    """Kind (pending, applied, refused or none) and words of what the guard of a run found."""
    found = guard_of(run)
    if found is None:
        return "none", ""
    name = str((setting_of(run, found.get("setting")) or {}).get("name") or f"setting {found.get('setting')}")
    high, realised = measured(found.get("high_s"), "s"), measured(found.get("realised_p95_s"), "s")
    state, why = str(found.get("state")), f" {found['why']}" if found.get("why") else ""
    if state == "watching":
        until = number(round(found.get("until_sim_s") or 0.0), 6)
        return "pending", f"… watching {name} until simulated {until} s: P95 must stay within {high}."
    if state == "kept":
        return "applied", f"✓ {name} kept its promise: P95 {realised}, promised at most {high}.{why}"
    if state == "rolled_back":
        return "refused", f"↩ {name} was rolled back: P95 {realised}, promised at most {high}.{why}"
    return "none", f"{name} is no longer watched: {state.replace('_', ' ')}.{why}"


def outcome(run: Run) -> str:
    """What became of a run's setting in two or three words, for a list."""
    found = guard_of(run)
    if found is None:
        return ""
    shown = {"watching": "… watching", "kept": "✓ kept", "rolled_back": "↩ rolled back", "replaced": "replaced"}
    return shown.get(str(found.get("state")), str(found.get("state")))
