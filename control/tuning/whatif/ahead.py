"""Arrivals that may come, drawn from those that came.

Gaps between arrivals are drawn with replacement from a bootstrap resample of the recorded ones: the band so also holds
that a rate counted over some minutes is itself uncertain. Kind, tenant and SLO of each, and its calls, are those of
recorded workflows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from control.model.workload import Workload
from control.policy.tables import Floats
from control.tuning.episodes import Arrival, Episode
from control.tuning.whatif.deck import Deck, dealt

if TYPE_CHECKING:
    from control.tuning.whatif.fork import Fork

MOST_AHEAD = 200_000  # workflows


def arrivals_ahead(given: "Fork", deck: Deck, rng: np.random.Generator, load: float, horizon_s: float) -> Workload:
    """Workflows that arrive within `horizon_s` after the fork, `load` times as thick as they came.

    A kind of which nothing has ended yet is left out: what it is made of is not known.
    """
    known = [arrival for arrival in given.arrivals if arrival.kind in deck.by_kind]
    times_s = times_ahead(known, given.since_s, given.now_s, rng, load, horizon_s)
    drawn = [known[k] for k in rng.integers(0, max(1, len(known)), len(times_s))]
    shares = rng.random(len(drawn)).tolist()
    picked = [deck.by_kind[a.kind][int(u * len(deck.by_kind[a.kind]))] for a, u in zip(drawn, shares, strict=True)]
    return with_draws(dealt(deck, drawn, times_s, np.array(picked, np.int64), given.names), rng)


def times_ahead(
    known: Sequence[Arrival | Episode],
    since_s: float,
    now_s: float,
    rng: np.random.Generator,
    load: float,
    horizon_s: float,
) -> Floats:
    """When workflows arrive, s, sorted."""
    if not known or load <= 0.0:
        return np.zeros(0)
    gaps_s = np.diff(np.array([a.arrival_s for a in known]), prepend=since_s)
    drawn_s = gaps_s[rng.integers(0, len(gaps_s), len(gaps_s))] / load
    mean_s = max(float(drawn_s.mean()), horizon_s / MOST_AHEAD)
    times_s: Floats = np.zeros(0)
    last_s = 0.0
    while last_s <= horizon_s and len(times_s) < MOST_AHEAD:
        n = int(1.2 * (horizon_s - last_s) / mean_s) + 16
        more_s = last_s + np.cumsum(drawn_s[rng.integers(0, len(drawn_s), n)])
        times_s, last_s = np.concatenate([times_s, more_s]), float(more_s[-1])
    return np.asarray(now_s + times_s[times_s <= horizon_s])


def with_draws(work: Workload, rng: np.random.Generator) -> Workload:
    """The workload with random numbers of its own for policies that use chance."""
    draws = rng.random((len(work.calls), 2))
    work.calls["draw_a"], work.calls["draw_b"] = draws[:, 0], draws[:, 1]
    return work
