"""Room for requests that nobody has announced: rows kept ready in the tables, taken one at a time.

A lone request takes a workflow row with one call row; a workflow or conversation that may go on takes one with a
few, and moves to a larger place when they are used up. Spare rows are in the state of workflows that have ended:
everything else passes over them. When they run out, the world is repacked: what has ended makes room for new ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from control.engine.source import Source
from control.engine.state import Live, at_given_cost
from control.metrics.stages import UNDER_WAY
from control.model.fleet import Fleet
from control.model.templates import STEP_HISTORY, TEMPLATES
from control.model.workload import Workload, empty_calls, empty_workflows
from control.policy.codes import ACTIVE, CANCELLED, DONE
from control.twin.heap import schedule, unschedule
from control.twin.pack import build_world, refresh_steps, step_table
from control.twin.repack import repack
from control.twin.world import World

LONE = 1024  # spare rows for lone requests
LONG = 64  # spare rows for workflows that may go on, of the first size, at least
SIZES = (8, 32, 128)  # calls of the places that are kept ready for those
MOST_KINDS, MOST_TENANTS, MOST_STEPS = 16, 32, 64  # names that can be told apart; later ones are counted as OTHER
OTHER = "other"


def names_ahead() -> tuple[list[str], list[str], list[str]]:
    """Kinds, tenants and steps: those with a declared template or history, then empty places for those to come."""
    kinds, steps = [OTHER, *TEMPLATES], [OTHER, *STEP_HISTORY]
    return filled(kinds, MOST_KINDS), filled([OTHER], MOST_TENANTS), filled(steps, MOST_STEPS)


def filled(names: list[str], size: int) -> list[str]:
    """The names and empty ones up to `size`."""
    return names + [""] * (size - len(names))


def number_of(names: Sequence[str], name: str) -> int:
    """Place of a name, which takes the first empty one where it is new; place 0, OTHER, where none is left."""
    if name in names:
        return names.index(name)
    if "" not in names or not isinstance(names, list):
        return 0
    place = names.index("")
    names[place] = name
    return place


def no_work(names: tuple[list[str], list[str], list[str]], sizes: list[int], first_stream: int) -> Workload:
    """Workflows that never arrive by themselves, one of as many calls as each of `sizes`; longer ones have a stream."""
    workflows, calls = empty_workflows(len(sizes)), empty_calls(sum(sizes))
    counts = np.array(sizes, np.int64)
    workflows["arrival_s"] = np.inf
    workflows["slo_s"] = 0.0
    workflows["n_calls"] = counts
    workflows["first_call"] = np.cumsum(counts) - counts
    calls["workflow"] = np.repeat(np.arange(len(sizes)), counts)
    long = counts > 1
    streams = np.where(long, first_stream + np.cumsum(long) - 1, -1)
    calls["stream"] = streams[calls["workflow"]]
    kinds, tenants, steps = (tuple(part) for part in names)
    return Workload("gateway", "", workflows, calls, kinds, tenants, steps, 0, int(long.sum()))


@dataclass
class Spare:
    """Rows of the world's workflows that are ready to be taken, by the calls they have room for."""

    long: dict[int, list[int]] = field(default_factory=dict)


def next_size(size: int) -> int:
    """Room that a workflow gets which has used up `size` calls."""
    return next((one for one in SIZES if one > size), 2 * size)


def start_gateway(fleet: Fleet, policy: str, alpha: float) -> Live:
    """A live state without any work, whose requests come in over HTTP."""
    names = names_ahead()
    world = build_world(no_work(names, [], 0), fleet, policy, alpha, journal=True)
    declared = step_table(tuple(names[2]))
    refresh_steps(world.costs, world.instances, declared)
    source = Source("gateway", 0, is_gateway=True)
    return Live(fleet, source, world, np.zeros(0, np.int64), declared, names, policy)


