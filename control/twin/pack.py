"""Build a world: a fleet, a workload and a policy as the tables a run moves."""

from typing import Any

import numpy as np

from control.errors import SettingError
from control.jit import compiled
from control.model.fleet import Fleet, InstanceSpec, capacity
from control.model.templates import (
    DECLARED_WEIGHT,
    DROPS,
    STEP_HISTORY,
    TEMPLATES,
    UNKNOWN_STEP,
    UNKNOWN_WEIGHT,
)
from control.model.workload import Workload
from control.policy.budget import refresh_step
from control.policy.codes import ROLES
from control.policy.contexts import CLOCK, JOURNAL, PIN, PREFIX, RECEIPT
from control.policy.rules import USUAL, Conversations, policy_table
from control.policy.tables import (
    CALL_STATE,
    COUNTER,
    INSTANCE,
    KIND,
    STEP,
    WORKFLOW_STATE,
    Costs,
    Floats,
    Record,
    Table,
)
from control.twin.costing import cost_tables, profile_key
from control.twin.heap import new_heap
from control.twin.slo import base_slos_s
from control.twin.world import World

CARRIED = (
    *("group", "step", "input_tokens", "output_tokens", "shared_key", "shared_tokens"),
    *("history_tokens", "tool_s", "draw_a", "draw_b", "workflow"),
)
RECEIPTS = 256  # the newest that are kept where a journal is
NOWHERE = (
    *("instance", "next", "prev", "runner_up", "remnant", "base_key", "dest", "source"),
    *("receipt", "wanted"),
)
HALF_WEIGHT = ("A6000", "L40S")  # k_e = 0.5 in the artifact's dispatch score (HexGen-Flow, section 1)


def instance_table(fleet: Fleet, rows: dict[tuple[object, ...], int]) -> Table:
    """One INSTANCE row per spec, idle and empty.

    Raises:
        SettingError: an instance admits more sequences than it has tokens an iteration.
    """
    table = np.zeros(len(fleet.instances), INSTANCE)
    for field in ("wait_head", "wait_tail", "lru_head", "lru_tail"):
        table[field] = -1
    for row, spec in zip(table, fleet.instances, strict=True):
        if spec.max_num_seqs > spec.max_num_batched_tokens:
            raise SettingError(
                f"{spec.name}: max_num_seqs = {spec.max_num_seqs}: expected at most max_num_batched_tokens = "
                f"{spec.max_num_batched_tokens}"
            )
        fill_instance(row, spec)
        row["profile"] = rows[profile_key(spec)]
        row["share_weight"] = 0.5 if spec.gpu in HALF_WEIGHT else 1.0
    return table


def fill_instance(row: Record, spec: InstanceSpec) -> None:
    """Copy a spec's settings and its KV capacity into its row."""
    kv_tokens, max_model_len = capacity(spec)
    row["max_num_seqs"] = spec.max_num_seqs
    row["max_num_batched_tokens"] = spec.max_num_batched_tokens
    row["block_size"] = spec.block_size
    row["blocks"] = kv_tokens // spec.block_size
    row["free"] = row["blocks"]
    row["watermark"] = int(spec.watermark * row["blocks"])
    row["max_model_len"] = min(max_model_len, row["blocks"] * spec.block_size)
    row["caching"] = int(spec.prefix_caching)
    row["role"] = ROLES.index(spec.role)
    row["host_ms"] = spec.host_overhead_ms
    row["measured_w"] = -1.0
    if spec.url is not None and spec.window is not None:
        row["max_num_seqs"] = min(spec.window, spec.max_num_seqs)


def step_table(steps: tuple[str, ...]) -> Table:
    """One STEP row per kind of call, with what is declared of it."""
    table = np.zeros(len(steps), STEP)
    table["drops"] = -1
    for row, name in zip(table, steps, strict=True):
        row["mean_input"], row["mean_output"] = STEP_HISTORY.get(name, UNKNOWN_STEP)
        row["seen"] = DECLARED_WEIGHT if name in STEP_HISTORY else UNKNOWN_WEIGHT
        if DROPS.get(name) in steps:
            row["drops"] = steps.index(DROPS[name])
    return table


