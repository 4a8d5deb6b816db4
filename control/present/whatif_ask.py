"""What a fork is asked for: the settings of each preset, the spec that the engine takes, and both in words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from control.present.cells import duration
from control.present.units import counted, quantity

Setting = dict[str, Any]
Spec = dict[str, Any]
PRESETS = {
    "alpha": "Sweep α",
    "policies": "Policies",
    "fleet": "Fleet",
    "power": "Power",
    "load": "Load",
    "slo": "SLO",
    "retention": "Retention",
}
PRESET_NOTES = {
    "alpha": "Each α from 0 to 1 in steps of 0.1.",
    "policies": "Each policy in place of the one in force.",
    "fleet": "One setting a change and instance.",
    "power": "One setting a cap, W per GPU.",
    "load": "The arrivals, so many times as often.",
    "slo": "The deadlines, so many times as long.",
    "retention": "How long an idle conversation keeps its KV.",
}
ARRIVALS = {"resampled": "Resampled", "own": "Own future"}
ARRIVAL_NOTES = {
    "resampled": "Arrivals and lengths are drawn from what came lately, another draw a seed.",
    "own": "The workload's own arrivals and true lengths: it knows the future, so one seed is enough.",
}
DEEDS = {"fail": "fail", "drain": "drain", "remove": "remove", "add": "add one like", "role": "turn"}
ROLES = ("prefill", "decode", "both")
LOADS = (0.5, 1.0, 1.5, 2.0, 3.0)
SLO_SCALES = (0.5, 0.75, 1.0, 1.5, 2.0)
#: Longest time an idle context is kept, s; None keeps it for good.
IDLE_S: tuple[float | None, ...] = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, None)
#: Bounds of a spec: simulated minutes ahead and back, seeds, settings beside the one in force.
MINUTES, BACK_MINUTES, SEEDS, MOST_SETTINGS = (1, 30), (0, 15), (1, 32), 39
DEFAULT_MINUTES, DEFAULT_SEEDS = 5, 8


def alphas(steps: int = 10) -> list[Setting]:
    """α from 0 to 1 in `steps` equal steps."""
    return [{"name": f"α {k / steps:.2f}", "alpha": k / steps} for k in range(steps + 1)]


def policies(names: Iterable[str]) -> list[Setting]:
    """One setting a policy."""
    return [{"name": name, "policy": name} for name in names]


def changes(deeds: Sequence[str], instances: Sequence[str], role: str = "both") -> list[Setting]:
    """One setting a deed and instance; `role` is what "role" turns an instance to."""
    return [_change(deed, name, role) for deed in deeds for name in instances]


def caps(tier: str, low_w: float, high_w: float, levels: int, tdp_w: float | None) -> list[Setting]:
    """`levels` caps of `tier` in equal steps from `high_w` down to `low_w`, W per GPU; one at `tdp_w` is no cap."""
    if levels < 2 or high_w <= low_w:
        levels, low_w = 1, high_w
    watts = [round(high_w - k * (high_w - low_w) / max(levels - 1, 1)) for k in range(levels)]
    return [_cap(tier, float(cap), tdp_w) for cap in dict.fromkeys(watts)]


def loads(factors: Iterable[float]) -> list[Setting]:
    """One setting a factor on the arrivals."""
    return [{"name": f"load ×{factor:g}", "load": float(factor)} for factor in factors]


def slo_scales(factors: Iterable[float]) -> list[Setting]:
    """One setting a factor on the deadlines."""
    return [{"name": f"SLO ×{factor:g}", "slo_scale": float(factor)} for factor in factors]


def retentions(limits_s: Iterable[float | None], need: str) -> list[Setting]:
    """One setting a limit (s, None: for good) under the `need` in force."""
    return [{"name": f"keep idle {_kept(s)}", "retention": {"need": need, "idle_ttl_s": s}} for s in limits_s]


def spec(
    settings: Sequence[Setting],
    minutes: float = DEFAULT_MINUTES,
    seeds: int = DEFAULT_SEEDS,
    arrivals: str = "resampled",
    back_minutes: float = 0.0,
) -> Spec:
    """The spec of a fork `minutes` ahead from `back_minutes` ago, both simulated; the own future has one seed."""
    known = arrivals if arrivals in ARRIVALS else "resampled"
    drawn = 1 if known == "own" else int(seeds)
    asked = {"minutes": float(minutes), "seeds": drawn, "arrivals": known, "back_s": 60.0 * back_minutes}
    return asked | {"settings": list(settings)}


def too_many(settings: Sequence[Setting]) -> str:
    """The sentence where a fork cannot have that many settings, else ""."""
    if len(settings) <= MOST_SETTINGS:
        return ""
    return f"{len(settings)} settings are too many for one fork; accepted: 1 to {MOST_SETTINGS}."


def what(asked: Mapping[str, Any]) -> str:
    """The settings of a spec in a few words, e.g. "α 0.00 to 1.00"."""
    settings = [s for s in asked.get("settings") or () if s.get("name") != "as it is"]
    names = [str(s.get("name", "")) for s in settings]
    if not names:
        return "as it is"
    if len(names) > 2 and all("alpha" in s for s in settings):
        low, high = (f(float(s["alpha"]) for s in settings) for f in (min, max))
        return f"α {low:.2f} to {high:.2f}"
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + rest


def ahead(asked: Mapping[str, Any]) -> str:
    """How far a fork looks ahead, how often and from what, in words."""
    minutes, seeds = float(asked.get("minutes") or 0.0), int(asked.get("seeds") or 1)
    drawn = counted(seeds, "seed")
    if asked.get("arrivals") == "own":
        drawn = "the workload's own arrivals and lengths (knows the future)"
    elif seeds:
        drawn += ", arrivals resampled"
    return f"next {quantity(60.0 * minutes, 's') if minutes < 1 else f'{minutes:g} min'}, {drawn}"


def _change(deed: str, instance: str, role: str) -> Setting:
    if deed == "add":
        done: dict[str, Any] = {"do": deed, "like": instance, "count": 1}
    else:
        done = {"do": deed, "instance": instance} | ({"role": role} if deed == "role" else {})
    name = f"{DEEDS[deed]} {instance}" + (f" to {role}" if deed == "role" else "")
    return {"name": name, "changes": [done]}


def _cap(tier: str, cap_w: float, tdp_w: float | None) -> Setting:
    free = tdp_w is not None and cap_w >= tdp_w
    name = f"{tier} without cap" if free else f"{tier} at {cap_w:.0f} W"
    return {"name": name, "changes": [{"do": "cap", "tier": tier, "cap_w": None if free else cap_w}]}


def _kept(limit_s: float | None) -> str:
    return "for good" if limit_s is None else duration(limit_s).text
