"""What an order is given and what becomes of it: payloads read with a reason for each refusal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from control.engine.state import Live
from control.errors import SettingError


@dataclass(frozen=True)
class Outcome:
    """What became of a command, and the event to record for it."""

    applied: bool
    reason: str  # why it was refused, or done only in part; the name of the setting that was applied
    event: dict[str, Any] | None = None
    step_s: float = 0.0  # simulated s the engine is asked to move while paused
    successor: Live | None = None  # what the engine is asked to go on with instead


def value(command: Mapping[str, Any], key: str) -> Any:
    """What the payload of a command holds under `key`.

    Raises:
        SettingError: the payload is none, or lacks it.
    """
    payload = command["payload"]
    if not isinstance(payload, Mapping) or key not in payload:
        raise SettingError(f"payload = {payload!r:.80}: expected {{{key!r}: ...}}")
    return payload[key]


def number(command: Mapping[str, Any], key: str, low: float, high: float) -> float:
    """The number under `key` of a command's payload.

    Raises:
        SettingError: it is no number from `low` to `high`.
    """
    given = value(command, key)
    fits = isinstance(given, int | float) and not isinstance(given, bool) and low <= given <= high
    if not fits:
        raise SettingError(f"{key} = {given!r:.80}: expected a number from {low:g} to {high:g}")
    return float(given)


def compare(command: Mapping[str, Any], current: Any) -> None:
    """Refuse a command that was made looking at another value than the one in force.

    Raises:
        SettingError: someone changed it meanwhile.
    """
    expected = command.get("expected")
    if isinstance(expected, Mapping):
        expected = next(iter(expected.values()), None)
    same = expected is None or expected == current
    if not same and isinstance(expected, (int, float)) and isinstance(current, (int, float)):
        same = bool(np.isclose(expected, current, rtol=0.0, atol=1e-9))
    if not same:
        raise SettingError(f"it is {current} now, not {expected} as when the command was made")


def applied(kind: str, text: str, old: Any, new: Any, target: str | None = None) -> Outcome:
    """An applied command with its event."""
    return Outcome(True, "", {"kind": kind, "target": target, "text": text, "old": old, "new": new})


def instance_row(live: Live, command: Mapping[str, Any]) -> tuple[int, str]:
    """Row and name of the instance a command names.

    Raises:
        SettingError: there is none of that name.
    """
    name = value(command, "instance")
    names = [spec.name for spec in live.fleet.instances]
    if name not in names:
        raise SettingError(f"instance = {name!r}: expected one of {', '.join(names)}")
    return names.index(name), name
