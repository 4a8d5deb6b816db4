"""Cost tables of a fleet: one row of costs for every kind of instance in it."""

import numpy as np

from control.model.costs import CostTable
from control.model.fleet import Fleet, InstanceSpec, profile_of
from control.model.hardware import cost_table
from control.policy.tables import PROFILE, Costs, Table


def profile_key(spec: InstanceSpec) -> tuple[object, ...]:
    """What decides an instance's costs: instances of equal key share one profile row."""
    return (
        spec.gpu,
        spec.model,
        spec.gpus,
        spec.kv_tokens,
        spec.power_cap_w,
        spec.profile,
        spec.prefill_scale,
        spec.decode_scale,
    )


def cost_tables(fleet: Fleet) -> tuple[Costs, dict[tuple[object, ...], int]]:
    """Costs of every profile in the fleet, and the profile row of each key."""
    seqs = max(spec.max_num_seqs for spec in fleet.instances)
    tokens = max(spec.max_num_batched_tokens for spec in fleet.instances)
    rows: dict[tuple[object, ...], int] = {}
    tables: list[CostTable] = []
    for spec in fleet.instances:
        if profile_key(spec) not in rows:
            rows[profile_key(spec)] = len(tables)
            found = profile_of(spec)
            tables.append(cost_table(found, seqs, tokens, spec.power_cap_w))
    costs = Costs(
        np.concatenate([profile_row(table) for table in tables]),
        np.stack([table.decode_ms for table in tables]),
        np.stack([table.mix_ms for table in tables]),
        np.stack([table.power_w for table in tables]),
    )
    return costs, rows


def profile_row(table: CostTable) -> Table:
    """The scalars of one cost table as a PROFILE row."""
    row = np.zeros(1, PROFILE)
    row["kv_ms_0"], row["kv_ms_1"] = table.decode_kv_ms
    for name in PROFILE.names or ():
        if hasattr(table, name):
            row[name] = getattr(table, name)
    return row
