"""A world: every table of a fleet at one moment. A fork is a copy of the changing ones."""

from typing import Any, NamedTuple

from control.policy.tables import Costs, Floats, Ints, Table
from control.twin.heap import Heap


class World(NamedTuple):
    """Tables of n instances, w workflows, c calls, s steps and k prefix keys."""

    clock: Table  # CLOCK [1]
    policy: Table  # POLICY [1]
    costs: Costs  # never changed by a run
    instances: Table  # INSTANCE [n]
    workflows: Table  # WORKFLOW_STATE [w], sorted by arrival
    calls: Table  # CALL_STATE [c], grouped by workflow
    steps: Table  # STEP [s]
    kinds: Table  # KIND [kinds]
    templates: Floats  # [kinds, s] stages of a workflow of each kind, by step
    remaining: Floats  # [w, s] entries left of each workflow's template, from its arrival on
    counters: Table  # COUNTER [n, w]
    meters: Floats  # [n, tenants] s of running time by tenants' shares
    running: Ints  # [n, max_num_seqs] calls in the batch, in order of admission
    prefixes: Table  # PREFIX [pool]
    free_prefixes: Ints  # [pool] stack of unused rows of `prefixes`
    slots: Ints  # [n, k] row of `prefixes` by instance and key, -1: not cached
    runs: Heap  # [n] end of each instance's run
    timers: Heap  # [w] when a workflow's tool time ends
    dirty: Ints  # [n] instances at a batch boundary
    ended: Ints  # [max_num_seqs] scratch: calls that ended in a run; from the end: those that go on elsewhere
    t_comp_s: Floats  # [n] scratch
    scores: Floats  # [n] scratch
    counts: Floats  # [s] scratch
    pins: Table  # PIN [streams], the prefix keys behind the shared ones
    transfers: Heap  # [c] when a call's KV arrives
    expiries: Heap  # [streams] when an idle context is dropped
    journal: Table  # JOURNAL [capacity]; empty: not kept
    receipts: Table  # RECEIPT [ring, n]; empty: not kept


def fork(world: World) -> World:
    """An independent copy; the costs, which no run changes, stay shared."""
    return World._make(
        value if name == "costs" else copied(value) for name, value in zip(World._fields, world, strict=True)
    )


def silent(world: World) -> World:
    """The same tables without journal and receipts: for what nobody will be told of."""
    return world._replace(journal=world.journal[:0], receipts=world.receipts[:0])


def copied(value: Any) -> Any:
    """A copy of an array or of a heap's arrays."""
    return Heap._make(part.copy() for part in value) if isinstance(value, Heap) else value.copy()
