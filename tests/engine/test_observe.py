"""What is shown of an instance inside a run is what a simulation of every single iteration holds at that moment."""

import numpy as np
import pytest

from control.model.fleet import Fleet
from control.policy.tables import Table
from control.twin.kernel import advance, settle_energy
from control.twin.observe import VIEW, view_all
from control.twin.pack import build_world
from control.twin.world import World, fork
from control.workload.generate import generate
from tests.support.worlds import CallSpec, fleet, instance, lone_calls


def views(world: World) -> Table:
    """One VIEW row per instance at the world's time."""
    rows = np.zeros(len(world.instances), VIEW)
    view_all(world, float(world.clock[0]["now_s"]), rows)
    return rows


@pytest.mark.parametrize("policy", ["hexgen", "least-loaded"])
def test_views_agree_with_one_event_an_iteration(demo_fleet: Fleet, policy: str) -> None:
    work = generate("demo-mixed", 150, 7)
    fast, exact = (build_world(work, demo_fleet, policy, 0.3, mode) for mode in (False, True))
    for at_s in np.arange(0.5, 110.0, 3.7):
        advance(fast, at_s)
        advance(exact, at_s)
        mine, reference = views(fast), views(exact)
        for name in ("used_blocks", "cached_blocks", "generated"):
            assert np.array_equal(mine[name], reference[name]), (at_s, name)
        assert np.allclose(mine["energy_j"], reference["energy_j"], rtol=1e-9)
        assert np.allclose(mine["power_w"], reference["power_w"])


def test_looking_moves_nothing(demo_fleet: Fleet) -> None:
    work = generate("demo-mixed", 80, 7)
    seen, unseen = (build_world(work, demo_fleet, "hexgen", 0.3) for _ in range(2))
    for at_s in np.arange(1.0, 60.0, 1.3):
        advance(seen, at_s)
        views(seen)
        advance(unseen, at_s)
    assert seen.instances.tobytes() == unseen.instances.tobytes()
    assert seen.calls.tobytes() == unseen.calls.tobytes()


def test_idle_joules_are_those_of_a_settled_fork() -> None:
    work = lone_calls([0.0], [CallSpec(30, 5)])
    world = build_world(work, fleet(instance(), instance("H100")), "hexgen")
    advance(world, 50.0)
    settled = fork(world)
    settle_energy(settled)
    assert np.allclose(views(world)["energy_j"], settled.instances["energy_j"], rtol=1e-12)


def test_power_follows_the_batch_and_falls_to_idle() -> None:
    world = build_world(lone_calls([0.0], [CallSpec(30, 500)]), fleet(instance()), "hexgen")
    idle_w = float(views(world)["power_w"][0])
    advance(world, 1.0)
    assert views(world)["power_w"][0] > idle_w > 0.0
    advance(world, 1e4)
    assert views(world)["power_w"][0] == idle_w
