"""A fleet that gains instances while it runs: the same world with more rows, the new ones up and empty."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from control.model.fleet import Fleet
from control.policy.codes import IDLE
from control.policy.contexts import PREFIX
from control.policy.tables import COUNTER, Ints, Table
from control.twin.caps import at_cost
from control.twin.costing import cost_tables, profile_key
from control.twin.heap import Heap, new_heap, schedule
from control.twin.pack import instance_table, prefix_pool
from control.twin.world import World


def grown(world: World, fleet: Fleet) -> World:
    """The world with the instances of `fleet` beyond those it has; its own keep their rows.

    Costs are those of `fleet` as it is capped; an instance still to switch from another cap must have switched.
    """
    old, n = len(world.instances), len(fleet.instances)
    costs, rows = cost_tables(fleet)
    instances = np.concatenate([world.instances, new_instances(fleet, old, rows, float(world.clock[0]["now_s"]))])
    keys, seats = world.slots.shape[1], max(world.running.shape[1], int(instances["max_num_seqs"].max()))
    size = max(len(world.prefixes), prefix_pool(n, keys, len(world.calls)))
    prefixes, free = more_prefixes(world, size)
    clock = world.clock.copy()
    clock["n_free_prefixes"] += size - len(world.prefixes)
    wider = world._replace(
        clock=clock,
        instances=instances,
        counters=padded(world.counters, (n, world.counters.shape[1]), np.zeros(1, COUNTER)[0]),
        meters=padded(world.meters, (n, world.meters.shape[1]), 0.0),
        running=padded(world.running, (n, seats), -1),
        slots=padded(world.slots, (n, keys), -1),
        prefixes=prefixes,
        free_prefixes=free,
        runs=longer_heap(world.runs, n),
        dirty=padded(world.dirty, (n,), 0),
        ended=np.zeros(max(seats, len(world.ended)), np.int64),
        t_comp_s=np.zeros(n),
        scores=np.zeros(n),
    )
    return at_cost(wider, costs, profile_rows(fleet, rows))


def profile_rows(fleet: Fleet, rows: dict[tuple[object, ...], int]) -> Ints:
    """The profile row of each instance [n]."""
    return np.array([rows[profile_key(spec)] for spec in fleet.instances], np.int64)


def new_instances(fleet: Fleet, old: int, rows: dict[tuple[object, ...], int], now_s: float) -> Table:
    """INSTANCE rows of the instances from number `old` on, switched on at `now_s`."""
    table = instance_table(Fleet(fleet.name, fleet.instances[old:]), rows)
    table["run"] = IDLE
    for name in ("accounted_s", "last_busy_s", "run_start_s"):
        table[name] = now_s
    return table


def more_prefixes(world: World, size: int) -> tuple[Table, Ints]:
    """The pool of prefixes with room for `size`, and the stack of unused ones."""
    prefixes = np.zeros(size, PREFIX)
    prefixes[: len(world.prefixes)] = world.prefixes
    used = int(world.clock[0]["n_free_prefixes"])
    unused = np.arange(len(world.prefixes), size, dtype=np.int64)[::-1]
    free = np.concatenate([unused, world.free_prefixes[:used]])
    return prefixes, np.concatenate([free, np.zeros(size - len(free), np.int64)])


def padded(table: Any, shape: Sequence[int], filler: Any) -> Any:
    """A copy of `table` with more rows or columns behind, which hold `filler`."""
    wider = np.empty(tuple(shape), table.dtype)
    wider[...] = filler
    wider[tuple(slice(0, size) for size in table.shape)] = table
    return wider


def longer_heap(heap: Heap, n: int) -> Heap:
    """The heap with room for `n` members."""
    longer = new_heap(n)
    for member in np.flatnonzero(heap.place >= 0):
        schedule(longer, int(member), float(heap.time[member]))
    return longer
