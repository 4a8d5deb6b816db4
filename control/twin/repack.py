"""Keep an endless world small: forget what has ended, take in what arrives next, renumber the rows.

Rows move, but nothing that happens later depends on their numbers: order is kept, ties are broken by order, and
cached prefixes stay where they are. A world repacked at any moment runs on exactly like one that was not.
"""

import numpy as np

from control.model.workload import Workload
from control.policy.codes import ACTIVE, FUTURE
from control.policy.contexts import JOURNAL, PREFIX
from control.policy.tables import COUNTER, Ints, Table
from control.twin.heap import Heap, new_heap, schedule
from control.twin.pack import call_table, fill_slos, pin_table, prefix_pool, workflow_table
from control.twin.world import World


def moved(rows: Ints, keep: np.ndarray) -> Ints:
    """Old row numbers as new ones after dropping rows where `keep` is false; negative ones stay."""
    place = np.append(np.cumsum(keep) - 1, -1)
    return np.where(rows >= 0, place[rows], rows)


def repack(
    world: World, streams: Ints, more: Workload, declared: Table, drop_future: bool = False
) -> tuple[World, Ints]:
    """The world without its ended workflows and with those of `more`, which arrive after all it holds.

    Args:
        world: journal drained.
        streams: [k] the stream that each stream key of the world stands for.
        more: its stream numbers are of the same space as `streams`; names as those the world was built with.
        declared: STEP rows as declared, for the base SLO, which history does not shift.
        drop_future: also forget what has not arrived yet.

    Returns:
        The new world and the streams of its keys.
    """
    kept = (world.workflows["state"] == ACTIVE) | ((world.workflows["state"] == FUTURE) & (not drop_future))
    kept_calls = kept[world.calls["workflow"]]
    workflows, calls = kept_rows(world, kept, kept_calls)
    new_workflows, new_calls = new_rows(world, more, declared, len(workflows), len(calls))
    calls = np.concatenate([calls, new_calls])
    workflows = np.concatenate([workflows, new_workflows])
    shared = int(world.clock[0]["n_shared"])
    stream_of = stream_numbers(calls, streams, more, shared, len(calls) - len(new_calls))
    cached = streams[(world.slots[:, shared : shared + len(streams)] >= 0).any(axis=0)]
    columns = np.unique(np.concatenate([stream_of[stream_of >= 0], cached]))
    calls["stream_key"] = np.where(stream_of >= 0, shared + np.searchsorted(columns, stream_of), -1)
    slots, prefixes, free = repack_prefixes(world, streams, columns, kept_calls, len(calls))
    clock = world.clock.copy()
    clock["next_workflow"] = int((workflows["state"] != FUTURE).sum())
    clock["n_free_prefixes"] = len(free)
    for end in ("held_head", "held_tail"):
        clock[end] = moved(clock[end], kept_calls)
    packed = world._replace(
        clock=clock,
        instances=repack_queues(world, kept_calls),
        workflows=workflows,
        calls=calls,
        remaining=np.concatenate([world.remaining[kept], np.zeros((len(new_workflows), len(world.steps)))]),
        counters=repack_counters(world, kept, len(new_workflows)),
        running=repack_running(world, kept_calls),
        prefixes=prefixes,
        free_prefixes=np.concatenate([free, np.zeros(len(prefixes) - len(free), np.int64)]),
        slots=slots,
        timers=repack_heap(world.timers, kept, len(workflows)),
        pins=repack_pins(world, streams, columns, kept, calls),
        transfers=repack_heap(world.transfers, kept_calls, len(calls)),
        expiries=repack_heap(world.expiries, np.isin(streams, columns), len(columns)),
        journal=np.zeros(max(4096, 8 * len(calls)) if len(world.journal) else 0, JOURNAL),
    )
    return packed, columns


def kept_rows(world: World, kept: np.ndarray, kept_calls: np.ndarray) -> tuple[Table, Table]:
    """Workflow and call rows that stay, with their references renumbered."""
    workflows, calls = world.workflows[kept], world.calls[kept_calls]
    calls["workflow"] = moved(calls["workflow"], kept)
    calls["next"] = moved(calls["next"], kept_calls)
    calls["prev"] = moved(calls["prev"], kept_calls)
    first = moved(workflows["first_call"], kept_calls)
    workflows["next_call"] += first - workflows["first_call"]
    workflows["first_call"] = first
    workflows["critical"] = moved(workflows["critical"], kept_calls)
    return workflows, calls


