"""Fixed times: so long to the first token, so long from token to token, so many seats.

Made to be cheap, for it shares a core with what is measured: all streams hang in one wheel of millisecond slots that
one timer turns.
"""

import heapq
import math
from collections.abc import Callable

from control.adapters.mock.core import Admissions, Call, Cancellable, Clock, Flow, Load
from control.adapters.mock.settings import MockSettings

SLOTS_PER_S = 1000.0
JUST = 1e-9  # s: how much sums of times may be off


class Pace:
    """A core of fixed times."""

    def __init__(self, settings: MockSettings, clock: Clock) -> None:
        self.settings, self.clock = settings, clock
        self.admissions = Admissions()
        self.capacity, _ = settings.sizes
        self.factor = 1.0
        self.running: set[Flow] = set()
        self.queue: list[tuple[int, int, Flow]] = []
        self.n_waiting, self.n_seen = 0, 0
        self.reserved, self.held = 0, 0
        self.wheel: dict[int, list[Flow]] = {}
        self.slots: list[int] = []
        self.timer: Cancellable | None = None
        self.timer_slot = 0

    def submit(self, call: Call, on_tokens: Callable[[], None]) -> Flow:
        """As Core.submit."""
        flow = Flow(call, self.clock.now(), on_tokens)
        flow.step_s = self.settings.tpot_ms * 1e-3 * self.factor / self.settings.speed
        flow.wait_s = self.settings.ttft_ms * 1e-3 * self.factor / self.settings.speed
        if call.external:
            flow.wait_s = flow.step_s
        ranked = self.settings.scheduling_policy == "priority"
        self.n_seen += 1
        self.n_waiting += 1
        heapq.heappush(self.queue, (call.priority if ranked else 0, self.n_seen, flow))
        self.admit(flow.arrived_s)
        return flow

    def admit(self, now_s: float) -> None:
        """Give seats to waiting calls, in order, while there are any and their KV fits."""
        while self.queue and len(self.running) < self.settings.seats:
            flow = self.queue[0][2]
            if not flow.ended:
                if self.running and self.reserved + self.held + whole_context(flow.call) > self.capacity:
                    return
                self.start(flow, now_s)
            heapq.heappop(self.queue)

    def start(self, flow: Flow, now_s: float) -> None:
        """`flow` takes a seat."""
        call, size = flow.call, self.settings.block_size
        self.n_waiting -= 1
        self.running.add(flow)
        self.reserved += whole_context(call)
        flow.started_s = now_s
        if not call.external:
            most = max(call.history_tokens, call.shared_tokens)
            flow.cached_tokens = min(most, call.prompt_tokens - 1) // size * size
        self.admissions.note(call)
        self.put(flow, now_s + flow.wait_s)

    def put(self, flow: Flow, due_s: float) -> None:
        """Have `flow` looked at in the slot that begins at or after `due_s`."""
        slot = math.ceil((due_s - JUST) * SLOTS_PER_S)
        there = self.wheel.get(slot)
        if there is not None:
            there.append(flow)
            return
        self.wheel[slot] = [flow]
        heapq.heappush(self.slots, slot)
        if self.timer is None or slot < self.timer_slot:
            self.arm()

    def arm(self) -> None:
        """Set the timer to the first slot with anything in it."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None
        if self.slots:
            self.timer_slot = self.slots[0]
            self.timer = self.clock.call_at(self.timer_slot / SLOTS_PER_S, self.turn)

    def turn(self) -> None:
        """Have all streams in the slots up to now generate a token."""
        now_s = self.clock.now()
        latest = int((now_s + JUST) * SLOTS_PER_S)
        self.timer, self.timer_slot, due = None, latest, []
        while self.slots and self.slots[0] <= latest:
            due.append(self.wheel.pop(heapq.heappop(self.slots)))
        for flows in due:
            for flow in flows:
                if not flow.ended:
                    self.generate(flow, now_s)
        self.arm()

    def generate(self, flow: Flow, now_s: float) -> None:
        """`flow` generates its next token: a late one gets a chunk of its own too, so the work of a stream is fixed."""
        first_due_s = flow.started_s + flow.wait_s
        n = flow.tokens + 1 if flow.step_s > 0.0 else flow.call.output_tokens
        if flow.tokens == 0:
            flow.first_s = now_s
        flow.tokens = n
        if n == flow.call.output_tokens:
            self.end(flow, now_s)
        else:
            self.put(flow, first_due_s + n * flow.step_s)
        flow.on_tokens()

    def end(self, flow: Flow, now_s: float) -> None:
        """`flow` leaves its seat, if it has one, to the next."""
        flow.ended, flow.finished_s = True, now_s
        if flow in self.running:
            self.running.discard(flow)
            self.reserved -= whole_context(flow.call)
        else:
            self.n_waiting -= 1
        self.admit(now_s)

    def cancel(self, flow: Flow) -> None:
        """As Core.cancel."""
        if not flow.ended:
            self.end(flow, self.clock.now())

    def load(self) -> Load:
        """As Core.load."""
        size = self.settings.block_size
        used = sum(-(-(flow.call.prompt_tokens + flow.tokens) // size) * size for flow in self.running)
        return Load(len(self.running), self.n_waiting, used + self.held, self.capacity)

    def transfer_s(self, tokens: int) -> float:
        """As Core.transfer_s; the number of tokens does not matter here."""
        return self.settings.transfer_ms * 1e-3 * self.factor / self.settings.speed

    def hold(self, tokens: int) -> int:
        """As Core.hold."""
        self.held += tokens
        return tokens

    def release(self, tokens: int) -> None:
        """As Core.release."""
        self.held -= tokens
        self.admit(self.clock.now())

    def slow_down(self, factor: float) -> None:
        """As Core.slow_down, for calls that come from now on."""
        self.factor = factor


def whole_context(call: Call) -> int:
    """Tokens of KV that a call holds at its end."""
    return call.prompt_tokens + call.output_tokens
