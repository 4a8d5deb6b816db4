"""Power caps and speeds of a live fleet: other costs for instances that go on, from the end of what each is at.

A decode run is cut at the next boundary of its batch and ends with the cost it began with; only then does its instance
take the new one. Deadlines do not move with a cap: SLOs keep the cost of the fleet as it was given.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from control.model.fleet import Fleet, InstanceSpec
from control.policy.codes import IDLE
from control.policy.tables import Costs, Ints
from control.twin.batching import cut_run
from control.twin.costing import cost_tables, profile_key
from control.twin.pack import refresh_steps
from control.twin.world import World

Cap = float | None  # W per GPU; None: no cap


class Switch(NamedTuple):
    """An instance that takes its new cost when its run under way ends."""

    at_s: float  # simulated s
    instance: int
    cap_w: Cap  # in force until then
    prefill_scale: float = 1.0  # same
    decode_scale: float = 1.0  # same

    def before(self, spec: InstanceSpec) -> InstanceSpec:
        """The instance at the cost that is in force until then."""
        prefill, decode = self.prefill_scale, self.decode_scale
        return replace(spec, power_cap_w=self.cap_w, prefill_scale=prefill, decode_scale=decode)


def caps_of(fleet: Fleet) -> list[Cap]:
    """The cap of each instance, W per GPU."""
    return [spec.power_cap_w for spec in fleet.instances]


def with_caps(fleet: Fleet, caps: Sequence[Cap]) -> Fleet:
    """The same fleet under other caps, W per GPU."""
    pairs = zip(fleet.instances, caps, strict=True)
    return replace(fleet, instances=tuple(replace(spec, power_cap_w=cap) for spec, cap in pairs))


def with_scales(fleet: Fleet, scales: Sequence[Sequence[float]]) -> Fleet:
    """The same fleet with other factors on the times of prefill and decode."""
    pairs = zip(fleet.instances, scales, strict=True)
    changed = (replace(spec, prefill_scale=scale[0], decode_scale=scale[1]) for spec, scale in pairs)
    return replace(fleet, instances=tuple(changed))


def live_costs(fleet: Fleet, switches: Sequence[Switch]) -> tuple[Costs, Ints]:
    """Costs of a fleet some of whose instances are still to switch, and the row of each instance now [n]."""
    old = [switch.before(fleet.instances[switch.instance]) for switch in switches]
    costs, rows = cost_tables(Fleet(fleet.name, (*fleet.instances, *old)))
    now = np.array([rows[profile_key(spec)] for spec in fleet.instances], np.int64)
    for switch, spec in zip(switches, old, strict=True):
        now[switch.instance] = rows[profile_key(spec)]
    return costs, now


def begin_switches(
    world: World, before: Sequence[InstanceSpec], after: Sequence[InstanceSpec], under_way: Sequence[Switch]
) -> list[Switch]:
    """Cut the runs of the instances whose costs change; when each of them will take its new cost."""
    waiting = {switch.instance: switch for switch in under_way}
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        if profile_key(old) == profile_key(new) or i in waiting or world.instances[i]["run"] == IDLE:
            continue
        cut_run(world, i, float(world.clock[0]["now_s"]))
        scales = old.prefill_scale, old.decode_scale
        waiting[i] = Switch(float(world.runs.time[i]), i, old.power_cap_w, *scales)
    return sorted(waiting.values())


def at_cost(world: World, costs: Costs, rows: Ints) -> World:
    """The world at other costs: `rows` [n] is the profile of each instance; what steps are planned to take follows."""
    world = world._replace(costs=costs)
    world.instances["profile"] = rows
    refresh_steps(world.costs, world.instances, world.steps)
    return world
