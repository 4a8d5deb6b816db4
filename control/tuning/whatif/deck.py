"""Recorded workflows as a deck to draw from: their calls in one table, made once for all seeds of a fork."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from control.model.workload import CALL, Workload, empty_workflows
from control.policy.tables import Floats, Ints, Table
from control.tuning.episodes import Arrival, Episode, Names, contents_by_kind


class Deck(NamedTuple):
    """Workflows that have ended."""

    calls: Table  # CALL rows of all of them, one workflow after the other; streams numbered from 0 in each
    first: Ints  # row of the first call of each
    sizes: Ints  # calls of each
    streams: Ints  # streams of each
    by_kind: dict[int, Ints]  # which are of each kind
    lengths: list[Ints]  # output tokens of the calls of each step, sorted


def deck_of(contents: Sequence[Episode], n_steps: int) -> Deck:
    """The deck of `contents`."""
    sizes = np.array([len(content.calls) for content in contents], np.int64)
    calls = np.zeros(int(sizes.sum()), CALL)
    first = np.cumsum(sizes) - sizes
    for at, content in zip(first.tolist(), contents, strict=True):
        calls[at : at + len(content.calls)] = content.calls
    streams = np.zeros(len(contents), np.int64)
    np.maximum.at(streams, np.repeat(np.arange(len(contents)), sizes), calls["stream"].astype(np.int64) + 1)
    outputs = calls["output_tokens"].astype(np.int64)
    lengths = [np.sort(outputs[calls["step"] == k]) for k in range(n_steps)]
    return Deck(calls, first, sizes, streams, contents_by_kind(contents) if contents else {}, lengths)


def dealt(deck: Deck, arrivals: Sequence[Arrival | Episode], times_s: Floats, chosen: Ints, names: Names) -> Workload:
    """A workload: workflow k arrives like `arrivals[k]`, at `times_s[k]` (sorted), with the calls of `chosen[k]`."""
    workflows = empty_workflows(len(arrivals))
    workflows["arrival_s"] = times_s
    for field in ("slo_s", "tenant", "kind", "go_on"):
        workflows[field] = [getattr(a, field) for a in arrivals]
    sizes, counts = deck.sizes[chosen], deck.streams[chosen]
    starts = np.cumsum(sizes) - sizes
    workflows["n_calls"], workflows["first_call"] = sizes, starts
    rows = np.repeat(deck.first[chosen] - starts, sizes) + np.arange(int(sizes.sum()))
    calls = deck.calls[rows]
    calls["workflow"] = np.repeat(np.arange(len(arrivals)), sizes)
    offsets = np.repeat(np.cumsum(counts) - counts, sizes)
    calls["stream"] = np.where(calls["stream"] >= 0, calls["stream"] + offsets, -1)
    kinds, tenants, steps, n_shared = names
    return Workload("ahead", "ahead", workflows, calls, kinds, tenants, steps, n_shared, int(counts.sum()))
