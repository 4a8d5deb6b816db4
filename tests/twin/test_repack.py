"""A world that forgets what has ended and takes in what comes runs on like one that held everything from the start."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from control.model.workload import Workload
from control.policy.tables import Table
from control.twin.kernel import advance
from control.twin.pack import build_world
from control.twin.repack import repack
from control.twin.world import World
from tests.support.laws import PHASES, check_ledger, check_phases
from tests.support.scenes import Scene, examples, scenes
from tests.support.worlds import CallSpec, fleet, instance, lone_calls

INSTANCE_LINKS = ("wait_head", "wait_tail")  # row numbers
CALL_RESULTS: tuple[str, ...] = ("state", "cause", "instance", "ready_s", "placed_s", "started_s", "finished_s")
CALL_RESULTS += ("first_token_s", "score", "budget_s", "energy_j", "cached_tokens", "preemptions", "emitted")
CALL_RESULTS += ("deadline_s", "critical", "phase", *PHASES)
WORKFLOW_RESULTS: tuple[str, ...] = ("state", "cause", "finished_s", "tool_s", "attained_s")
WORKFLOW_RESULTS += ("plan_prefill_s", "plan_decode_s", "plan_tool_s")


def part(work: Workload, first: int, end: int) -> Workload:
    """Workflows `first` .. `end` - 1 as a workload of the same names and streams."""
    workflows = work.workflows[first:end].copy()
    mine = (work.calls["workflow"] >= first) & (work.calls["workflow"] < end)
    calls = work.calls[mine].copy()
    calls["workflow"] -= first
    workflows["first_call"] -= np.flatnonzero(mine)[0] if mine.any() else 0
    return work._replace(workflows=workflows, calls=calls)


def numbered(work: Workload) -> Workload:
    """The same work with workflows numbered from 0, so that each is known again."""
    workflows = work.workflows.copy()
    workflows["id"] = np.arange(len(workflows))
    return work._replace(workflows=workflows)


def world_of(scene: Scene, work: Workload) -> World:
    """The scene's world with this work."""
    return replace(scene, work=work).world()


Row = tuple[Any, ...]


class Results(NamedTuple):
    """What came of everything, by the numbers that stay."""

    calls: dict[int, Row]  # by uid
    workflows: dict[int, Row]  # by id
    counters: dict[int, list[Row]]  # virtual counters of each instance, by id of the workflow

    def collect(self, world: World) -> None:
        """Keep the world's rows, later ones over earlier ones."""
        self.calls.update(rows(world.calls, "uid", CALL_RESULTS))
        self.workflows.update(rows(world.workflows, "id", WORKFLOW_RESULTS))
        self.counters.update(zip(world.workflows["id"].tolist(), world.counters.T.tolist(), strict=True))


def rows(table: Table, key: str, names: tuple[str, ...]) -> dict[int, Row]:
    """Some fields of every row, by the number that stays."""
    return dict(zip(table[key].tolist(), table[list(names)].tolist(), strict=True))


def check_alike(results: Results, whole: World) -> None:
    """Every call and workflow came to the same end, and its counters stood alike when it was last seen."""
    expected = Results({}, {}, {})
    expected.collect(whole)
    for mine, theirs in zip(results, expected, strict=True):
        assert mine == theirs


@examples(120)
@given(scene=scenes(), split=st.floats(0.0, 1.0), share=st.floats(0.0, 0.999), later=st.floats(0.0, 1.5))
def test_repacked_world_runs_on_like_the_whole(scene: Scene, split: float, share: float, later: float) -> None:
    """Part of the work comes in while the rest is under way; some time later everything ended is forgotten again."""
    scene = replace(
        scene, knee=1.0, step_s=0.0
    )  # deadlines are derived when work comes in: the costs must be the final ones
    work, n = numbered(scene.work), len(scene.work.workflows)
    scene = replace(scene, work=work)
    cut = min(n - 1, max(1, int(split * n)))
    assume(n > 1 and work.workflows["arrival_s"][cut] > work.workflows["arrival_s"][cut - 1])
    at_s = share * float(work.workflows["arrival_s"][cut])
    whole, packed = scene.world(), world_of(scene, part(work, 0, cut))
    declared, streams = packed.steps.copy(), np.arange(work.n_streams)
    results = Results({}, {}, {})
    for time_s, more in (
        (at_s, part(work, cut, n)),
        (later + float(work.workflows["arrival_s"][-1]), part(work, n, n)),
    ):
        advance(whole, time_s)
        advance(packed, time_s)
        check_phases(packed)
        check_ledger(packed)
        results.collect(packed)
        packed, streams = repack(packed, streams, more, declared)
    advance(whole, np.inf)
    advance(packed, np.inf)
    results.collect(packed)
    check_alike(results, whole)
    for name in whole.instances.dtype.names or ():
        assert name in INSTANCE_LINKS or np.array_equal(whole.instances[name], packed.instances[name]), name
    for name in ("steps", "kinds", "templates", "meters"):
        assert getattr(whole, name).tobytes() == getattr(packed, name).tobytes(), name


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


@pytest.mark.parametrize("coming", [0, 1, 2])
def test_tables_keep_their_memory_order_whatever_comes(coming: int) -> None:
    """Kernels are compiled for one memory order: another would compile them all again, for a minute, amid a run."""
    work = lone_calls([0.0] * 3 + [9.0] * coming, [CallSpec(10, 50)] * (3 + coming))
    world = build_world(part(work, 0, 3), fleet(instance(), instance()), "vtc")
    advance(world, 0.01)
    packed, _ = repack(world, np.arange(0), part(work, 3, 3 + coming), world.steps.copy())
    assert len(packed.workflows) == 3 + coming
    for name, table in packed._asdict().items():
        assert not isinstance(table, np.ndarray) or table.flags.c_contiguous, name
