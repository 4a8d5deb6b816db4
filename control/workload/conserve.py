"""Multi-turn conversations whose turns append to a growing context (ConServe, sections 3 and 7)."""

import numpy as np

from control.model.workload import Workload
from control.workload.build import in_order, number, order_note, places, settle
from control.workload.history import conversations
from control.workload.table import read_table

COLUMNS = ("conv_id", "iter_id", "appended_input", "total_input", "out_token_size", "carried_over")


def read_conserve(path: str, text: str) -> Workload:
    """A workflow of kind "agent" per conversation, a group per turn, without arrival times.

    history_tokens = carried_over as far as the context grows: a turn whose total_input is below the one
    before has been compacted, which breaks the prefix, and has no history. A refused turn is skipped.
    Raises TraceError.
    """
    table = read_table(path, text, COLUMNS)
    owner, ids = number(table.label("conv_id"))
    turn = table.whole("iter_id")
    order = in_order(table, owner, turn, "iter_id")
    owner = owner[order]
    inputs = table.whole("total_input", low=1)[order]
    outputs = table.whole("out_token_size", low=1)[order]
    table.whole("appended_input")
    shrunk = np.append(False, (np.diff(owner) == 0) & (np.diff(inputs) < 0))
    claimed = np.where(shrunk, 0, table.whole("carried_over")[order])
    workflows, calls = conversations(owner, owner, places(owner), inputs, outputs, claimed)
    problems = order_note(order, table, "iter_id")
    names = (("agent",), ("default",), ("turn",))
    texts = tuple(str(i) for i in ids)
    return settle(Workload(path, "conserve", workflows, calls, *names, 0, len(ids), texts, problems))
