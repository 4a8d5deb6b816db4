"""Coding-agent traces: a main agent's requests with those of its sub-agents (kv-cache-tester's format)."""

from typing import NamedTuple

import numpy as np

from control.model.workload import Workload
from control.workload.build import in_order, number, order_note, places, settle
from control.workload.history import at_least_one, conversations
from control.workload.table import Floats, Ints, Table, read_table

COLUMNS = ("trace", "agent", "i", "t", "in_tok", "out_tok", "shared_prefix_blocks", "think_time")
_OPTIONAL = ("api_time", "stop")
BLOCK_TOKENS = 64
MAIN = "main"

_STEPS = (MAIN, "sub_agent")


class _Rows(NamedTuple):
    """The file's rows sorted by trace, main agent first, then sub-agents, each in its own order."""

    trace: Ints
    stream: Ints  # (trace, agent)
    sub: np.ndarray[tuple[int], np.dtype[np.bool_]]
    t: Floats  # s since the agent's own first request
    api_s: Floats  # s the recorded answer took; 0 where unknown
    gap_s: Floats  # s from this answer to the agent's next request; 0 after its last
    ended: np.ndarray[tuple[int], np.dtype[np.bool_]]  # the answer ended the turn: what follows is typing


def read_coding(path: str, text: str) -> Workload:
    """A workflow of kind "agent" per trace, without arrival times; a refused call is skipped.

    The main agent's requests are groups in order. A sub-agent's clock starts at its own first request, so
    where it was called is not in the file: it is placed after the first main request whose tool time is
    long enough to hold it (else the longest). Sub-agents in one place run in lockstep: their j-th requests
    are one parallel group. tool_s = think_time of the agent's next request, less what sub-agents fill.
    Raises TraceError.
    """
    table = read_table(path, text, COLUMNS, _OPTIONAL)
    trace, ids = number(table.label("trace"))
    agent = table.label("agent")
    sub = np.array(agent) != MAIN
    name, names = number(agent)
    stream, streams = number((trace * len(names) + name).tolist())
    place = table.whole("i")
    order = np.lexsort((_rank(in_order(table, stream, place, "i")), sub, trace))
    rows = _rows(table, order, trace, stream, sub)
    group, tool_s = _groups(rows)
    inputs = table.whole("in_tok", low=1)[order]
    outputs, problems = at_least_one(table.whole("out_tok")[order], "out_tok")
    claimed = table.whole("shared_prefix_blocks")[order] * BLOCK_TOKENS
    workflows, calls = conversations(rows.trace, rows.stream, group, inputs, outputs, claimed)
    calls["step"], calls["tool_s"] = rows.sub, tool_s
    problems += _blank_note(table) + order_note(order, table, "i")
    kinds, tenants = ("agent",), ("default",)
    texts = tuple(str(i) for i in ids)
    return settle(Workload(path, "agents", workflows, calls, kinds, tenants, _STEPS, 0, len(streams), texts, problems))


def _rank(order: Ints) -> Ints:
    """The place of each row in `order`."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _blank_note(table: Table) -> tuple[str, ...]:
    blank = table.columns["think_time"].count("")
    return (f"{blank} requests without think_time; counted as 0 s",) if blank else ()


def _rows(
    table: Table, order: Ints, trace: Ints, stream: Ints, sub: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> _Rows:
    zero = ["0"] * len(order)
    optional = table._replace(columns={"api_time": zero, "stop": zero, **table.columns})
    think = table.real("think_time", blank=0.0)[order]
    gap = np.append(think[1:], 0.0)
    sorted_stream = stream[order]
    gap[np.append(np.diff(sorted_stream) != 0, True)] = 0.0
    ended = np.array([stop == "end_turn" for stop in optional.columns["stop"]])[order]
    api_s = optional.real("api_time", blank=0.0)[order]
    return _Rows(trace[order], sorted_stream, sub[order], table.real("t")[order], api_s, gap, ended)


def _groups(rows: _Rows) -> tuple[Ints, Floats]:
    """Group of each call, and its tool time in s."""
    group, tool_s = places(rows.trace), rows.gap_s.copy()
    for trace in np.unique(rows.trace[rows.sub]):
        here = np.flatnonzero(rows.trace == trace)
        _place_sub_agents(rows, here, group, tool_s)
    return group, tool_s


def _place_sub_agents(rows: _Rows, here: Ints, group: Ints, tool_s: Floats) -> None:
    """Write group and tool_s of one trace with sub-agents; `here` are its rows."""
    main = here[~rows.sub[here]]
    lengths = np.zeros(len(main) + 1, np.int64)  # lockstep groups after each main call; the last: no main
    filled_s = np.zeros(len(main) + 1)
    members: list[tuple[int, Ints]] = []
    for stream in np.unique(rows.stream[here[rows.sub[here]]]):
        own = here[rows.stream[here] == stream]
        needed_s = float(rows.t[own[-1]] + rows.api_s[own[-1]] - rows.t[own[0]])
        at = _spawn(rows.gap_s[main], rows.ended[main], needed_s)
        lengths[at] = max(lengths[at], len(own))
        filled_s[at] = max(filled_s[at], needed_s)
        members.append((at, own))
    starts = np.arange(len(main)) + np.cumsum(lengths[:-1]) - lengths[:-1]
    group[main] = starts
    tool_s[main] = np.maximum(tool_s[main] - filled_s[:-1], 0.0)
    for at, own in members:
        first = starts[at] + 1 if len(main) else 0
        group[own] = first + np.arange(len(own))


def _spawn(gap_s: Floats, ended: np.ndarray[tuple[int], np.dtype[np.bool_]], needed_s: float) -> int:
    """The main call after which a sub-agent of `needed_s` runs: the first tool gap that holds it."""
    fits = np.flatnonzero((gap_s >= needed_s) & ~ended)
    if len(fits):
        return int(fits[0])
    return int(np.argmax(np.where(ended, -1.0, gap_s))) if len(gap_s) else 0
