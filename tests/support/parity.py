"""Whether a slow twin and a world that both ran to the end agree in every bit."""

from control.twin.world import World
from tests.naive.twin import NaiveTwin

CALL_FIELDS = ("state", "cause", "instance", "ready_s", "placed_s", "started_s", "first_token_s", "finished_s")
CALL_FIELDS += ("score", "t_comp_s", "budget_s", "preemptions", "cached_tokens", "emitted", "energy_j")
INSTANCE_FIELDS = ("energy_j", "idle_j", "busy_s", "iterations", "preemptions", "kv_peak", "free", "evictable")
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
