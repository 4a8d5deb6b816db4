"""The newest reading of one source, how old it is, and whether it can be believed."""

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

from control.adapters.reading import COUNTERS, Reading

State = Literal["missing", "stale", "live"]
GAUGES = ("running", "waiting", "kv_used_fraction")
#: KV blocks that the running sequences must have filled, each, before an unchanged usage is suspect.
MOVED_BLOCKS = 2
BLOCK_TOKENS = 16


class Watch:
    """Keeps the latest reading of a source with the monotonic time of its arrival.

    *missing*: never read, or the field is not in the newest reading; *stale*: no reading for `stale_after_s`; *live*:
    else. A live source may still be suspect: it answers, but what it says no longer moves.

    Args:
        stale_after_s: age from which a reading is stale.
        frozen_after: readings in a row without movement from which a source is suspect.
        clock: monotonic time in s.
    """

    def __init__(
        self, stale_after_s: float = 5.0, frozen_after: int = 10, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.stale_after_s, self.frozen_after, self.clock = stale_after_s, frozen_after, clock
        self.latest: Reading | None = None
        self.failure: str | None = None  # why the newest attempt brought no reading
        self.arrived_s: float | None = None
        self.history: deque[Reading] = deque(maxlen=frozen_after + 1)

    def take(self, reading: Reading) -> None:
        """Keep a reading that has just come."""
        if self.latest is not None and started_again(self.latest, reading):
            self.history.clear()
        self.latest, self.failure, self.arrived_s = reading, None, self.clock()
        self.history.append(reading)

    def miss(self, reason: str) -> None:
        """Note that an attempt brought no reading; the latest one only grows older."""
        self.failure = reason

    def age_s(self) -> float | None:
        """Age of the latest reading in s; None where there is none."""
        return None if self.arrived_s is None else self.clock() - self.arrived_s

    def state(self, field: str | None = None) -> State:
        """Whether the source, or one field of it, is missing, stale or live."""
        age_s = self.age_s()
        if age_s is None or self.latest is None or self.latest.is_empty():
            return "missing"
        if field is not None and getattr(self.latest, field) is None:
            return "missing"
        return "stale" if age_s > self.stale_after_s else "live"

    def suspect(self) -> str | None:
        """Why what the source says cannot be believed though it answers; None where it can."""
        if len(self.history) <= self.frozen_after:
            return None
        return idle_counters(self.history) or frozen_gauges(self.history)


def started_again(before: Reading, after: Reading) -> bool:
    """Whether a counter went back, as after a restart of the engine."""
    return any(
        (then := getattr(before, name)) is not None and (now := getattr(after, name)) is not None and now < then
        for name in COUNTERS
    )


def idle_counters(history: deque[Reading]) -> str | None:
    """The reason, where requests are said to run all the time and no counter has moved."""
    busy = all(reading.running for reading in history)
    told = [name for name in COUNTERS if getattr(history[-1], name) is not None]
    if not busy or not told or any(moved(history, name) for name in told):
        return None
    return f"{history[-1].running:g} requests are said to run, but no counter moved in {len(history) - 1} readings"


def frozen_gauges(history: deque[Reading]) -> str | None:
    """The reason, where the KV usage and the queues stay to the digit while the running requests fill blocks."""
    newest = history[-1]
    if not newest.kv_used_fraction or any(moved(history, name) for name in GAUGES):
        return None
    first, last = history[0].generation_tokens, newest.generation_tokens
    block = newest.kv_block_tokens or BLOCK_TOKENS
    if first is None or last is None or last - first <= MOVED_BLOCKS * block * max(1.0, newest.running or 0.0):
        return None
    return f"the KV usage has stayed at {newest.kv_used_fraction:.4g} while {last - first:,.0f} tokens were generated"


def moved(history: deque[Reading], name: str) -> bool:
    """Whether a field changed within the history."""
    return len({getattr(reading, name) for reading in history}) > 1
