"""Two more traces of agent turns: LMCache's agent suite and tau-bench's tool-use dialogues."""

import numpy as np

from control.model.workload import Workload
from control.workload.build import in_order, number, order_note, places, settle
from control.workload.history import at_least_one, conversations
from control.workload.table import Floats, Ints, Table, read_table

LMCACHE_COLUMNS = ("session", "i", "abs_ts_us", "in_tok", "out_tok", "shared_prefix_tok")
TAU_COLUMNS = ("task", "trial", "call", "in_tok", "out_tok", "append_tok", "kind")

_MOST_US = 10**18


def read_lmcache(path: str, text: str) -> Workload:
    """A workflow of kind "agent" per session; it arrives at its first turn's wall-clock time.

    The file has no end times, so the pause between turns cannot be told from the answer and tool_s is 0.
    Raises TraceError.
    """
    table = read_table(path, text, LMCACHE_COLUMNS)
    owner, ids = number(table.label("session"))
    order = in_order(table, owner, table.whole("i"), "i")
    stamps = table.whole("abs_ts_us", high=_MOST_US)[order]
    first = stamps[places(owner[order]) == 0]
    claimed = table.whole("shared_prefix_tok")[order]
    names = tuple(str(i) for i in ids)
    arrivals = (first - first.min()) / 1e6
    return _conversations(table, "lmcache", order, owner, claimed, arrivals, names, "i")


def read_tau(path: str, text: str) -> Workload:
    """A workflow of kind "agent" per task and trial, without times; steps are the kinds of answer.

    Raises TraceError.
    """
    table = read_table(path, text, TAU_COLUMNS)
    owner, ids = number(zip(table.label("task"), table.label("trial"), strict=True))
    order = in_order(table, owner, table.whole("call"), "call")
    claimed = np.maximum(table.whole("in_tok") - table.whole("append_tok"), 0)[order]
    names = tuple("/".join(i) for i in ids if isinstance(i, tuple))
    workload = _conversations(table, "tau", order, owner, claimed, np.full(len(ids), np.nan), names, "call")
    step, steps = number(np.array(table.label("kind"))[order].tolist())
    workload.calls["step"] = step
    return workload._replace(steps=tuple(str(name) for name in steps))


def _conversations(
    table: Table,
    name: str,
    order: Ints,
    owner: Ints,
    claimed: Ints,
    arrivals: Floats,
    ids: tuple[str, ...],
    place: str,
) -> Workload:
    """A workflow per owner, a group and one stream's call per row; `claimed` is in `order` already."""
    owner = owner[order]
    inputs, no_input = at_least_one(table.whole("in_tok")[order], "in_tok")
    outputs, no_output = at_least_one(table.whole("out_tok")[order], "out_tok")
    workflows, calls = conversations(owner, owner, places(owner), inputs, outputs, claimed)
    workflows["arrival_s"] = arrivals
    problems = no_input + no_output + order_note(order, table, place)
    names = (("agent",), ("default",), ("turn",))
    return settle(Workload(table.path, name, workflows, calls, *names, 0, len(ids), ids, problems))
