"""The order that caps the power of a tier or an instance."""

from collections.abc import Mapping, Sequence
from typing import Any

from control.engine.outcome import Outcome, applied, compare, value
from control.engine.state import Live, set_caps
from control.errors import SettingError
from control.model.fleet import InstanceSpec, profile_of
from control.model.power import cap_bounds
from control.policy.codes import ROLES
from control.twin.caps import Cap, caps_of

ALL = "all"
NO_CAP = "no cap"


def set_power_cap(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Cap a tier or an instance at some W per GPU; null lifts the cap."""
    specs, before = live.fleet.instances, caps_of(live.fleet)
    target, cap_w = str(value(command, "tier")), value(command, "cap_w")
    rows = rows_of(specs, target)
    compare(command, common([before[i] for i in rows]))
    return put_in_force(live, target, dict.fromkeys(rows, cap_w))


def set_power_caps(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Put caps by instance in force, such as those of before."""
    wanted = named_caps(live.fleet.instances, value(command, "caps"))
    return put_in_force(live, common_name(live.fleet.instances, list(wanted)), wanted)


def put_in_force(live: Live, target: str, wanted: Mapping[int, Any]) -> Outcome:
    """Caps by row: all of them, or none where one is out of bounds.

    Raises:
        SettingError: one is, or nothing would change.
    """
    specs, before = live.fleet.instances, caps_of(live.fleet)
    after = list(before)
    for i, cap_w in wanted.items():
        after[i] = checked(specs[i], cap_w)
    changed = [i for i in wanted if after[i] != before[i]]
    if not changed:
        raise SettingError(f"{target}: the cap is {words([before[i] for i in wanted])} already")
    set_caps(live, after)
    old, new = ({specs[i].name: caps[i] for i in changed} for caps in (before, after))
    text = f"power cap of {target} {words(list(old.values()))} → {words(list(new.values()))}"
    return applied("power_cap", text, {"caps": old}, {"caps": new}, target)


def named_caps(specs: Sequence[InstanceSpec], caps: Any) -> dict[int, Any]:
    """Caps by name as caps by row.

    Raises:
        SettingError: they are none, or one names no instance.
    """
    if not isinstance(caps, Mapping) or not caps:
        raise SettingError(f"caps = {caps!r:.80}: expected W per GPU by instance")
    names = [spec.name for spec in specs]
    for name in caps:
        if name not in names:
            raise SettingError(f"caps: {name!r:.80} is no instance: expected some of {', '.join(names)}")
    return {names.index(name): cap for name, cap in caps.items()}


def rows_of(specs: Sequence[InstanceSpec], target: str) -> list[int]:
    """Rows of the instances that `target` names: a tier, all of them, or one.

    Raises:
        SettingError: none is meant.
    """
    rows = [i for i, spec in enumerate(specs) if target in (ALL, spec.role, spec.name)]
    if not rows:
        tiers = [role for role in ROLES if any(spec.role == role for spec in specs)]
        raise SettingError(f"tier = {target!r:.80}: expected one of {', '.join([ALL, *tiers])} or an instance's name")
    return rows


def checked(spec: InstanceSpec, cap_w: Any) -> Cap:
    """The cap of an instance, W per GPU; None for none.

    Raises:
        SettingError: it is no number, or out of the GPU's bounds.
    """
    if cap_w is None:
        return None
    low_w, high_w = cap_bounds(profile_of(spec))
    is_number = isinstance(cap_w, int | float) and not isinstance(cap_w, bool)
    if not is_number or not low_w <= cap_w <= high_w:
        accepted = f"a number from {low_w:g} to {high_w:g} W per GPU, or null for no cap"
        raise SettingError(f"cap_w = {cap_w!r:.80}: {spec.name} ({spec.gpu}) takes {accepted}")
    return float(cap_w)


def common(caps: Sequence[Cap]) -> float | str:
    """The cap that all have, W per GPU; words where they have none or differ."""
    if len(set(caps)) > 1:
        return "mixed"
    return NO_CAP if caps[0] is None else caps[0]


def words(caps: Sequence[Cap]) -> str:
    """Caps for the audit."""
    cap = common(caps)
    return cap if isinstance(cap, str) else f"{cap:g} W per GPU"


def common_name(specs: Sequence[InstanceSpec], rows: Sequence[int]) -> str:
    """Whose caps these are, for the audit."""
    return specs[rows[0]].name if len(rows) == 1 else f"{len(rows)} instances"
