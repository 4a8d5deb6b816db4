"""The ledgers of the workflows that ended lately, added up in slots of time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from control.metrics.ledger import CAUSES, debts_s, planned_s
from control.metrics.stages import plans_by_step, times_by
from control.metrics.timeline import timeline
from control.policy.tables import Floats, Table

Row = dict[str, Any]
SLOT_S = 10.0  # simulated s that one sum covers


class EndedWorkflows(NamedTuple):
    """Workflows that ended, with their calls: copies, which stay as they are while the world goes on.

    `first_call` of a workflow counts in `calls`, and `workflow` of a call in `workflows`.
    """

    workflows: Table
    calls: Table
    steps: Table
    templates: Floats


@dataclass
class Slot:
    """Sums over the workflows that ended within SLOT_S, s: a row per tenant, stage or instance, a column per cause."""

    workflows: int
    tenants: Floats
    steps: Floats
    instances: Floats


@dataclass
class Books:
    """The ledgers of the workflows that ended in the last `window_s` simulated seconds."""

    tenants: Sequence[str]
    steps: Sequence[str]
    instances: Sequence[str]
    window_s: float = 300.0
    slots: dict[int, Slot] = field(default_factory=dict)  # by slot number, in order of time
    #: Since this process began: counted and added up like all others, but without a row of their own in the store.
    unstored: dict[str, int] = field(default_factory=lambda: {"decisions": 0, "workflows": 0})

    def note(self, ended: EndedWorkflows) -> Floats:
        """Take in workflows that have ended; the debt of each by cause [w, causes], s."""
        workflows, calls = ended.workflows, ended.calls
        debts = debts_s(workflows, calls)
        numbers = (workflows["finished_s"] // SLOT_S).astype(np.int64)
        for number in np.unique(numbers):
            mine = numbers == number
            slot, rows = self.slot(int(number)), calls[mine[calls["workflow"]]]
            slot.workflows += int(np.count_nonzero(mine))
            np.add.at(slot.tenants, workflows["tenant"][mine], debts[mine])
            template: Floats = ended.templates[workflows["kind"][mine]].sum(axis=0)
            slot.steps += times_by(rows, "step", len(ended.steps)) - plans_by_step(ended.steps, template)
            slot.instances += times_by(rows, "instance", len(self.instances))
        return debts

    def row(self, ended: EndedWorkflows, w: int, debts: Floats) -> Row:
        """What the row of one of them gains in the store."""
        first, n = ended.workflows[w]["first_call"], ended.workflows[w]["n_calls"]
        calls = ended.calls[first : first + n]
        return {
            "plan_s": float(planned_s(ended.workflows[w : w + 1]).sum()),
            "ledger": [round(float(debt), 6) for debt in debts[w]],
            "timeline": timeline(ended.workflows[w], calls, tuple(self.steps), list(self.instances)),
        }

    def slot(self, number: int) -> Slot:
        """A slot, new where nothing has ended in it yet."""
        if number not in self.slots:
            sizes = (len(self.tenants), len(self.steps), len(self.instances))
            self.slots[number] = Slot(0, *(np.zeros((size, len(CAUSES))) for size in sizes))
        return self.slots[number]

    def ledger(self, now_s: float) -> Row:
        """Sums over the window: of the fleet, by tenant, by stage, by instance, each by cause, s."""
        first = int((now_s - self.window_s) // SLOT_S)
        self.slots = {number: slot for number, slot in sorted(self.slots.items()) if number > first}
        slots, n = self.slots.values(), len(CAUSES)
        tenants = sum((slot.tenants for slot in slots), np.zeros((len(self.tenants), n)))
        steps = sum((slot.steps for slot in slots), np.zeros((len(self.steps), n)))
        places = sum((slot.instances for slot in slots), np.zeros((len(self.instances), n)))
        return {
            "window_s": self.window_s,
            "workflows": sum(slot.workflows for slot in slots),
            "causes": list(CAUSES),
            "fleet": rounded(tenants.sum(axis=0)),
            "by_tenant": named(self.tenants, tenants),
            "by_stage": named(self.steps, steps),
            "by_instance": named(self.instances, places),
        }

    def as_arrays(self) -> dict[str, Any]:
        """The slots as arrays, to be stored."""
        slots = list(self.slots.values())
        counts = [[number, slot.workflows] for number, slot in self.slots.items()]
        arrays: dict[str, Any] = {"counts": np.array(counts, np.int64).reshape(len(slots), 2)}
        for name, size in (
            ("tenants", len(self.tenants)),
            ("steps", len(self.steps)),
            ("instances", len(self.instances)),
        ):
            rows = [getattr(slot, name) for slot in slots]
            arrays[name] = np.array(rows, np.float64).reshape(len(slots), size, len(CAUSES))
        return arrays

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take up what `as_arrays` gave."""
        tables = zip(arrays["tenants"], arrays["steps"], arrays["instances"], strict=True)
        self.slots = {
            int(number): Slot(int(workflows), *(table.copy() for table in parts))
            for (number, workflows), parts in zip(arrays["counts"], tables, strict=True)
        }


def rounded(values: Floats) -> list[float]:
    """Seconds to the microsecond, as plain numbers."""
    return [round(float(value), 6) for value in values]


def named(names: Sequence[str], table: Floats) -> dict[str, list[float]]:
    """Rows of a table by name; those without a name are places for names to come."""
    return {name: rounded(row) for name, row in zip(names, table, strict=True) if name}