def sizes_for(open_flows: int) -> list[int]:
    """Places that are kept ready beside `open_flows` open workflows: fewer of the larger ones."""
    n = max(LONG, open_flows // 2)
    return [size for k, size in enumerate(SIZES) for _ in range(max(1, n // 4**k))]


def make_room(live: Live, larger: tuple[int, ...] = ()) -> Spare:
    """Forget what has ended and take in spare rows; the journal must have been drained.

    `larger`: also one row for each of these numbers of calls. Every row number of the world changes.
    """
    sizes = [*sizes_for(len(live.flows)), *larger, *([1] * LONE)]
    more = no_work(live.names, sizes, live.next_stream)  # type: ignore[arg-type]
    live.next_stream += more.n_streams
    was = live.world
    packed, live.streams = repack(at_given_cost(live), live.streams, more, live.declared)
    packed.instances["profile"] = was.instances["profile"]
    first = len(packed.workflows) - len(sizes)
    packed.workflows["state"][first:] = DONE
    packed.workflows["n_calls"][first:] = 0
    packed.calls["state"][packed.calls["workflow"] >= first] = CANCELLED
    packed.clock["next_workflow"] = len(packed.workflows)
    live.world = packed._replace(costs=was.costs)
    ready = Spare()
    for k, size in enumerate(sizes):
        ready.long.setdefault(size, []).append(first + k)
    for rows in ready.long.values():
        rows.reverse()
    return ready


def exchange_places(world: World, w: int, larger: int) -> int:
    """Let workflow `w` and the empty workflow `larger` exchange their call rows; how far the calls have moved."""
    workflow, other = world.workflows[w], world.workflows[larger]
    first, n, new = int(workflow["first_call"]), int(workflow["n_calls"]), int(other["first_call"])
    old_rows, new_rows = world.calls["workflow"] == w, world.calls["workflow"] == larger
    key, other_key = int(world.calls[first]["stream_key"]), int(world.calls[new]["stream_key"])
    world.calls[new : new + n] = world.calls[first : first + n]
    world.calls["state"][old_rows] = CANCELLED
    world.calls["workflow"][old_rows], world.calls["stream_key"][old_rows] = larger, other_key
    world.calls["workflow"][new_rows] = w
    world.calls["stream_key"][new : new + n][world.calls["stream_key"][new : new + n] >= 0] = key
    unused = new_rows.copy()
    unused[new : new + n] = False
    world.calls["stream_key"][unused] = key
    other["first_call"], workflow["first_call"] = first, new
    move_references(world, w, first, n, new - first)
    return new - first


def move_references(world: World, w: int, first: int, n: int, shift: int) -> None:
    """Have everything that points to call rows first .. first + n - 1 point `shift` rows further."""
    workflow = world.workflows[w]
    workflow["next_call"] += shift
    for table, names in (
        (world.calls, ("next", "prev")),
        (world.instances, ("wait_head", "wait_tail")),
        (world.clock, ("held_head", "held_tail")),
        (world.prefixes, ("call",)),
    ):
        for name in names:
            column = table[name]
            column[(column >= first) & (column < first + n)] += shift
    running = world.running
    running[(running >= first) & (running < first + n)] += shift
    if first <= workflow["critical"] < first + n:
        workflow["critical"] += shift
    for c in range(first, first + n):
        if world.transfers.place[c] >= 0:
            at_s = float(world.transfers.time[c])
            unschedule(world.transfers, c)
            schedule(world.transfers, c + shift, at_s)


def renumber(live: Live) -> dict[int, int]:
    """After all rows have moved: the row of each open call by its number; the flows are brought to theirs."""
    world = live.world
    still_open = np.flatnonzero(np.isin(world.calls["state"], UNDER_WAY))  # spare rows have small numbers as well
    rows = np.flatnonzero(world.workflows["state"] == ACTIVE)
    active = dict(zip(world.workflows["id"][rows].tolist(), rows.tolist(), strict=True))
    room = np.bincount(world.calls["workflow"], minlength=len(world.workflows))
    for key, flow in list(live.flows.items()):
        if flow.number in active:
            flow.row = active[flow.number]
            flow.room = int(room[flow.row])
        else:
            del live.flows[key]
    return dict(zip(world.calls["uid"][still_open].tolist(), still_open.tolist(), strict=True))
