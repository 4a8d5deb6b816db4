"""What a timing core is: calls go in, tokens come out at their times. See pace.py and twin.py."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

MOST_REMEMBERED = 10_000  # admissions kept for whoever asks
SHARED = 64  # static prompts that an engine tells apart


class Call(NamedTuple):
    """One request as the engine sees it."""

    id: str
    prompt_tokens: int
    output_tokens: int  # it will generate so many
    priority: int = 0  # lower goes first
    stream: int = -1  # conversation whose context it continues, -1: none
    history_tokens: int = 0  # leading prompt tokens that stand in that context
    shared_key: int = -1  # static prefix that other calls begin with too, -1: none
    shared_tokens: int = 0
    external: bool = False  # the KV of its prompt comes from another server


def nothing() -> None:
    """What is called when nobody listens."""


@dataclass(eq=False, slots=True)
class Flow:
    """A call on its way. Times are of the core's clock, s; -1: not yet."""

    call: Call
    arrived_s: float
    on_tokens: Callable[[], None] = nothing  # called whenever `tokens` grew, the last time with `ended` set
    tokens: int = 0  # generated so far
    cached_tokens: int = 0  # prompt tokens found in the prefix cache
    started_s: float = -1.0
    first_s: float = -1.0
    finished_s: float = -1.0
    ended: bool = False  # all tokens are out, or the call was cancelled or refused
    step_s: float = 0.0  # of fixed times: s from token to token
    wait_s: float = 0.0  # of fixed times: s from a seat to the first token


@dataclass(frozen=True, slots=True)
class Load:
    """An engine at a moment."""

    running: int
    waiting: int
    used_tokens: int  # KV of running calls and of what is held for others
    capacity_tokens: int
    preemptions: int = 0

    @property
    def kv_fraction(self) -> float:
        """Share of the KV cache in use, 0 to 1."""
        return min(1.0, self.used_tokens / self.capacity_tokens)


class Cancellable(Protocol):
    """Something that was scheduled."""

    def cancel(self) -> None:
        """Have it not happen."""


class Clock(Protocol):
    """The time, and a call at a time."""

    def now(self) -> float:
        """Time, s."""

    def call_at(self, at_s: float, what: Callable[[], None]) -> Cancellable:
        """Have `what` called at `at_s` or as soon after as can be, never before."""


class WallClock:
    """The machine's clock and the running event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()

    def now(self) -> float:
        """Monotonic time, s."""
        return time.monotonic()

    def call_at(self, at_s: float, what: Callable[[], None]) -> Cancellable:
        """As Clock.call_at. Loops count whole milliseconds, and some round down: the wait is rounded up."""
        left_s = at_s - time.monotonic()
        return self.loop.call_later(math.ceil(left_s * 1e3) / 1e3, what) if left_s > 0 else self.loop.call_soon(what)


@dataclass(eq=False)
class Admissions:
    """Who was given a seat, in order: (id, priority) of the latest calls."""

    latest: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=MOST_REMEMBERED))

    def note(self, call: Call) -> None:
        """`call` was given a seat."""
        self.latest.append((call.id, call.priority))


class Core(Protocol):
    """When tokens come."""

    admissions: Admissions

    def submit(self, call: Call, on_tokens: Callable[[], None]) -> Flow:
        """Take in a call."""

    def cancel(self, flow: Flow) -> None:
        """Give up a call; nothing happens where it has ended."""

    def load(self) -> Load:
        """What runs and waits now."""

    def transfer_s(self, tokens: int) -> float:
        """Wall time that moving the KV of `tokens` from another server takes, s."""

    def hold(self, tokens: int) -> int:
        """Keep KV of `tokens` from use, as far as there is; what was kept, tokens."""

    def release(self, tokens: int) -> None:
        """End the keeping of so many tokens that `hold` told of."""

    def slow_down(self, factor: float) -> None:
        """All times from now on are `factor` times as long as they should be."""
