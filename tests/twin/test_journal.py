"""The journal loses nothing, however often it fills."""

import numpy as np
from hypothesis import given

from control.policy.codes import CALL_ENDED, PLACED, PREEMPTED, WORKFLOW_ENDED_ENTRY
from control.policy.contexts import JOURNAL
from control.policy.tables import Table
from control.twin.kernel import advance
from control.twin.world import World
from tests.support.parity import unlike_tables
from tests.support.scenes import Scene, examples, scenes
from tests.support.worlds import CallSpec, fleet, instance, lone_calls


def drained(world: World) -> tuple[Table, int]:
    """All entries of a run to the end, and how often the journal was drained on the way."""
    parts, drains = [], 0
    done = False
    while not done:
        done = advance(world, np.inf)
        parts.append(world.journal[: world.clock[0]["n_journal"]].copy())
        world.clock["n_journal"] = 0
        drains += not done
    return np.concatenate(parts), drains


def busy() -> Scene:
    """Forty calls, one every 0.1 s, on two tight instances."""
    work = lone_calls([0.1 * k for k in range(40)], [CallSpec(60, 60)] * 40)
    tight = instance(kv_tokens=256)
    return Scene(work, fleet(tight, tight), "least-loaded", 0.5, 1.0, -1)


def test_small_journal_drained_often_tells_what_a_large_one_does() -> None:
    large, small = busy().world(journal=True), busy().world()._replace(journal=np.zeros(32, JOURNAL))
    (whole, none), (parts, many) = drained(large), drained(small)
    assert (none, many > 3) == (0, True)
    assert whole.tobytes() == parts.tobytes()
    assert unlike_tables(large, small) == []


@examples(60)
@given(scene=scenes())
def test_journal_tells_every_placement_end_and_preemption(scene: Scene) -> None:
    world, silent = scene.world(journal=True), scene.world()
    entries, _ = drained(world)
    advance(silent, np.inf)
    assert unlike_tables(world, silent) == []
    rows = {kind: entries[entries["kind"] == kind]["row"] for kind in range(4)}
    assert sorted(rows[CALL_ENDED]) == list(range(len(world.calls)))
    assert sorted(rows[WORKFLOW_ENDED_ENTRY]) == list(range(len(world.workflows)))
    placed = np.flatnonzero(world.calls["placed_s"] >= 0).tolist()
    assert sorted(set(rows[PLACED])) == placed
    assert len(rows[PLACED]) == len(placed) or world.instances["sent"].any()  # a call that moves is placed twice
    assert np.array_equal(np.bincount(rows[PREEMPTED], minlength=len(world.calls)), world.calls["preemptions"])
    assert (np.diff(entries["at_s"]) >= 0).all()
