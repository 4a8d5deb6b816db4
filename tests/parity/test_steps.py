"""A run may be cut anywhere and forked anywhere without changing a bit of it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from control.twin.kernel import advance
from control.twin.world import fork
from tests.support.laws import check_world
from tests.support.parity import unlike_tables
from tests.support.scenes import Scene, examples, scenes

SHARES = st.lists(st.floats(0.0, 0.999), min_size=1, max_size=12).map(sorted)


@examples(80)
@given(scene=scenes(), exact=st.booleans(), shares=SHARES)
def test_small_steps_give_the_run_in_one_go(scene: Scene, exact: bool, shares: list[float]) -> None:
    whole, stepped = scene.world(exact), scene.world(exact)
    assert advance(whole, np.inf)
    for share in shares:
        assert advance(stepped, share * whole.clock[0]["now_s"])
        check_world(stepped)
    advance(stepped, np.inf)
    assert unlike_tables(whole, stepped) == []


@examples(80)
@given(scene=scenes(), share=st.floats(0.0, 1.0))
def test_fork_runs_on_like_the_original_and_leaves_it_alone(scene: Scene, share: float) -> None:
    whole, original = scene.world(), scene.world()
    advance(whole, np.inf)
    advance(original, share * whole.clock[0]["now_s"])
    copy, before = fork(original), fork(original)
    advance(copy, np.inf)
    assert unlike_tables(original, before) == []
    advance(original, np.inf)
    assert unlike_tables(copy, original) == []


@examples(80)
@given(scene=scenes(), exact=st.booleans())
def test_same_inputs_same_bytes(scene: Scene, exact: bool) -> None:
    worlds = [scene.world(exact) for _ in range(2)]
    for world in worlds:
        advance(world, np.inf)
    assert unlike_tables(*worlds) == []
