"""Whether two runs agree in every bit."""

from typing import Any

import numpy as np

from control.twin.heap import Heap
from control.twin.world import World
from tests.naive.pins import pinned_for
from tests.naive.state import Counter, Instance
from tests.naive.twin import NaiveTwin

CALL_FIELDS: tuple[str, ...] = ("state", "cause", "instance", "preemptions", "cached_tokens", "emitted", "energy_j")
CALL_FIELDS += ("ready_s", "placed_s", "started_s", "first_token_s", "finished_s", "budget_s", "deadline_s")
CALL_FIELDS += ("score", "t_comp_s", "t_queue_s", "runner_up", "runner_up_score", "critical")
CALL_FIELDS += ("prefill_s", "decode_s", "preempted_s", "transfer_s", "hold_s", "prefill_j", "restarts")
#: Sums of differences in the kernel, other sums in the slow twin: alike to 1e-9 s, not to the bit.
METERED = ("queue_own_s", "queue_other_s", "failure_s")
INSTANCE_FIELDS: tuple[str, ...] = ("energy_j", "idle_j", "busy_s", "iterations", "preemptions", "kv_peak")
INSTANCE_FIELDS += ("free", "evictable", "queued_work_s", "dispatched_s", "seen", "pinned", "reserved")
INSTANCE_FIELDS += ("sent", "sent_tokens", "evicted_blocks", "prefill_j")
WORKFLOW_FIELDS: tuple[str, ...] = ("state", "cause", "finished_s", "tool_s", "attained_s")
WORKFLOW_FIELDS += ("plan_prefill_s", "plan_decode_s", "plan_tool_s")
PIN_FIELDS: tuple[str, ...] = ("instance", "reserved", "tokens", "turns", "input_tokens", "cached_tokens", "sent")
PIN_FIELDS += ("breaks", "break_cause", "recomputed", "last_s", "first_token_s")
STEP_FIELDS = ("seen", "mean_input", "mean_output", "mean_tool_s", "mean_exec_s", "mean_prefill_s")


def differences(naive: NaiveTwin, world: World) -> list[str]:
    """One line for each value that differs."""
    tables = (
        ("call", naive.calls, world.calls, CALL_FIELDS),
        ("instance", naive.instances, world.instances, INSTANCE_FIELDS),
        ("workflow", naive.workflows, world.workflows, WORKFLOW_FIELDS),
        ("step", naive.steps, world.steps, STEP_FIELDS),
        ("kind", naive.kinds, world.kinds, ("seen",)),
        ("pin", naive.conversations, world.pins, PIN_FIELDS),
    )
    found = [
        f"{name} {k} {field}: naive {getattr(mine, field)!r}, kernel {row[field].item()!r}"
        for name, objects, table, fields in tables
        for k, (mine, row) in enumerate(zip(objects, table, strict=True))
        for field in fields
        if getattr(mine, field) != row[field].item()
    ]
    return found + metered_differences(naive, world) + array_differences(naive, world)


def metered_differences(naive: NaiveTwin, world: World) -> list[str]:
    """The same of what is metered."""
    tenants = range(world.meters.shape[1])
    meters = np.array([[meter_s(instance, tenant) for tenant in tenants] for instance in naive.instances])
    found = [] if np.allclose(meters, world.meters, rtol=0.0, atol=1e-9) else [f"meters: {meters}, {world.meters}"]
    return found + [
        f"call {call.row} {field}: naive {getattr(call, field)!r}, kernel {row[field].item()!r}"
        for call, row in zip(naive.calls, world.calls, strict=True)
        for field in METERED
        if abs(getattr(call, field) - row[field]) > 1e-9
    ]


def meter_s(instance: Instance, tenant: int) -> float:
    """Time that the instance ran, by the share of a tenant's calls in each run."""
    return sum((run.end_s - run.start_s) * run.tenants.count(tenant) / len(run.tenants) for run in instance.runs)


def array_differences(naive: NaiveTwin, world: World) -> list[str]:
    """The same of templates, virtual counters and what the clock counts."""
    pairs = {
        "templates": ([kind.template for kind in naive.kinds], world.templates.tolist()),
        "remaining": ([workflow.template for workflow in naive.workflows], world.remaining.tolist()),
        "counters": ([counters_of(naive, instance) for instance in naive.instances], world.counters.tolist()),
        "pins": ([pinned_for(naive.conversations, w) for w in naive.workflows], world.workflows["pins"].tolist()),
        "breaks": (sum(pin.breaks for pin in naive.conversations), int(world.clock[0]["breaks"])),
        "n_held": (len(naive.held), int(world.clock[0]["n_held"])),
    }
    return [f"{name}: naive {mine}, kernel {theirs}" for name, (mine, theirs) in pairs.items() if mine != theirs]


def counters_of(naive: NaiveTwin, instance: Instance) -> list[tuple[float, int]]:
    """Tokens and place of every workflow on an instance."""
    unseen = Counter(0.0, 0)
    rows = [instance.counters.get(workflow.row, unseen) for workflow in naive.workflows]
    return [(row.tokens, row.seen) for row in rows]


SCRATCH = ("costs", "journal", "receipts", "ended", "t_comp_s", "scores", "counts")


def unlike_tables(one: World, other: World) -> list[str]:
    """Names of the tables, scratch space apart, whose bytes differ."""
    return [
        name
        for name, value in one._asdict().items()
        if name not in SCRATCH and table_bytes(value) != table_bytes(getattr(other, name))
    ]


def table_bytes(value: Any) -> bytes:
    """All bytes of an array or of a heap's arrays."""
    parts = value if isinstance(value, Heap) else (value,)
    return b"".join(part.tobytes() for part in parts)
