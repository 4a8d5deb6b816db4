"""What is seen inside a fast-forwarded run is what the per-iteration run holds at that moment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.policy.codes import DECODE
from control.twin.kernel import advance
from control.twin.observe import VIEW, emitted_by, view_all
from control.twin.world import World
from tests.support.scenes import ALIKE, Scene, examples, scenes
from tests.support.worlds import CallSpec, fleet, instance, lone_calls


def seen(world: World, at_s: float) -> np.ndarray:
    """The view of all instances at `at_s`."""
    rows = np.zeros(len(world.instances), VIEW)
    view_all(world, at_s, rows)
    return rows


@examples(100)
@given(scene=scenes(grid=False, policies=ALIKE), share=st.floats(0.0, 1.0))
def test_view_inside_a_run_is_that_of_single_iterations(scene: Scene, share: float) -> None:
    whole, fast, exact = scene.world(), scene.world(), scene.world(exact=True)
    advance(whole, np.inf)
    at_s = share * 0.999 * float(whole.clock[0]["now_s"])
    advance(fast, at_s)
    advance(exact, at_s)
    one, other = seen(fast, at_s), seen(exact, at_s)
    for name in ("used_blocks", "cached_blocks", "generated"):
        assert np.array_equal(one[name], other[name]), name
    assert np.allclose(one["power_w"], other["power_w"])
    assert np.allclose(one["energy_j"], other["energy_j"], rtol=1e-9, atol=1e-6)
    for c in np.flatnonzero(fast.calls["state"] == DECODE):
        assert emitted_by(fast, int(c), at_s) == exact.calls[c]["emitted"]


def test_looking_moves_nothing() -> None:
    world = Scene(lone_calls([0.0], [CallSpec(10, 50)]), fleet(instance()), "rr-fcfs", 0.5, 1.0, -1).world()
    advance(world, 0.3)
    before = world.instances.tobytes()
    first = seen(world, 0.3)
    assert first.tobytes() == seen(world, 0.3).tobytes()
    assert world.instances.tobytes() == before


def test_idle_instance_draws_its_idle_power() -> None:
    world = Scene(lone_calls([9.0], [CallSpec(10, 5)]), fleet(instance()), "rr-fcfs", 0.5, 1.0, -1).world()
    advance(world, 4.0)
    [row] = seen(world, 4.0)
    idle_w = world.costs.profiles["idle_w"][0]
    assert (row["power_w"], row["energy_j"]) == (idle_w, pytest.approx(4.0 * idle_w))
