"""A stretch of a scenario lived through at once: the engine's own loop, without waiting for the clock.

What an operator would have seen over those minutes, as far as simulated time goes; tuning runs take no simulated time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from control.config import EngineSettings
from control.engine.loop import Loop
from control.engine.pending import Pending
from control.engine.source import Source
from control.engine.state import start
from control.metrics.latency import percentile
from control.model.fleet import Fleet
from control.policy.tables import Floats
from control.tuning.decide import TunerSettings
from storage.open import Store

STEP_S = 2.0  # simulated s a tick
RECORD_EVERY = 30  # ticks from one commit to the next


class Move(NamedTuple):
    """A change of alpha."""

    at_s: float  # simulated s
    alpha: float
    why: str


@dataclass
class Rehearsed:
    """What came of it."""

    latencies_s: list[float] = field(default_factory=list)  # of the workflows that ran to their end
    moves: list[Move] = field(default_factory=list)

    @property
    def p95_s(self) -> float | None:
        """P95 workflow latency, s."""
        latencies_s: Floats = np.array(self.latencies_s)
        return percentile(latencies_s, 95.0)

    def take_in(self, pending: Pending) -> None:
        """Note what is about to be committed."""
        self.latencies_s += [row["latency_s"] for row in pending.workflows if row["state"] == "completed"]
        self.moves += [Move(e["sim_s"], e["new"], e["text"]) for e in pending.events if e["kind"] == "alpha"]


def rehearse(
    source: Source,
    fleet: Fleet,
    store: Store,
    mode: str,
    policy: str = "hexgen",
    alpha: float = 0.5,
    settings: TunerSettings | None = None,
    tell: Callable[[float], None] = lambda now_s: None,
) -> Rehearsed:
    """Live through `source`, which must have an end, until its last workflow has ended, the tuner being in `mode`.

    The store's lease must be held. `tell` is told the simulated time now and then.

    Raises:
        SettingError: an unknown policy, or alpha out of bounds.
        StoreError: the store failed.
    """
    live = start(fleet, source, policy, alpha, 1.0)
    live.tuning_mode = mode
    loop = Loop(live, store, EngineSettings(policy=policy, alpha=alpha), "rehearsal", lambda: False)
    loop.tuner.settings = settings or TunerSettings()
    seen, ticks = Rehearsed(), 0
    while not live.is_finished:
        loop.may_tune = True
        loop.tick(STEP_S)
        loop.tuner.wait()
        ticks += 1
        if ticks % RECORD_EVERY == 0 or live.is_finished:
            seen.take_in(loop.pending)
            loop.record()
            tell(live.now_s)
    loop.tuner.close()
    return seen
