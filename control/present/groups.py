"""Large fleets by GPU type: above GROUP_ABOVE instances no chart can show each, nor should the wire carry each."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

from control.present.units import number, significant

#: A fleet of more instances is drawn and sent by GPU type.
GROUP_ABOVE = 128
#: Rows of a table of instances at most; more are left out with a sentence.
LISTED = 80
#: States an instance can be in, the worst first.
WORST_FIRST = ("down", "draining", "up")
#: Columns whose values add up within a type; of the others the highest stands for all.
_SUMMED = frozenset({"queued", "running", "power_w", "slo_debt_s"})
#: What the strip shows of a type as its least, median and greatest value: name on the wire, column.
_SPREAD = (("queued", "queued"), ("running", "running"), ("kv", "kv_used_fraction"), ("power", "power_w"))

T = TypeVar("T")
Values = tuple[float | None, ...]
Instance = Mapping[str, Any]


def most(rows: Sequence[T], measure: Callable[[T], float]) -> Sequence[T]:
    """All of `rows` as they stand, or the LISTED greatest by `measure` where there are more."""
    return rows if len(rows) <= LISTED else sorted(rows, key=measure, reverse=True)[:LISTED]


def short_of(rows: Sequence[object], which: str) -> str:
    """A sentence on what `most` leaves out of `rows`, "" where that is nothing."""
    return "" if len(rows) <= LISTED else f"The {LISTED} {which}, of {number(len(rows))}."


def types_of(instances: Sequence[Instance]) -> dict[str, list[Instance]] | None:
    """The instances by GPU type, in order of appearance; None where the fleet is small enough to show each."""
    if len(instances) <= GROUP_ABOVE:
        return None
    found: dict[str, list[Instance]] = {}
    for instance in instances:
        found.setdefault(str(instance["gpu"]), []).append(instance)
    return found


def row_of(members: Sequence[Instance], columns: Sequence[str]) -> Values:
    """One value a column for all instances of a type: their sum, or the highest share; None without any."""
    return tuple(_one(column, [m[column] for m in members if m.get(column) is not None]) for column in columns)


def static_of(types: Mapping[str, Sequence[Instance]]) -> dict[str, list[Any]]:
    """What changes rarely, a value a type: capacities and limits added up, `count` instances behind each."""
    groups = list(types.values())
    return {
        "name": list(types),
        "gpu": list(types),
        "count": [len(group) for group in groups],
        "model": [_common(group, "model") for group in groups],
        "role": [_common(group, "role") for group in groups],
        "provenance": [_common(group, "provenance") for group in groups],
        "max_num_seqs": [_sum(group, "max_num_seqs") for group in groups],
        "kv_capacity_tokens": [_sum(group, "kv_capacity_tokens") for group in groups],
        "power_cap_w": [_capped_w(group) for group in groups],
        "tdp_w": [_sum(group, "tdp_w") for group in groups],
        "simulated": [any(one.get("simulated") is not False for one in group) for group in groups],
    }


def now_of(types: Mapping[str, Sequence[Instance]]) -> list[dict[str, Any]]:
    """Of each type: how many instances are in which state, and least, median and greatest of what the strip shows."""
    return [_spread(group) | {"states": _states(group)} for group in types.values()]


def worst(members: Sequence[Instance]) -> str:
    """The worst state that any of the instances is in."""
    states = {str(one["state"]) for one in members}
    return next((state for state in WORST_FIRST if state in states), next(iter(states)))


def _states(members: Sequence[Instance]) -> dict[str, int]:
    states = [str(one["state"]) for one in members]
    return {state: states.count(state) for state in WORST_FIRST if state in states}


def _spread(members: Sequence[Instance]) -> dict[str, list[float | int | None] | None]:
    found: dict[str, list[float | int | None] | None] = {}
    for name, column in _SPREAD:
        values = [one[column] for one in members if one.get(column) is not None]
        found[name] = [significant(f(values)) for f in (min, median, max)] if values else None
    return found


def _one(column: str, values: list[float]) -> float | None:
    if not values:
        return None
    return float(sum(values) if column in _SUMMED else max(values))


def _common(members: Sequence[Instance], column: str) -> str:
    values = {str(one.get(column)) for one in members}
    return next(iter(values)) if len(values) == 1 else "mixed"


def _sum(members: Sequence[Instance], column: str) -> float:
    return float(sum(one.get(column) or 0 for one in members))


def _capped_w(members: Sequence[Instance]) -> float | None:
    """What the type may draw in all where any of it is capped, W; None without a cap."""
    if all(one.get("power_cap_w") is None for one in members):
        return None
    return float(sum(one["tdp_w"] if one.get("power_cap_w") is None else one["power_cap_w"] for one in members))
