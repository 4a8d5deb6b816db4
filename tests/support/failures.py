"""What may happen to a world while it runs: to its instances, its workflows, its policy."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from control.policy.codes import DOWN, policy_codes
from control.twin.acts import cancel, change_policy, drain, kill, revive
from control.twin.kernel import advance, settle_energy
from control.twin.world import World
from tests.support.laws import check_world
from tests.support.scenes import ALL_POLICIES, Scene


class Order(NamedTuple):
    """What happens to an instance or workflow, at a share of the undisturbed run."""

    share: float
    what: str
    number: int


def orders(least: int = 1) -> st.SearchStrategy[list[Order]]:
    """`least` to 12 orders, in order of time."""
    order = st.builds(
        Order,
        st.floats(0.0, 1.0),
        st.sampled_from(["kill", "kill", "revive", "drain", "cancel", "cancel", "switch"]),
        st.integers(0, 12),
    )
    return st.lists(order, min_size=least, max_size=12).map(sorted)


def obey(world: World, order: Order) -> None:
    """Kill, revive or drain an instance, cancel a workflow, or switch the policy, now."""
    i = order.number % len(world.instances)
    if order.what == "kill":
        kill(world, i)
    elif order.what == "revive":
        revive(world, i)
    elif order.what == "cancel":
        cancel(world, order.number % len(world.workflows))
    elif order.what == "switch":
        change_policy(world, *policy_codes(ALL_POLICIES[order.number % len(ALL_POLICIES)]))
    elif world.instances[i]["state"] != DOWN:
        drain(world, i)


def disturbed(scene: Scene, exact: bool, happens: list[Order]) -> World:
    """The scene's world at its end, after all that happens to it; the laws hold throughout."""
    quiet, world = scene.world(exact), scene.world(exact)
    advance(quiet, np.inf)
    for order in happens:
        at_s = order.share * float(quiet.clock[0]["now_s"])
        advance(world, at_s)
        obey(world, order)
        advance(world, at_s)
        check_world(world)
    advance(world, np.inf)
    settle_energy(world)
    check_world(world, ended=True)
    return world
