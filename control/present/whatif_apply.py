"""Applying a setting of a fork: what would be done, what is promised, and what the guard found."""

from collections.abc import Mapping
from typing import Any

from control.present.cells import measured
from control.present.units import number
from control.present.whatif import AS_IT_IS, Run, band, change, figure, result_of, setting_of, with_band
from control.present.wording import asked

Guard = Mapping[str, Any]
Snapshot = Mapping[str, Any]
#: What a fork is of, as its run and as a snapshot have it.
_ORIGIN = {"scenario": "scenario", "seed": "seed", "fleet": "fleet_name"}
#: Bounds and default of the guard, simulated minutes; 0 is no guard.
GUARD_MINUTES, DEFAULT_GUARD = (0, 60), 5
#: A fork older than this, simulated minutes, or than it looks ahead, is told to be old.
OLD_MINUTES = 5.0
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


def elsewhere(run: Run, snapshot: Snapshot | None) -> str:
    """Why a fork is none of what runs now, "" where it is."""
    here = {key: (snapshot or {}).get(named) for key, named in _ORIGIN.items()}
    there = {key: run["params"].get(key) for key in _ORIGIN}
    if any(None not in (here[key], there[key]) and here[key] != there[key] for key in _ORIGIN):
        return f"The fork is of {_origin(there)}; what runs now is {_origin(here)}."
    return ""


def warnings(run: Run, index: int, snapshot: Snapshot | None) -> list[str]:
    """What speaks against applying a setting: worse figures than as it is, a fork that is old."""
    found, unchanged = setting_of(run, index), setting_of(run, AS_IT_IS)
    worse = [] if found is None or index == AS_IT_IS else [_worse_p95(found, unchanged), _worse_share(found, unchanged)]
    told = ", ".join(part for part in worse if part)
    age_s = _age_s(run, snapshot) or 0.0
    most = min(OLD_MINUTES, float((run["params"].get("spec") or {}).get("minutes") or OLD_MINUTES))
    old = f"This fork is {number(round(age_s / 60.0))} simulated min old." if age_s > 60.0 * most else ""
    return [line for line in (f"Predicted worse: {told}." if told else "", old) if line]


def _worse_p95(found: Mapping[str, Any], unchanged: Mapping[str, Any] | None) -> str:
    """By how much P95 rises, "" where that lies within the band."""
    now, then = figure(unchanged, "p95_s").mean, figure(found, "p95_s")
    is_worse = now is not None and then.low is not None and then.low > now
    return f"P95 {change(then.mean, now)}" if is_worse else ""


def _worse_share(found: Mapping[str, Any], unchanged: Mapping[str, Any] | None) -> str:
    """How far attainment falls, "" where that lies within the band."""
    now, then = figure(unchanged, "slo_attainment").mean, figure(found, "slo_attainment")
    if now is None or then.mean is None or then.high is None or then.high >= now:
        return ""
    return f"attainment {100.0 * now:.0f} → {100.0 * then.mean:.0f} %"


def _age_s(run: Run, snapshot: Snapshot | None) -> float | None:
    """How long ago the fork was made, simulated s; None where that is not known."""
    made_s, now_s = run["params"].get("sim_s"), (snapshot or {}).get("sim_s")
    return None if made_s is None or now_s is None else float(now_s) - float(made_s)


def _origin(facts: Mapping[str, Any]) -> str:
    """A scenario, its seed and its fleet in words."""
    seed = "" if facts["seed"] is None else f", seed {facts['seed']}"
    return f"{facts['scenario']}{seed}, on {facts['fleet']}"


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
    if state != "watching" and undone(run):
        return "none", f"{name} was undone.{why}"
    if state == "watching":
        until = number(round(found.get("until_sim_s") or 0.0), 6)
        so_far = found.get("realised_p95_s") is not None
        held = f"P95 so far {realised}, at most {high}" if so_far else f"P95 must stay within {high}"
        return "pending", f"… watching {name} until simulated {until} s: {held}."
    if state == "kept":
        return "applied", f"✓ {name} kept its promise: P95 {realised}, promised at most {high}.{why}"
    if state == "rolled_back":
        return "refused", f"↩ {name} was rolled back: P95 {realised}, promised at most {high}.{why}"
    return "none", f"{name} is no longer watched: {state.replace('_', ' ')}.{why}"


def applied_of(run: Run) -> list[Mapping[str, Any]]:
    """What was applied of a run, oldest first, that which was taken back included."""
    found = result_of(run).get("applied")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def undone(run: Run) -> bool:
    """Whether what was applied of a run last was taken back by hand."""
    found = applied_of(run)
    return bool(found) and isinstance(found[-1].get("undone_by"), int)


def outcome(run: Run) -> str:
    """What became of a run's setting in two or three words, for a list."""
    found, told = guard_of(run), applied_of(run)
    if undone(run):
        still = [one["name"] for one in told if one.get("undone_by") is None]
        return f"undone, {still[-1]} stands" if still else "undone"
    if found is None:
        return "applied" if told and told[-1].get("undone_by") is None else ""
    so_far = found.get("realised_p95_s")
    watched = "… watching" if so_far is None else f"… watching, P95 {measured(so_far, 's')}"
    shown = {"watching": watched, "kept": "✓ kept", "rolled_back": "↩ rolled back", "replaced": "replaced"}
    return shown.get(str(found.get("state")), str(found.get("state")))