def template_table(kinds: tuple[str, ...], steps: tuple[str, ...]) -> Floats:
    """Entries of each kind's declared template by step, [kinds, steps]; zeros where none is declared."""
    counts = [[TEMPLATES.get(kind, {}).get(step, 0) for step in steps] for kind in kinds]
    return np.array(counts, np.float64).reshape(len(kinds), len(steps))


def kind_table(kinds: tuple[str, ...]) -> Table:
    """One KIND row per kind of workflow."""
    table = np.zeros(len(kinds), KIND)
    table["declared"] = [kind in TEMPLATES for kind in kinds]
    return table


def call_table(workload: Workload) -> Table:
    """One CALL_STATE row per call, none of them ready."""
    table = np.zeros(len(workload.calls), CALL_STATE)
    for name in CARRIED:
        table[name] = workload.calls[name]
    streams = workload.calls["stream"]
    table["stream_key"] = np.where(streams >= 0, streams.astype(np.int64) + workload.n_shared, -1)
    first = workload.workflows["first_call"][workload.calls["workflow"]]
    table["uid"] = workload.workflows["id"][workload.calls["workflow"]] * 100_000 + np.arange(len(table)) - first
    table["tenant"] = workload.workflows["tenant"][workload.calls["workflow"]]
    for field in NOWHERE:
        table[field] = -1
    for field in ("ready_s", "placed_s", "started_s", "first_token_s", "finished_s"):
        table[field] = -1.0
    return table


def pin_table(calls: Table, n_shared: int, n_streams: int) -> Table:
    """One PIN row per stream, pinned nowhere; its peak is the longest context of its calls, tokens."""
    table = np.zeros(n_streams, PIN)
    for field in ("instance", "break_cause", "lost_cause"):
        table[field] = -1
    for field in ("last_s", "first_token_s"):
        table[field] = -1.0
    mine = calls[calls["stream_key"] >= 0]
    np.maximum.at(table["peak"], mine["stream_key"] - n_shared, mine["input_tokens"] + mine["output_tokens"])
    return table


def workflow_table(workload: Workload) -> Table:
    """One WORKFLOW_STATE row per workflow, none arrived."""
    table = np.zeros(len(workload.workflows), WORKFLOW_STATE)
    for name in ("id", "arrival_s", "slo_s", "tenant", "kind", "first_call", "n_calls", "go_on"):
        table[name] = workload.workflows[name]
    table["finished_s"] = -1.0
    table["critical"] = -1
    return table


@compiled
def refresh_steps(costs: Costs, instances: Table, steps: Table) -> None:
    """Bring t_k of every step up to date."""
    for k in range(len(steps)):
        refresh_step(costs, instances, steps, k)


def clock_table(workload: Workload, exact: bool, pool: int) -> Table:
    """The clock at zero; the `pool` entries for prefixes are all unused."""
    clock = np.zeros(1, CLOCK)
    clock["exact"] = int(exact)
    clock["n_free_prefixes"] = pool
    clock["n_shared"] = workload.n_shared
    clock["held_head"], clock["held_tail"] = -1, -1
    clock["first_arrival_s"] = workload.workflows["arrival_s"][0] if len(workload.workflows) else 0.0
    return clock


def prefix_pool(n_instances: int, n_keys: int, n_calls: int) -> int:
    """Entries that can exist at once: one per instance and key, one remnant per call."""
    return n_instances * n_keys + n_calls + 1


