"""The live lines of the last minutes, as a fork continues them."""

import time

import numpy as np

from control.engine.state import Live
from storage import readers
from storage.open import Store

PAST_S = 300.0  # simulated s
MOST_POINTS = 150
LINES = ("p95_s", "slo_debt_s", "queued", "power_w")


def past_lines(store: Store, live: Live) -> dict[str, list[float | None]]:
    """The lines before now by name, and `times_s` [n], s before now (<= 0), oldest first."""
    wall_s = min(readers.MAX_POINTS, PAST_S / max(live.speed, 0.1))
    found = readers.samples(store, "fleet", time.time() - wall_s, 1, LINES)
    ahead_s = found["sim_s"] - live.now_s
    rows = np.flatnonzero((ahead_s <= 0.0) & (ahead_s >= -PAST_S))
    rows = rows[:: max(1, len(rows) // MOST_POINTS)]
    told = {name: [None if np.isnan(v) else float(v) for v in found[name][rows]] for name in LINES}
    return {"times_s": ahead_s[rows].tolist(), **told}
