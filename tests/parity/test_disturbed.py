"""The compiled twin against the slow one while instances fail and drain, clients give up and policies change."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from control.policy.codes import DOWN, policy_codes
from control.twin.kernel import advance, settle_energy
from tests.naive.failures import Disturbed
from tests.support.failures import Order, obey, orders
from tests.support.laws import check_world
from tests.support.parity import differences
from tests.support.scenes import ALL_POLICIES, Scene, examples, scenes


def obey_slowly(naive: Disturbed, order: Order) -> None:
    """What `obey` does to a world, to the slow twin."""
    instance = naive.instances[order.number % len(naive.instances)]
    if order.what == "kill":
        naive.kill(instance)
    elif order.what == "revive":
        naive.revive(instance)
    elif order.what == "cancel":
        naive.cancel(naive.workflows[order.number % len(naive.workflows)])
    elif order.what == "switch":
        naive.change_policy(policy_codes(ALL_POLICIES[order.number % len(ALL_POLICIES)]))
    elif instance.state != DOWN:
        naive.drain(instance)
    naive.retry_held()


def check_disturbed(scene: Scene, exact: bool, happens: list[Order]) -> None:
    """The same happens to the scene's world and to the slow twin: no value may differ, and every law holds."""
    quiet, world = scene.world(exact), scene.world(exact)
    naive = Disturbed(world)
    advance(quiet, np.inf)
    for order in happens:
        at_s = order.share * float(quiet.clock[0]["now_s"])
        advance(world, at_s)
        naive.advance(at_s)
        obey(world, order)
        obey_slowly(naive, order)
    advance(world, np.inf)
    settle_energy(world)
    naive.run()
    assert differences(naive, world) == []
    check_world(world, ended=True)


@examples(60)
@given(scene=scenes(), exact=st.booleans(), happens=orders())
def test_disturbed_scene_runs_alike(scene: Scene, exact: bool, happens: list[Order]) -> None:
    check_disturbed(scene, exact, happens)