def build_world(
    workload: Workload,
    fleet: Fleet,
    policy: str,
    alpha: float = 0.5,
    exact: bool = False,
    journal: bool = False,
    form: str = "paper",
    aging_s: float = np.inf,
    conversations: Conversations = USUAL,
) -> World:
    """A world at time 0 with `workload` about to arrive.

    Args:
        workload: arranged: arrivals set and sorted, draws filled.
        fleet: its instances, all up and empty.
        policy: a name of policy.codes.POLICIES.
        alpha: weight of execution cost against load in the dispatch score, 0 to 1.
        exact: one event per iteration (reference mode) instead of fast-forward.
        journal: keep a journal, which the driver must drain, and the newest receipts.
        form: form of the dispatch score, "paper" or "artifact".
        aging_s: under LLF, a call that waited longer is not overtaken any more, s; inf: off.
        conversations: settings of the policies that place conversations.

    Raises:
        SettingError: an unknown policy, alpha out of bounds, or contradictory engine settings.
    """
    costs, rows = cost_tables(fleet)
    instances = instance_table(fleet, rows)
    steps = step_table(workload.steps)
    refresh_steps(costs, instances, steps)
    workflows, calls = workflow_table(workload), call_table(workload)
    fill_slos(workload, workflows, calls, costs, instances, steps)
    shape = len(instances), max(workload.n_shared + workload.n_streams, 1)
    pool = prefix_pool(*shape, len(calls))
    return World(
        clock=clock_table(workload, exact, pool),
        policy=policy_table(policy, alpha, form, aging_s, conversations),
        costs=costs,
        instances=instances,
        workflows=workflows,
        calls=calls,
        steps=steps,
        kinds=kind_table(workload.kinds),
        templates=template_table(workload.kinds, workload.steps),
        remaining=np.zeros((len(workflows), len(steps))),
        counters=np.zeros((shape[0], max(len(workflows), 1)), COUNTER),
        meters=np.zeros((shape[0], len(workload.tenants))),
        prefixes=np.zeros(pool, PREFIX),
        free_prefixes=np.arange(pool)[::-1].copy(),
        slots=np.full(shape, -1, np.int64),
        pins=pin_table(calls, workload.n_shared, workload.n_streams),
        **empty_heaps(len(workflows), len(calls), workload.n_streams),
        **notes(journal, len(calls), shape[0]),
        **idle_arrays(instances, len(steps)),
    )


def notes(wanted: bool, n_calls: int, n_instances: int) -> dict[str, Any]:
    """Room for what a driver is told of; none where it does not listen."""
    journal = np.zeros(max(4096, 8 * n_calls) if wanted else 0, JOURNAL)
    return {"journal": journal, "receipts": receipt_table(n_instances, RECEIPTS if wanted else 0)}


def receipt_table(n_instances: int, ring: int = RECEIPTS) -> Table:
    """Room for the newest `ring` receipts, nothing written yet."""
    table = np.zeros((ring, n_instances), RECEIPT)
    table["why"] = -1
    return table


def empty_heaps(n_workflows: int, n_calls: int, n_streams: int) -> dict[str, Any]:
    """What is due of workflows, calls and streams: nothing yet."""
    sizes = {"timers": n_workflows, "transfers": n_calls, "expiries": n_streams}
    return {name: new_heap(max(size, 1)) for name, size in sizes.items()}


def idle_arrays(instances: Table, n_steps: int) -> dict[str, Any]:
    """What runs on the instances, all of them empty, and scratch space by instance, by seat and by step."""
    n, seats = len(instances), int(instances["max_num_seqs"].max())
    return {
        "running": np.full((n, seats), -1, np.int64),
        "runs": new_heap(n),
        "dirty": np.zeros(n, np.int64),
        "ended": np.zeros(seats, np.int64),
        "t_comp_s": np.zeros(n),
        "scores": np.zeros(n),
        "counts": np.zeros(n_steps),
    }


def fill_slos(workload: Workload, workflows: Table, calls: Table, costs: Costs, instances: Table, steps: Table) -> None:
    """Derive the SLO of every workflow that declares none: slo_scale x base."""
    wanted = np.isnan(workload.workflows["slo_s"])
    if not wanted.any():
        return
    templates = template_table(workload.kinds, workload.steps)
    template_s: Floats = templates @ steps["mean_exec_s"]
    bases = base_slos_s(costs, instances, workflows, calls, template_s)
    workflows["slo_s"][wanted] = (workload.workflows["slo_scale"] * bases)[wanted]
