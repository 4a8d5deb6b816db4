"""A world that forgets what has ended and takes in what comes runs on like one that held everything from the start."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from control.model.workload import Workload
from control.policy.tables import Table
from control.twin.kernel import advance
from control.twin.pack import build_world
from control.twin.repack import repack
from control.twin.world import World
from tests.support.scenes import Scene, examples, scenes
from tests.support.worlds import CallSpec, fleet, instance, lone_calls

INSTANCE_LINKS = ("wait_head", "wait_tail")  # row numbers
CALL_RESULTS: tuple[str, ...] = ("state", "cause", "instance", "ready_s", "placed_s", "started_s", "finished_s")
CALL_RESULTS += ("first_token_s", "score", "budget_s", "energy_j", "cached_tokens", "preemptions", "emitted")


def part(work: Workload, first: int, end: int) -> Workload:
    """Workflows `first` .. `end` - 1 as a workload of the same names and streams."""
    workflows = work.workflows[first:end].copy()
    mine = (work.calls["workflow"] >= first) & (work.calls["workflow"] < end)
    calls = work.calls[mine].copy()
    calls["workflow"] -= first
    workflows["first_call"] -= np.flatnonzero(mine)[0] if mine.any() else 0
    return work._replace(workflows=workflows, calls=calls)


def world_of(scene: Scene, work: Workload) -> World:
    """The scene's world with this work."""
    return replace(scene, work=work).world()


def check_alike(results: dict[int, Table], whole: World) -> None:
    """Every call, known by its uid, came to the same end."""
    assert sorted(results) == sorted(whole.calls["uid"].tolist())
    for call in whole.calls:
        mine = results[int(call["uid"])]
        assert {name: mine[name] for name in CALL_RESULTS} == {name: call[name] for name in CALL_RESULTS}


def collect(world: World, results: dict[int, Table]) -> None:
    """Keep the rows of the world's calls by uid, later ones over earlier ones."""
    results.update({int(call["uid"]): call.copy() for call in world.calls})


@examples(120)
@given(scene=scenes(), split=st.floats(0.0, 1.0), share=st.floats(0.0, 0.999), later=st.floats(0.0, 1.5))
def test_repacked_world_runs_on_like_the_whole(scene: Scene, split: float, share: float, later: float) -> None:
    """Part of the work comes in while the rest is under way; some time later everything ended is forgotten again."""
    scene = replace(
        scene, knee=1.0, step_s=0.0
    )  # deadlines are derived when work comes in: the costs must be the final ones
    work, n = scene.work, len(scene.work.workflows)
    cut = min(n - 1, max(1, int(split * n)))
    assume(n > 1 and work.workflows["arrival_s"][cut] > work.workflows["arrival_s"][cut - 1])
    at_s = share * float(work.workflows["arrival_s"][cut])
    whole, packed = scene.world(), world_of(scene, part(work, 0, cut))
    declared, streams = packed.steps.copy(), np.arange(work.n_streams)
    results: dict[int, Table] = {}
    for time_s, more in (
        (at_s, part(work, cut, n)),
        (later + float(work.workflows["arrival_s"][-1]), part(work, n, n)),
    ):
        advance(whole, time_s)
        advance(packed, time_s)
        collect(packed, results)
        packed, streams = repack(packed, streams, more, declared)
    advance(whole, np.inf)
    advance(packed, np.inf)
    collect(packed, results)
    check_alike(results, whole)
    for name in whole.instances.dtype.names or ():
        assert name in INSTANCE_LINKS or np.array_equal(whole.instances[name], packed.instances[name]), name
    assert whole.steps.tobytes() == packed.steps.tobytes()


@examples(40)
@given(scene=scenes(), share=st.floats(0.0, 1.0))
def test_world_grows_no_larger_than_what_is_open(scene: Scene, share: float) -> None:
    world = scene.world()
    last_s = float(world.workflows["arrival_s"][-1])
    advance(world, share * last_s)
    open_workflows = int(world.clock[0]["open_workflows"])
    packed, _ = repack(
        world, np.arange(scene.work.n_streams), part(scene.work, 0, 0), world.steps.copy(), drop_future=True
    )
    assert len(packed.workflows) == open_workflows
    assert len(packed.calls) == packed.workflows["n_calls"].sum()


def test_nothing_left_and_nothing_new_is_an_empty_world() -> None:
    work = lone_calls([0.0], [CallSpec(10, 2)])
    world = build_world(work, fleet(instance()), "rr-fcfs")
    advance(world, np.inf)
    packed, _ = repack(world, np.arange(0), part(work, 0, 0), world.steps.copy())
    assert len(packed.calls) == 0
    assert advance(packed, 100.0)
