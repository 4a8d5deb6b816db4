"""A world as arrays by name, and back: what checkpoints and exported forks are made of.

Costs are not among them: they follow from the fleet.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from control.errors import SettingError
from control.model.fleet import Fleet
from control.policy import contexts, tables
from control.policy.contexts import JOURNAL
from control.twin.caps import Switch, live_costs
from control.twin.heap import Heap
from control.twin.pack import receipt_table
from control.twin.world import World

DERIVED = ("costs", "ended", "t_comp_s", "scores", "counts", "journal", "receipts")  # rebuilt, scratch, or drained
HEAPS = ("runs", "timers", "transfers", "expiries")
COLUMNS = {
    "clock": contexts.CLOCK,
    "policy": tables.POLICY,
    "instances": tables.INSTANCE,
    "workflows": tables.WORKFLOW_STATE,
    "calls": tables.CALL_STATE,
    "steps": tables.STEP,
    "kinds": tables.KIND,
    "counters": tables.COUNTER,
    "prefixes": contexts.PREFIX,
    "pins": contexts.PIN,
}


def world_arrays(world: World, prefix: str = "") -> dict[str, Any]:
    """The arrays of a world, journal drained, by `prefix` and name."""
    arrays: dict[str, Any] = {}
    for name, value in world._asdict().items():
        if isinstance(value, Heap):
            arrays |= {f"{prefix}{name}.{part}": array for part, array in value._asdict().items()}
        elif name not in DERIVED:
            arrays[f"{prefix}{name}"] = value
    return arrays


def world_of(arrays: Any, fleet: Fleet, switches: Sequence[Switch], prefix: str = "", journal: bool = False) -> World:
    """A world out of its arrays, at the cost of `fleet`, some of whose instances are still to switch.

    `journal`: with an empty journal and room for receipts; else without either.

    Raises:
        SettingError: a table has other columns than this version's.
    """
    costs, rows = live_costs(fleet, switches)
    n, seats = len(fleet.instances), arrays[f"{prefix}running"].shape[1]
    values: dict[str, Any] = {
        "costs": costs,
        "ended": np.zeros(seats, np.int64),
        "t_comp_s": np.zeros(n),
        "scores": np.zeros(n),
        "counts": np.zeros(len(arrays[f"{prefix}steps"])),
        "journal": np.zeros(max(4096, 8 * len(arrays[f"{prefix}calls"])) if journal else 0, JOURNAL),
        "receipts": receipt_table(n) if journal else receipt_table(n, 0),
    }
    for name in World._fields:
        if name in HEAPS:
            values[name] = Heap(*(arrays[f"{prefix}{name}.{part}"] for part in Heap._fields))
        elif name not in values:
            values[name] = arrays[f"{prefix}{name}"]
    for name, dtype in COLUMNS.items():
        if values[name].dtype != dtype:
            raise SettingError(f"the table of {name} has other columns")
    world = World(**values)
    world.instances["profile"] = rows
    return world
