"""The laws hold whatever fails, drains and comes back, and whenever it does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.policy.codes import COMPLETED, DRAINING, NO_INSTANCE, REFUSED
from control.twin.acts import kill, revive
from control.twin.kernel import advance, settle_energy
from control.twin.world import World
from tests.support.failures import Order, disturbed, orders
from tests.support.laws import check_world
from tests.support.scenes import Scene, examples, scenes
from tests.support.worlds import CallSpec, fleet, instance, lone_calls


@examples(150)
@given(scene=scenes(), exact=st.booleans(), happens=orders())
def test_laws_hold_through_kills_drains_and_returns(scene: Scene, exact: bool, happens: list[Order]) -> None:
    disturbed(scene, exact, happens)


@pytest.fixture
def two_busy() -> World:
    """Two equal instances at 1 s, each with one call decoding and one waiting for its seat."""
    single = instance(max_num_seqs=1)
    work = lone_calls([0.0] * 4, [CallSpec(30, 200)] * 4)
    world = Scene(work, fleet(single, single), "rr-fcfs", 0.5, 1.0, -1).world()
    advance(world, 1.0)
    return world


def test_calls_of_a_failed_instance_start_anew_on_the_other(two_busy: World) -> None:
    kill(two_busy, 0)
    advance(two_busy, np.inf)
    calls = two_busy.calls
    assert (calls["state"] == COMPLETED).all()
    assert (calls["instance"] == 1).all()
    assert calls["restarts"].tolist() == [1, 0, 1, 0]
    assert calls["failure_s"] == pytest.approx([1.0, 0.0, 1.0, 0.0])
    assert two_busy.instances["busy_s"][0] == pytest.approx(1.0)
    assert two_busy.instances["free"][0] == two_busy.instances["blocks"][0]


def test_failure_of_the_last_instance_refuses_what_it_held(two_busy: World) -> None:
    kill(two_busy, 0)
    kill(two_busy, 1)
    advance(two_busy, np.inf)
    assert (two_busy.calls["state"] == REFUSED).all()
    assert (two_busy.calls["cause"] == NO_INSTANCE).all()
    assert two_busy.calls["failure_s"] == pytest.approx([1.0] * 4)
    check_world(two_busy, ended=True)


def test_second_failure_changes_nothing(two_busy: World) -> None:
    kill(two_busy, 0)
    joules, waiting = two_busy.instances["energy_j"].copy(), two_busy.instances["n_waiting"].copy()
    kill(two_busy, 0)
    assert (two_busy.instances["energy_j"] == joules).all()
    assert (two_busy.instances["n_waiting"] == waiting).all()


def test_draining_instance_serves_what_it_has_and_takes_nothing_new(two_busy: World) -> None:
    two_busy.instances[0]["state"] = DRAINING
    advance(two_busy, np.inf)
    assert two_busy.instances["finished"].tolist() == [2, 2]
    late = Scene(
        lone_calls([0.0, 0.0], [CallSpec(8, 2)] * 2), fleet(instance(), instance()), "rr-fcfs", 0.0, 1.0, 0
    ).world()
    advance(late, np.inf)
    assert late.instances["finished"].tolist() == [0, 2]


def test_instance_draws_nothing_while_down_and_takes_calls_once_back() -> None:
    work = lone_calls([0.0, 10.0], [CallSpec(8, 2)] * 2)
    world = Scene(work, fleet(instance()), "rr-fcfs", 0.5, 1.0, -1).world()
    advance(world, 2.0)
    kill(world, 0)
    joules = float(world.instances["energy_j"][0])
    advance(world, 8.0)
    settle_energy(world)
    assert world.instances["energy_j"][0] == joules
    revive(world, 0)
    advance(world, np.inf)
    assert (world.calls["state"] == COMPLETED).all()
    idle_s = world.instances["idle_j"][0] / world.costs.profiles["idle_w"][0]
    first_s = world.calls["finished_s"][0]
    assert idle_s == pytest.approx((2.0 - first_s) + 2.0)
