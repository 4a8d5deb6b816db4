"""Recorded workflows, and workloads made of them: the past replayed, or resampled."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from control.model.workload import CALL, Workload, empty_workflows
from control.policy.tables import Floats, Ints, Record, Table


class Episode(NamedTuple):
    """One workflow that ended, with everything that was observed of it."""

    arrival_s: float
    slo_s: float
    tenant: int
    kind: int
    go_on: int
    calls: npt.NDArray[np.void]  # CALL rows; streams numbered from 0 in the workflow


class Arrival(NamedTuple):
    """One workflow that arrived, whether it has ended or not."""

    arrival_s: float
    slo_s: float
    tenant: int
    kind: int
    go_on: int


class Names(NamedTuple):
    """What the numbers of kinds, tenants and steps stand for, and how many shared prefixes there are."""

    kinds: tuple[str, ...]
    tenants: tuple[str, ...]
    steps: tuple[str, ...]
    n_shared: int


def episode(workflow: Record, calls: Table) -> Episode:
    """The record of an ended workflow: its WORKFLOW_STATE row and its CALL_STATE rows."""
    rows = np.zeros(len(calls), CALL)
    for name in CALL.names or ():
        if name in (calls.dtype.names or ()):
            rows[name] = calls[name]
    streams = np.unique(calls["stream_key"][calls["stream_key"] >= 0])
    local = np.searchsorted(streams, calls["stream_key"])
    rows["stream"] = np.where(calls["stream_key"] >= 0, local, -1)
    return Episode(*arrival(workflow), rows)


def episodes(workflows: Table, calls: Table) -> list[Episode]:
    """As `episode`, of many: the columns are copied once. `first_call` counts in `calls`."""
    rows = np.zeros(len(calls), CALL)
    for name in CALL.names or ():
        if name in (calls.dtype.names or ()):
            rows[name] = calls[name]
    rows["stream"] = -1
    in_stream = (calls["stream_key"] >= 0).tolist()
    found = []
    for workflow in workflows:
        first, n = int(workflow["first_call"]), int(workflow["n_calls"])
        if any(in_stream[first : first + n]):
            found.append(episode(workflow, calls[first : first + n]))
        else:
            found.append(Episode(*arrival(workflow), rows[first : first + n]))
    return found


def arrival(workflow: Record) -> Arrival:
    """When and how a workflow arrived: its WORKFLOW_STATE row."""
    return Arrival(
        float(workflow["arrival_s"]),
        float(workflow["slo_s"]),
        int(workflow["tenant"]),
        int(workflow["kind"]),
        int(workflow["go_on"]),
    )


def episodes_of(workload: Workload, slos_s: Floats) -> list[Episode]:
    """The workflows of an arranged workload as episodes, as if all had been observed."""
    episodes = []
    for row, slo_s in zip(workload.workflows, slos_s, strict=True):
        first, n = int(row["first_call"]), int(row["n_calls"])
        calls = workload.calls[first : first + n].copy()
        used = calls["stream"] >= 0
        streams = np.unique(calls["stream"][used])
        calls["stream"][used] = np.searchsorted(streams, calls["stream"][used])
        head = (float(row["arrival_s"]), float(slo_s), int(row["tenant"]), int(row["kind"]), int(row["go_on"]))
        episodes.append(Episode(*head, calls))
    return episodes


def assemble(
    arrivals: Sequence[Arrival | Episode], times_s: Floats, contents: Sequence[Episode], names: Names
) -> Workload:
    """A workload: workflow k arrives like `arrivals[k]`, at `times_s[k]` (sorted), with the calls of `contents[k]`."""
    workflows = empty_workflows(len(arrivals))
    workflows["arrival_s"] = times_s
    for field in ("slo_s", "tenant", "kind", "go_on"):
        workflows[field] = [getattr(a, field) for a in arrivals]
    sizes = np.array([len(content.calls) for content in contents], np.int64)
    workflows["n_calls"] = sizes
    workflows["first_call"] = np.cumsum(sizes) - sizes
    calls = np.concatenate([content.calls for content in contents]) if contents else np.zeros(0, CALL)
    calls["workflow"] = np.repeat(np.arange(len(arrivals)), sizes)
    counts = np.array([int(content.calls["stream"].max(initial=-1)) + 1 for content in contents], np.int64)
    offsets = np.repeat(np.cumsum(counts) - counts, sizes)
    calls["stream"] = np.where(calls["stream"] >= 0, calls["stream"] + offsets, -1)
    kinds, tenants, steps, n_shared = names
    return Workload("replay", "replay", workflows, calls, kinds, tenants, steps, n_shared, int(counts.sum()))


def resample(
    arrivals: Sequence[Arrival | Episode], contents: Sequence[Episode], names: Names, start_s: float, seed: int
) -> Workload:
    """A bootstrap resample of a window of arrivals that begins at `start_s`.

    Gaps between arrivals, and the order of kinds, tenants and SLOs, are drawn with replacement from the recorded ones;
    each workflow's calls are those of a recorded workflow of its kind that has ended. A kind of which nothing has
    ended is left out: what it is made of is not known.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    by_kind = contents_by_kind(contents)
    arrivals = [a for a in arrivals if a.kind in by_kind]
    n = len(arrivals)
    recorded = np.array([a.arrival_s for a in arrivals])
    if not n:
        return assemble([], np.zeros(0), [], names)
    gaps = np.diff(recorded, prepend=start_s)
    times_s: Floats = start_s + np.cumsum(gaps[rng.integers(0, n, n)])
    drawn = [arrivals[k] for k in rng.integers(0, n, n)]
    chosen = [by_kind[a.kind][int(u * len(by_kind[a.kind]))] for a, u in zip(drawn, rng.random(n), strict=True)]
    return assemble(drawn, times_s, [contents[k] for k in chosen], names)


def as_it_came(arrivals: Sequence[Arrival | Episode], contents: Sequence[Episode], names: Names, seed: int) -> Workload:
    """What really came, once more: each workflow at its own time, with its own calls where it has ended.

    One that has not ended gets the calls of a recorded workflow of its kind: its own are not known yet. Where none of
    its kind has ended it is left out.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    by_kind = contents_by_kind(contents)
    arrivals = [a for a in arrivals if isinstance(a, Episode) or a.kind in by_kind]
    draws = rng.random(len(arrivals))
    filled = [
        a if isinstance(a, Episode) else contents[by_kind[a.kind][int(u * len(by_kind[a.kind]))]]
        for a, u in zip(arrivals, draws, strict=True)
    ]
    return assemble(arrivals, np.array([a.arrival_s for a in arrivals]), filled, names)


def contents_by_kind(contents: Sequence[Episode]) -> dict[int, Ints]:
    """Positions of the ended workflows of each kind."""
    kinds = np.array([content.kind for content in contents])
    return {int(kind): np.flatnonzero(kinds == kind) for kind in np.unique(kinds)}