def new_rows(
    world: World, more: Workload, declared: Table, first_workflow: int, first_call: int
) -> tuple[Table, Table]:
    """Rows of the workflows that come in, numbered behind those that stay."""
    workflows, calls = workflow_table(more), call_table(more)
    fill_slos(more, workflows, calls, world.costs, world.instances, declared)
    workflows["first_call"] += first_call
    calls["workflow"] += first_workflow
    return workflows, calls


def stream_numbers(calls: Table, streams: Ints, more: Workload, shared: int, n_old: int) -> Ints:
    """The stream of each call, -1 where it has none: old calls by key, new ones as `more` names them."""
    keys = calls["stream_key"][:n_old]
    old = np.append(streams, -1)[np.where(keys >= 0, keys - shared, -1)]
    return np.concatenate([old, more.calls["stream"].astype(np.int64)])


def repack_prefixes(
    world: World, streams: Ints, columns: Ints, kept_calls: np.ndarray, n_calls: int
) -> tuple[Ints, Table, Ints]:
    """Slots by the new keys, the pool with its entries in place, and the stack of unused entries."""
    shared, n = int(world.clock[0]["n_shared"]), len(world.instances)
    slots = np.full((n, max(shared + len(columns), 1)), -1, np.int64)
    slots[:, :shared] = world.slots[:, :shared]
    _, old_place, new_place = np.intersect1d(streams, columns, return_indices=True)
    slots[:, shared + new_place] = world.slots[:, shared + old_place]
    size = max(len(world.prefixes), prefix_pool(n, slots.shape[1], n_calls))
    prefixes = np.zeros(size, PREFIX)
    prefixes[: len(world.prefixes)] = world.prefixes
    new_key = np.full(shared + len(streams) + 1, -1, np.int64)
    new_key[:shared] = np.arange(shared)
    new_key[shared + old_place] = shared + new_place
    free = world.free_prefixes[: int(world.clock[0]["n_free_prefixes"])]
    prefixes["key"][free], prefixes["call"][free] = -1, -1
    prefixes["key"] = np.where(prefixes["key"] >= 0, new_key[prefixes["key"]], -1)
    prefixes["call"] = np.where(prefixes["key"] < 0, moved(prefixes["call"], kept_calls), -1)
    unused = np.arange(len(world.prefixes), size)[::-1]
    return slots, prefixes, np.concatenate([unused, free])


def repack_counters(world: World, kept: np.ndarray, n_new: int) -> Table:
    """Virtual counters of the workflows that stay, and zeros for those that come, in row order.

    Columns that were picked out lie in column order, for which every kernel would be compiled anew.
    """
    new = np.zeros((len(world.instances), n_new), COUNTER)
    return np.ascontiguousarray(np.concatenate([world.counters[:, : len(kept)][:, kept], new], axis=1))


def repack_queues(world: World, kept_calls: np.ndarray) -> Table:
    """Instance rows with their queues renumbered."""
    instances = world.instances.copy()
    instances["wait_head"] = moved(instances["wait_head"], kept_calls)
    instances["wait_tail"] = moved(instances["wait_tail"], kept_calls)
    return instances


def repack_running(world: World, kept_calls: np.ndarray) -> Ints:
    """The calls in each batch renumbered; seats that are not taken hold -1."""
    taken = np.arange(world.running.shape[1]) < world.instances["n_running"][:, None]
    return moved(np.where(taken, world.running, -1), kept_calls)


def repack_pins(world: World, streams: Ints, columns: Ints, kept: np.ndarray, calls: Table) -> Table:
    """Pins by the new stream keys; those of streams that come in are fresh."""
    pins = pin_table(calls, int(world.clock[0]["n_shared"]), len(columns))
    peaks = pins["peak"].copy()
    _, old_place, new_place = np.intersect1d(streams, columns, return_indices=True)
    pins[new_place] = world.pins[old_place]
    pins["peak"] = np.maximum(pins["peak"], peaks)
    pins["workflow"] = np.maximum(moved(pins["workflow"], kept), 0)
    return pins


def repack_heap(heap: Heap, kept: np.ndarray, n: int) -> Heap:
    """What is pending of the members that stay, by their new rows; `n` rows in all."""
    packed = new_heap(max(n, 1))
    pending = np.flatnonzero(heap.place[: len(kept)] >= 0)
    for old, new in zip(pending, moved(pending, kept), strict=True):
        schedule(packed, int(new), float(heap.time[old]))
    return packed
