"""Whether two runs agree in every bit."""

from typing import Any

from control.twin.heap import Heap
from control.twin.world import World
from tests.naive.twin import NaiveTwin

CALL_FIELDS: tuple[str, ...] = (
    "state",
    "cause",
    "instance",
    "ready_s",
    "placed_s",
    "started_s",
    "first_token_s",
    "finished_s",
)
CALL_FIELDS += ("score", "t_comp_s", "budget_s", "preemptions", "cached_tokens", "emitted", "energy_j")
INSTANCE_FIELDS: tuple[str, ...] = (
    "energy_j",
    "idle_j",
    "busy_s",
    "iterations",
    "preemptions",
    "kv_peak",
    "free",
    "evictable",
)
INSTANCE_FIELDS += ("queued_work_s",)
WORKFLOW_FIELDS = ("state", "cause", "finished_s")
STEP_FIELDS = ("seen", "mean_input", "mean_output", "mean_exec_s")


def differences(naive: NaiveTwin, world: World) -> list[str]:
    """One line for each value that differs."""
    tables = (
        ("call", naive.calls, world.calls, CALL_FIELDS),
        ("instance", naive.instances, world.instances, INSTANCE_FIELDS),
        ("workflow", naive.workflows, world.workflows, WORKFLOW_FIELDS),
        ("step", naive.steps, world.steps, STEP_FIELDS),
    )
    return [
        f"{name} {k} {field}: naive {getattr(mine, field)!r}, kernel {row[field].item()!r}"
        for name, objects, table, fields in tables
        for k, (mine, row) in enumerate(zip(objects, table, strict=True))
        for field in fields
        if getattr(mine, field) != row[field].item()
    ]


SCRATCH = ("costs", "journal", "ended", "t_comp_s", "scores")


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
