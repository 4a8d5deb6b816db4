"""A setting put in force on a world: what an operator's commands would do, and hardware that nobody owns yet."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from control.errors import SettingError
from control.model.fleet import Fleet, InstanceSpec, profile_of
from control.model.power import cap_bounds
from control.policy.codes import DOWN, ROLES, UP, policy_codes
from control.tuning.whatif.spec import Change, Setting
from control.twin.acts import change_policy, drain, kill
from control.twin.caps import Switch, at_cost, begin_switches, live_costs, with_caps
from control.twin.grow import grown
from control.twin.idle import retain
from control.twin.kernel import advance
from control.twin.world import World


@dataclass
class Course:
    """A world on its way, with the caps that are still to come into force."""

    world: World
    fleet: Fleet
    switches: list[Switch]

    @property
    def now_s(self) -> float:
        """Simulated time, s."""
        return float(self.world.clock[0]["now_s"])

    def run_to(self, until_s: float) -> None:
        """Let the world run to `until_s`."""
        while self.switches and self.switches[0].at_s <= until_s:
            before_s = float(np.nextafter(self.switches[0].at_s, -np.inf))
            if before_s > self.now_s:
                advance(self.world, before_s)
            self.switches.pop(0)
            self.take_costs()
        advance(self.world, until_s)

    def take_costs(self) -> None:
        """Bring the world to the costs of the caps in force."""
        self.world = at_cost(self.world, *live_costs(self.fleet, self.switches))

    def row(self, name: str) -> int:
        """The instance of that name.

        Raises:
            SettingError: there is none.
        """
        names = [spec.name for spec in self.fleet.instances]
        if name not in names:
            raise SettingError(f"{name!r:.40} is no instance: expected one of {', '.join(names)}")
        return names.index(name)


def put_in_force(course: Course, setting: Setting, form: str) -> None:
    """Change what the setting changes, now.

    Raises:
        SettingError: an instance is not there or not in a state for it, a cap is out of bounds.
    """
    for change in sorted(
        setting.changes, key=lambda change: change.deed != "add"
    ):  # new ones first: caps may name them
        DEEDS[change.deed](course, change)
    if setting.policy is not None:
        codes = policy_codes(setting.policy, form)
        change_policy(course.world, codes.dispatch, codes.queue)
    if setting.alpha is not None:
        course.world.policy[0]["alpha"] = setting.alpha
    if setting.retention is not None:
        retain(course.world, setting.retention)


def add(course: Course, change: Change) -> None:
    """More instances like one that is there."""
    like = course.fleet.instances[course.row(change.how["like"])]
    taken = {spec.name for spec in course.fleet.instances}
    names = (f"{like.name}+{k}" for k in range(1, 1000))
    fresh = [replace(like, name=name) for name in names if name not in taken][: change.how["count"]]
    course.switches = []  # a cap about to come into force comes now
    course.fleet = replace(course.fleet, instances=(*course.fleet.instances, *fresh))
    course.world = grown(course.world, course.fleet)


def fail(course: Course, change: Change) -> None:
    """An instance fails, and stays down."""
    i = course.row(change.how["instance"])
    if course.world.instances[i]["state"] == DOWN:
        raise SettingError(f"{change.how['instance']} is down already")
    kill(course.world, i)


def begin_drain(course: Course, change: Change) -> None:
    """An instance gets no new calls."""
    i = course.row(change.how["instance"])
    if course.world.instances[i]["state"] != UP:
        raise SettingError(f"{change.how['instance']} is not up: it cannot be drained")
    drain(course.world, i)


def set_role(course: Course, change: Change) -> None:
    """An instance takes another role: prefill, decode or both."""
    i = course.row(change.how["instance"])
    course.world.instances[i]["role"] = ROLES.index(change.how["role"])
    specs = list(course.fleet.instances)
    specs[i] = replace(specs[i], role=change.how["role"])
    course.fleet = replace(course.fleet, instances=tuple(specs))


def cap(course: Course, change: Change) -> None:
    """A power cap (W per GPU; None: none) on a GPU type, a role, one instance or all."""
    target, cap_w = change.how["tier"], change.how["cap_w"]
    specs = course.fleet.instances
    rows = [i for i, spec in enumerate(specs) if is_meant(spec, target)]
    if not rows:
        raise SettingError(f"tier = {target!r:.40}: expected a GPU type, a role, an instance's name or all")
    for i in rows:
        check_cap(specs[i], cap_w)
    after = [cap_w if i in rows else spec.power_cap_w for i, spec in enumerate(specs)]
    fleet = with_caps(course.fleet, after)
    course.switches = begin_switches(course.world, specs, fleet.instances, course.switches)
    course.fleet = fleet
    course.take_costs()


def is_meant(spec: InstanceSpec, target: str) -> bool:
    """Whether a cap's target names the instance: all, its GPU type, its role or itself."""
    return target in ("all", spec.gpu, spec.role, spec.name)


def check_cap(spec: InstanceSpec, cap_w: float | None) -> None:
    """Refuse a cap that the GPU does not take.

    Raises:
        SettingError: it is out of bounds.
    """
    low_w, high_w = cap_bounds(profile_of(spec))
    if cap_w is not None and not low_w <= cap_w <= high_w:
        raise SettingError(f"{spec.name} ({spec.gpu}) takes a cap from {low_w:g} to {high_w:g} W per GPU")


DEEDS: dict[str, Any] = {
    "add": add,
    "remove": fail,
    "fail": fail,
    "drain": begin_drain,
    "role": set_role,
    "cap": cap,
}


def commands_of(setting: Setting, fleet: Fleet) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """The operator's commands that put the setting in force on the live fleet, and why it cannot be, "" if it can."""
    wanted: list[tuple[str, dict[str, Any]]] = []
    for change in setting.changes:
        if change.deed in ("add", "role"):
            why = "hardware is bought first" if change.deed == "add" else "a role changes with a restart of the server"
            return [], why
        if change.deed == "cap":
            target, cap_w = change.how["tier"], change.how["cap_w"]
            hit = {s.name: cap_w for s in fleet.instances if is_meant(s, target)}
            wanted.append(("power_caps", {"caps": hit}))
        else:
            kind = "drain" if change.deed == "drain" else "kill"
            wanted.append((kind, {"instance": change.how["instance"]}))
    if setting.policy is not None:
        wanted.append(("policy", {"policy": setting.policy}))
    if setting.alpha is not None:
        wanted.append(("alpha", {"alpha": setting.alpha}))
    if setting.retention is not None:
        wanted.append(("retention", {"retention": dict(setting.retention)}))
    if setting.load != 1.0 or setting.slo_scale != 1.0:
        return [], "load and SLOs are the clients': they cannot be set from here"
    return wanted, "" if wanted else "it changes nothing"
