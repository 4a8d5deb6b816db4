"""The order that makes a simulated instance slower than its profile, or as fast again."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from control.config import SLOW_BOUNDS
from control.engine.outcome import Outcome, applied, compare, instance_row, number
from control.engine.state import Live, change_fleet
from control.errors import SettingError
from control.model.fleet import Fleet


def set_slow(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Multiply the times of an instance, as given, by a factor; 1 takes it back."""
    i, name = instance_row(live, command)
    if live.fleet.instances[i].url is not None:
        raise SettingError(f"{name} is a real server: its speed is measured, not set")
    old, new = slowness(live, i), number(command, "factor", *SLOW_BOUNDS)
    compare(command, old)
    if new == old:
        raise SettingError(f"{name} takes {new:g} times as long already")
    change_fleet(live, slowed(live, i, new))
    before, after = ({"slow": {"instance": name, "factor": factor}} for factor in (old, new))
    return applied("slow", f"{name} takes ×{old:g} → ×{new:g} as long", before, after, name)


def slowness(live: Live, i: int) -> float:
    """How many times as long instance `i` takes now as it was given."""
    return round(live.fleet.instances[i].decode_scale / live.given.instances[i].decode_scale, 6)


def slowed(live: Live, i: int, factor: float) -> Fleet:
    """The fleet in force with another factor on the times of instance `i`, as given."""
    given, specs = live.given.instances[i], list(live.fleet.instances)
    prefill, decode = given.prefill_scale * factor, given.decode_scale * factor
    specs[i] = replace(specs[i], prefill_scale=prefill, decode_scale=decode)
    return replace(live.fleet, instances=tuple(specs))
