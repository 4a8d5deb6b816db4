"""Room for requests that nobody has announced: rows kept ready in the tables, taken one at a time.

A lone request takes a workflow row with one call row; a workflow or conversation that may go on takes one with
LONG_CALLS, and moves to a larger one when they are used up. Spare rows are in the state of workflows that have ended:
everything else passes over them. When they run out, the world is repacked: what has ended makes room for new ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from control.engine.source import Source
from control.engine.state import Live, at_given_cost
from control.model.fleet import Fleet
from control.model.templates import STEP_HISTORY, TEMPLATES
from control.model.workload import Workload, empty_calls, empty_workflows
from control.policy.codes import ACTIVE, CANCELLED, DONE
from control.twin.heap import schedule, unschedule
from control.twin.pack import build_world, refresh_steps, step_table
from control.twin.repack import repack
from control.twin.world import World

LONE = 1024  # spare rows for lone requests
LONG = 64  # spare rows for workflows that may go on
LONG_CALLS = 32  # calls of each of those
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

    lone: list[int] = field(default_factory=list)
    long: list[int] = field(default_factory=list)
    larger: dict[int, int] = field(default_factory=dict)  # row by the calls it has room for


def start_gateway(fleet: Fleet, policy: str, alpha: float) -> Live:
    """A live state without any work, whose requests come in over HTTP."""
    names = names_ahead()
    world = build_world(no_work(names, [], 0), fleet, policy, alpha, journal=True)
    declared = step_table(tuple(names[2]))
    refresh_steps(world.costs, world.instances, declared)
    source = Source("gateway", 0, is_gateway=True)
    return Live(fleet, source, world, np.zeros(0, np.int64), declared, names, policy)


def make_room(live: Live, larger: tuple[int, ...] = ()) -> Spare:
    """Forget what has ended and take in spare rows; the journal must have been drained.

    `larger`: also one row for each of these numbers of calls. Every row number of the world changes.
    """
    sizes = [LONG_CALLS] * LONG + list(larger) + [1] * LONE
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
    lone = first + LONG + len(larger)
    places = {size: first + LONG + k for k, size in enumerate(larger)}
    return Spare(list(range(lone, len(packed.workflows)))[::-1], list(range(first, first + LONG))[::-1], places)


def outgrow(live: Live, number: int) -> Spare:
    """Give workflow `number` a place with twice the room for calls, its open calls with it; see `make_room`."""
    rows = live.world.workflows
    w = int(np.flatnonzero((rows["id"] == number) & (rows["state"] == ACTIVE))[0])
    size = 2 * int((live.world.calls["workflow"] == w).sum())
    spare = make_room(live, (size,))
    world = live.world
    w = int(np.flatnonzero((world.workflows["id"] == number) & (world.workflows["state"] == ACTIVE))[0])
    exchange_places(world, w, spare.larger[size])
    return spare


def exchange_places(world: World, w: int, larger: int) -> None:
    """Let workflow `w` and the empty workflow `larger` exchange their call rows."""
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
