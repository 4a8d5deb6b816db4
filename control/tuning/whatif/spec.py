"""What is asked of a fork: how far ahead, over how many seeds, under which settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from control.errors import SettingError, shown
from control.policy.codes import NEEDS, POLICIES, ROLES

RESAMPLED, OWN = "resampled", "own"
ARRIVALS = (RESAMPLED, OWN)
AS_IT_IS = "as it is"
MOST_SETTINGS, MOST_SEEDS, MOST_MINUTES, MOST_BACK_S, MOST_ADDED = 41, 32, 30.0, 7200.0, 64
MOST_NAME = 80  # characters
#: What may be done to the fleet, with the keys that say how.
DEEDS: dict[str, tuple[str, ...]] = {
    "add": ("like", "count"),
    "remove": ("instance",),
    "fail": ("instance",),
    "drain": ("instance",),
    "role": ("instance", "role"),
    "cap": ("tier", "cap_w"),
}


class Change(NamedTuple):
    """Something done to the fleet; `how` is as DEEDS has it."""

    deed: str
    how: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The change as it is written down."""
        return {"do": self.deed, **self.how}


@dataclass(frozen=True)
class Setting:
    """One way to go on. None: as it is in force."""

    name: str
    alpha: float | None = None
    policy: str | None = None
    load: float = 1.0  # arrivals come so many times as thick as now
    slo_scale: float = 1.0  # factor on the SLO of workflows that arrive from now on
    retention: Mapping[str, Any] | None = None  # {"need": ..., "idle_ttl_s": s or None}
    changes: tuple[Change, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The setting as it is written down; what stays as it is is left out."""
        told: dict[str, Any] = {"name": self.name}
        for key, value in (("alpha", self.alpha), ("policy", self.policy), ("retention", self.retention)):
            if value is not None:
                told[key] = value
        for key, factor in (("load", self.load), ("slo_scale", self.slo_scale)):
            if factor != 1.0:
                told[key] = factor
        if self.changes:
            told["changes"] = [change.as_dict() for change in self.changes]
        return told


@dataclass(frozen=True)
class Spec:
    """All that is asked of one fork."""

    minutes: float  # ahead, simulated
    seeds: int
    arrivals: str  # of ARRIVALS
    back_s: float  # the fork lies so far back, simulated s
    settings: tuple[Setting, ...]  # the first is AS_IT_IS

    @property
    def horizon_s(self) -> float:
        """How far ahead, simulated s."""
        return 60.0 * self.minutes

    def as_dict(self) -> dict[str, Any]:
        """The spec as it is written down."""
        return {
            "minutes": self.minutes,
            "seeds": self.seeds,
            "arrivals": self.arrivals,
            "back_s": self.back_s,
            "settings": [setting.as_dict() for setting in self.settings],
        }


def read_spec(raw: Any) -> Spec:
    """The spec that `raw` (parsed JSON) writes down; AS_IT_IS is put first where it is missing.

    Raises:
        SettingError: naming what is wrong and what is accepted.
    """
    known = ("minutes", "seeds", "arrivals", "back_s", "settings")
    fields = object_of("spec", raw, known)
    settings = fields.get("settings", [])
    if not isinstance(settings, list) or not 1 <= len(settings) <= MOST_SETTINGS:
        raise SettingError(f"settings: expected a list of 1 to {MOST_SETTINGS} settings")
    read = [read_setting(f"settings[{k}]", one) for k, one in enumerate(settings)]
    check_names(read)
    if read[0].name != AS_IT_IS:
        read.insert(0, Setting(AS_IT_IS))
    if len(read) > MOST_SETTINGS:
        raise SettingError(f"settings: {len(settings)} beside {AS_IT_IS!r}: expected at most {MOST_SETTINGS - 1}")
    arrivals = one_of("arrivals", fields.get("arrivals", RESAMPLED), ARRIVALS)
    seeds = whole("seeds", fields.get("seeds", 8), 1, MOST_SEEDS)
    return Spec(
        minutes=number("minutes", fields.get("minutes", 5.0), 1.0, MOST_MINUTES),
        seeds=seeds if arrivals == RESAMPLED else 1,
        arrivals=arrivals,
        back_s=number("back_s", fields.get("back_s", 0.0), 0.0, MOST_BACK_S),
        settings=tuple(read),
    )


def check_names(settings: Sequence[Setting]) -> None:
    """Refuse names that would be taken for one another: on the page a setting is known by nothing else.

    Raises:
        SettingError: a name repeats, or the name of the setting that changes nothing stands for another.
    """
    seen: set[str] = set()
    for k, setting in enumerate(settings):
        if setting.name == AS_IT_IS and (k > 0 or setting != Setting(AS_IT_IS)):
            raise SettingError(f"settings[{k}]: name = {AS_IT_IS!r}: that is the first one, which changes nothing")
        if setting.name in seen:
            raise SettingError(f"settings[{k}]: name = {setting.name!r}: it repeats; expected a name of its own")
        seen.add(setting.name)


def read_setting(where: str, raw: Any) -> Setting:
    """One setting of a spec.

    Raises:
        SettingError: naming what is wrong and what is accepted.
    """
    known = ("name", "alpha", "policy", "load", "slo_scale", "retention", "changes")
    fields = object_of(where, raw, known)
    name = read_name(where, fields.get("name"))
    policy, alpha, changes = fields.get("policy"), fields.get("alpha"), fields.get("changes", [])
    if not isinstance(changes, list) or len(changes) > MOST_SETTINGS:
        raise SettingError(f"{where}: changes: expected a list of at most {MOST_SETTINGS} changes")
    return Setting(
        name=name,
        alpha=None if alpha is None else number(f"{where}: alpha", alpha, 0.0, 1.0),
        policy=None if policy is None else one_of(f"{where}: policy", policy, tuple(POLICIES)),
        load=number(f"{where}: load", fields.get("load", 1.0), 0.0, 10.0),
        slo_scale=number(f"{where}: slo_scale", fields.get("slo_scale", 1.0), 0.01, 100.0),
        retention=read_retention(where, fields.get("retention")),
        changes=tuple(read_change(f"{where}: changes[{k}]", one) for k, one in enumerate(changes)),
    )


def read_name(where: str, raw: Any) -> str:
    """The name of a setting: it can be shown in one line and told from others."""
    name = raw.strip() if isinstance(raw, str) else raw
    if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME or not raw.isprintable():
        accepted = f"expected 1 to {MOST_NAME} characters, none of them a control character"
        raise SettingError(f"{where}: name = {shown(raw, 40)}: {accepted}")
    return name


def read_retention(where: str, raw: Any) -> dict[str, Any] | None:
    """Retention settings; None: as they are."""
    if raw is None:
        return None
    fields = object_of(f"{where}: retention", raw, ("need", "idle_ttl_s"))
    need = one_of(f"{where}: retention: need", fields.get("need"), NEEDS)
    ttl_s = fields.get("idle_ttl_s")
    kept_s = None if ttl_s is None else number(f"{where}: idle_ttl_s", ttl_s, 0.001, 1e9)
    return {"need": need, "idle_ttl_s": kept_s}


def read_change(where: str, raw: Any) -> Change:
    """One change of the fleet."""
    deed = raw.get("do") if isinstance(raw, Mapping) else None
    if not isinstance(deed, str) or deed not in DEEDS:
        raise SettingError(f"{where}: {shown(raw)}: expected {{'do': one of {', '.join(DEEDS)}, ...}}")
    fields = object_of(where, raw, ("do", *DEEDS[deed]))
    how = {key: CHECKS[key](f"{where}: {key}", fields.get(key)) for key in DEEDS[deed]}
    return Change(deed, how)


def object_of(where: str, raw: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
    """`raw` as an object without unknown keys."""
    if not isinstance(raw, Mapping):
        raise SettingError(f"{where} = {shown(raw)}: expected an object with {', '.join(known)}")
    for key in raw:
        if key not in known:
            raise SettingError(f"{where}: {shown(key, 40)} is not known: expected {', '.join(known)}")
    return raw


def number(what: str, value: Any, low: float, high: float) -> float:
    """`value` if it is a number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise SettingError(f"{what} = {shown(value, 40)}: expected a number from {low:g} to {high:g}")
    return float(value)


def whole(what: str, value: Any, low: int, high: int) -> int:
    """`value` if it is a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SettingError(f"{what} = {shown(value, 40)}: expected a whole number from {low} to {high}")
    return value


def one_of(what: str, value: Any, accepted: Sequence[str]) -> str:
    """`value` if it is one of the accepted words."""
    if not isinstance(value, str) or value not in accepted:
        raise SettingError(f"{what} = {shown(value, 40)}: expected one of {', '.join(accepted)}")
    return value


def text(what: str, value: Any) -> str:
    """`value` if it is a name."""
    if not isinstance(value, str) or not 0 < len(value) <= MOST_NAME:
        raise SettingError(f"{what} = {shown(value, 40)}: expected the name of an instance or tier")
    return value


def role(what: str, value: Any) -> str:
    """`value` if it is a role; "both" stands for mixed."""
    return one_of(what, "mixed" if value == "both" else value, ROLES)


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "like": text,
    "instance": text,
    "tier": text,
    "role": role,
    "count": lambda what, value: 1 if value is None else whole(what, value, 1, MOST_ADDED),
    "cap_w": lambda what, value: None if value is None else number(what, value, 0.001, 1e6),
}
