"""Run a world to its end."""

import numpy as np

from control.model.fleet import Fleet
from control.model.workload import Workload
from control.twin.kernel import advance, settle_energy
from control.twin.pack import build_world
from control.twin.world import World


def simulate(workload: Workload, fleet: Fleet, policy: str, alpha: float = 0.5, exact: bool = False) -> World:
    """The world after every call of `workload` has ended, energy booked up to the last end.

    Raises:
        SettingError: see pack.build_world.
    """
    world = build_world(workload, fleet, policy, alpha, exact)
    advance(world, np.inf)
    settle_energy(world)
    return world
