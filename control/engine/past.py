"""The live lines of the last minutes, as a fork continues them."""

import time
from typing import Any

import numpy as np

from control.engine.state import Live
from control.policy.tables import Floats, Ints
from storage import readers
from storage.open import Store

PAST_S = 300.0  # simulated s
MOST_POINTS = 150
LINES = ("p95_s", "slo_debt_s", "queued", "power_w")


def past_lines(store: Store, live: Live, at_s: float) -> dict[str, Any]:
    """The lines before the moment `at_s` of a fork by name, and `times_s` [n], s from it (<= 0), oldest first.

    `since` holds the same of what came after it, where the fork is of the past; empty where it is of now.
    """
    wall_s = min(readers.MAX_POINTS, (PAST_S + live.now_s - at_s) / max(live.speed, 0.1))
    found = readers.samples(store, "fleet", time.time() - wall_s, 1, LINES)
    ahead_s = found["sim_s"] - at_s
    before = np.flatnonzero((ahead_s <= 0.0) & (ahead_s >= -PAST_S))
    since = np.flatnonzero((ahead_s > 0.0) & (ahead_s <= live.now_s - at_s))
    return {**lines(found, ahead_s, before), "since": lines(found, ahead_s, since)}


def lines(found: readers.Columns, ahead_s: Floats, rows: Ints) -> dict[str, list[float | None]]:
    """Some rows of the lines, thinned to about MOST_POINTS."""
    rows = rows[:: max(1, len(rows) // MOST_POINTS)]
    told = {name: [None if np.isnan(v) else float(v) for v in found[name][rows]] for name in LINES}
    return {"times_s": ahead_s[rows].tolist(), **told}
