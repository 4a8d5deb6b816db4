"""From rows of calls to a Workload: numbering, sorting, slicing and merging."""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from control.model.workload import Workload
from control.workload.table import Ints, Table


def number(keys: Iterable[Hashable]) -> tuple[Ints, list[Hashable]]:
    """Each key's number in order of first appearance, and the distinct keys."""
    seen: dict[Hashable, int] = {}
    numbers = [seen.setdefault(key, len(seen)) for key in keys]
    return np.array(numbers, dtype=np.int64), list(seen)


def in_order(table: Table, owner: Ints, place: Ints, name: str) -> Ints:
    """Row order that keeps owners together and sorts each by `place`, the column `name`.

    Raises TraceError when an owner has the same place twice.
    """
    order = np.lexsort((place, owner))
    same = (np.diff(owner[order]) == 0) & (np.diff(place[order]) == 0)
    if same.any():
        row = int(order[int(same.argmax()) + 1])
        table.refuse(row, name, "each number once in a workflow")
    return order


def places(owner: Ints) -> Ints:
    """0, 1, 2 ... inside each run of equal owners, which are contiguous."""
    rows = np.arange(len(owner))
    starts = np.append(True, np.diff(owner) != 0)[: len(owner)]
    return rows - np.maximum.accumulate(np.where(starts, rows, 0))


def order_note(order: Ints, table: Table, name: str) -> tuple[str, ...]:
    """The line for `problems` when rows were not in order; () when they were."""
    moved = np.flatnonzero(order != np.arange(len(order)))
    if not len(moved):
        return ()
    return (f"line {table.lines[int(moved[0])]}: rows are out of order; sorted by workflow and {name}",)


def settle(workload: Workload) -> Workload:
    """Sort workflows by arrival (stable; without times they stay) and make each one's calls contiguous."""
    arrivals = workload.workflows["arrival_s"]
    order = np.argsort(arrivals, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    calls = workload.calls.copy()
    calls["workflow"] = place[calls["workflow"]]
    calls = calls[np.lexsort((calls["group"], calls["workflow"]))]
    ids = tuple(workload.ids[i] for i in order) if workload.ids else ()
    workflows = workload.workflows[order]
    workflows["n_calls"] = np.bincount(calls["workflow"], minlength=len(order))
    workflows["first_call"] = np.cumsum(workflows["n_calls"]) - workflows["n_calls"]
    return workload._replace(workflows=workflows, calls=calls, ids=ids)


def part(workload: Workload, first: int, last: int) -> Workload:
    """Workflow rows [first, last) with their calls; names, streams and shared prefixes keep their numbers."""
    workflows = workload.workflows[first:last].copy()
    begin = int(workflows["first_call"][0]) if len(workflows) else 0
    calls = workload.calls[begin : begin + int(workflows["n_calls"].sum())].copy()
    calls["workflow"] -= first
    workflows["first_call"] -= begin
    return workload._replace(workflows=workflows, calls=calls, ids=workload.ids[first:last])


def chosen(workload: Workload, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Workload:
    """The workflows where `keep` is true, with their calls; streams keep their numbers."""
    place = np.cumsum(keep) - 1
    calls = workload.calls[keep[workload.calls["workflow"]]]
    calls["workflow"] = place[calls["workflow"]]
    ids = tuple(i for i, kept in zip(workload.ids, keep, strict=False) if kept)
    return settle(workload._replace(workflows=workload.workflows[keep], calls=calls, ids=ids))


def merge(parts: Sequence[Workload], name: str, one_prompt_set: bool = False) -> Workload:
    """All workflows of `parts` in one workload, sorted by arrival.

    Names become the union in order of appearance and streams are renumbered one part after the other;
    so are shared prefixes, unless `one_prompt_set` says that equal numbers mean equal prompts.
    """
    kinds, tenants = _union(p.kinds for p in parts), _union(p.tenants for p in parts)
    steps = _union(p.steps for p in parts)
    workflows = np.concatenate([p.workflows for p in parts])
    calls = np.concatenate([p.calls for p in parts])
    row = call = shared = stream = 0
    for p in parts:
        here = workflows[row : row + len(p.workflows)]
        here["kind"] = _renumber(p.kinds, kinds)[p.workflows["kind"]]
        here["tenant"] = _renumber(p.tenants, tenants)[p.workflows["tenant"]]
        there = calls[call : call + len(p.calls)]
        there["step"] = _renumber(p.steps, steps)[p.calls["step"]]
        there["workflow"] += row
        there["shared_key"][there["shared_key"] >= 0] += 0 if one_prompt_set else shared
        there["stream"][there["stream"] >= 0] += stream
        row, call, stream = row + len(here), call + len(there), stream + p.n_streams
        shared = max(shared, p.n_shared) if one_prompt_set else shared + p.n_shared
    problems = tuple(line for p in parts for line in p.problems)
    merged = Workload(name, parts[0].format, workflows, calls, kinds, tenants, steps, shared, stream, (), problems)
    return settle(merged)


def _union(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in names for name in part))


def _renumber(old: tuple[str, ...], new: tuple[str, ...]) -> Ints:
    return np.array([new.index(name) for name in old] or [0], dtype=np.int64)


def dense_streams(workload: Workload) -> Workload:
    """The workload with its streams numbered 0, 1, 2 ... without gaps."""
    calls = workload.calls.copy()
    used = calls["stream"] >= 0
    names, numbers = np.unique(calls["stream"][used], return_inverse=True)
    calls["stream"][used] = numbers
    return workload._replace(calls=calls, n_streams=len(names))
