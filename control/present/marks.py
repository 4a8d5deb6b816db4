"""Marks on the time charts: what was changed, by whom it was caused, in a word or two.

The same events make the list of recent changes, so a chart and the audit never disagree.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

#: Event kinds that draw a line on every time chart.
MARKED = frozenset(
    {
        "alpha",
        "policy",
        "drain",
        "undrain",
        "kill",
        "revive",
        "speed",
        "pause",
        "resume",
        "load_scale",
        "tuning",
        "tuning_mode",
        "release_alpha",
        "power_cap",
        "kv_retention",
        "slow",
        "scenario",
        "act_refused",
        "engine_started",
        "engine_recovered",
        "engine_stopped",
        "server_lost",
        "server_ready",
        "refined",
        "late_hand_over",
        "rolled_back",
        "guard_kept",
    }
)

#: How the text of an event begins that a scenario caused by itself.
SCRIPTED = "scenario: "

_LABELS = {
    "release_alpha": "α released",
    "kv_retention": "retention",
    "act_refused": "act not done",
    "engine_started": "engine start",
    "engine_recovered": "engine restart",
    "engine_stopped": "engine stop",
    "server_lost": "server out",
    "server_ready": "server ready",
    "refined": "profile refined",
    "late_hand_over": "late hand-over",
    "rolled_back": "rolled back",
    "guard_kept": "guard kept",
}


class Mark(NamedTuple):
    """One vertical line: id of its (first) event, wall epoch s, kind and a short label."""

    id: int
    at: float
    kind: str
    label: str


def marks_of(events: Iterable[Mapping[str, Any]]) -> list[Mark]:
    """The marks of event rows, oldest first, with equal kinds within one second merged into one."""
    rows = sorted(
        (e for e in events if e["kind"] in MARKED and not _changed_nothing(e)), key=lambda e: (e["at"], e["id"])
    )
    groups: list[list[Mapping[str, Any]]] = []
    for event in rows:
        if groups and _together(groups[-1][0], event):
            groups[-1].append(event)
        else:
            groups.append([event])
    return [Mark(int(g[0]["id"]), float(g[0]["at"]), str(g[0]["kind"]), _label(g)) for g in groups]


def _changed_nothing(event: Mapping[str, Any]) -> bool:
    """Whether it tells of a tuning run that found the α in force the best: a line at every run would bury the rest."""
    new = value_of(event.get("new"))
    return bool(event["kind"] == "tuning" and new is not None and new == value_of(event.get("old")))


def _together(first: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    return bool(first["kind"] == event["kind"] and event["at"] - first["at"] < 1.0)


def _label(group: list[Mapping[str, Any]]) -> str:
    event = group[-1]
    kind = str(event["kind"])
    new = value_of(event.get("new"))
    if kind == "alpha" and isinstance(new, int | float):
        return f"α {new:.2f}"
    if kind == "tuning":
        return f"suggests α {new:.2f}" if isinstance(new, int | float) else kind
    if kind == "speed" and isinstance(new, int | float):
        return f"speed ×{new:g}"
    if kind == "load_scale" and isinstance(new, int | float):
        return f"load ×{new:g}"
    if kind == "tuning_mode" and isinstance(new, str):
        return f"tuning {new}"
    if kind == "power_cap" and isinstance(new, Mapping):
        return f"cap {_cap(set(new.values()))}"
    if kind in ("policy", "scenario") and isinstance(new, str):
        return new
    if len(group) > 1:
        return f"{_LABELS.get(kind, kind)} ×{len(group)}"
    target = event.get("target")
    return f"{kind} {target}" if target and kind not in _LABELS else _LABELS.get(kind, kind)


def _cap(caps: set[float | None]) -> str:
    """The caps (W per GPU) of a mark in a word or two."""
    if len(caps) != 1:
        return "changed"
    cap_w = next(iter(caps))
    return "lifted" if cap_w is None else f"{cap_w:g} W"


def value_of(json: object) -> object:
    """The bare value of an event's `old` or `new` or a command's payload, e.g. {"alpha": 0.2} -> 0.2."""
    if isinstance(json, Mapping):
        return next(iter(json.values()), None)
    return json
