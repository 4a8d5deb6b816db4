"""Run a world to its end."""

import numpy as np

from control.model.fleet import Fleet
from control.model.workload import Workload
from control.policy.rules import USUAL, Conversations
from control.twin.kernel import advance, settle_energy
from control.twin.pack import build_world
from control.twin.world import World


def simulate(
    workload: Workload,
    fleet: Fleet,
    policy: str,
    alpha: float = 0.5,
    exact: bool = False,
    form: str = "paper",
    aging_s: float = np.inf,
    conversations: Conversations = USUAL,
) -> World:
    """The world after every call of `workload` has ended, energy booked up to the last end.

    The arguments are those of pack.build_world.

    Raises:
        SettingError: see pack.build_world.
    """
    world = build_world(workload, fleet, policy, alpha, exact, form=form, aging_s=aging_s, conversations=conversations)
    advance(world, np.inf)
    settle_energy(world)
    return world
