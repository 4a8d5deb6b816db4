"""One server's parts, and what happens to a request between its arrival and its tokens."""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from control.adapters.mock import text
from control.adapters.mock.answer import Answer
from control.adapters.mock.contexts import Context, Contexts
from control.adapters.mock.core import MOST_REMEMBERED, Call, Clock, Core, Flow, Load
from control.adapters.mock.faults import Faults
from control.adapters.mock.leases import Leases, fetch
from control.adapters.mock.metrics import Book
from control.adapters.mock.pace import Pace
from control.adapters.mock.request import ApiError, Wanted, answer_text
from control.adapters.mock.settings import MockSettings
from control.adapters.mock.text import Text

#: Words of the 503 that means full, not sick.
FULL = (
    "The server is at capacity: the number of in-flight requests has reached max_num_queued_reqs. Please retry later."
)


@dataclass(frozen=True)
class Plan:
    """What a request will get."""

    call: Call
    context: Context
    text: Text
    finish: str  # its finish_reason


@dataclass
class Mock:
    """A server: its settings, engine and books."""

    settings: MockSettings
    clock: Clock
    core: Core
    book: Book
    leases: Leases
    contexts: Contexts
    faults: Faults
    crash: Callable[[], None]
    chance: random.Random
    address: tuple[str, int] = ("127.0.0.1", 0)
    started: int = field(default_factory=lambda: int(time.time()))
    seen: Counter[str] = field(default_factory=Counter)
    cancelled: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_REMEMBERED))
    in_flight: int = 0
    n_requests: int = 0
    frozen: tuple[bytes, Load] | None = None  # what stale metrics say

    def now(self) -> int:
        """The server's idea of the time, Unix s."""
        return int(time.time() + self.faults.clock_skew_s)

    def set_faults(self, faults: Faults) -> None:
        """Have these go wrong from now on, and nothing else."""
        stale = faults.stale_metrics
        self.frozen = (self.frozen or (self.book.text(), self.core.load())) if stale else None
        if faults.slow_stream != self.faults.slow_stream:
            self.core.slow_down(faults.slow_stream)
        self.faults = faults
        if faults.crash:
            self.crash()

    def load(self) -> Load:
        """The engine's load, as far as it is told."""
        return self.core.load() if self.frozen is None else self.frozen[1]

    async def before(self) -> None:
        """What goes wrong before a request is looked at.

        Raises:
            ApiError: the request is answered with an error.
        """
        faults = self.faults
        if faults.latency_ms > 0.0:
            await asyncio.sleep(faults.latency_ms * 1e-3)
        if faults.hang:
            await asyncio.Event().wait()
        if faults.error_rate > 0.0 and self.chance.random() < faults.error_rate:
            raise ApiError(faults.error_status, "EngineCore encountered an issue.", "InternalServerError")
        limit = self.settings.max_queued
        if faults.full or (limit is not None and self.in_flight > limit):
            self.book.rejected["max_num_queued_reqs"] += 1
            raise ApiError(503, FULL, "ServiceUnavailableError")

    def plan(self, wanted: Wanted, request_id: str) -> Plan:
        """The length and the words of the answer, and what of the prompt is known."""
        context = self.contexts.find(wanted.messages, wanted.static, wanted.session, wanted.salt)
        number = text.digest(context.text, wanted.seed)
        if wanted.tool is None:
            said = text.words(number)
            drawn = max(wanted.min_tokens, text.drawn_length(number, self.settings.mean_output))
            length = wanted.max_tokens if wanted.exact else min(drawn, wanted.max_tokens)
            finish = "stop" if length < wanted.max_tokens else "length"
        else:
            said, n = text.pieces(wanted.tool[1])
            length = min(n, wanted.max_tokens)
            finish = wanted.tool_finish if length == n else "length"
        call = Call(
            id=request_id,
            prompt_tokens=wanted.prompt_tokens,
            output_tokens=length,
            priority=wanted.priority,
            stream=context.stream,
            history_tokens=min(context.history_tokens, wanted.prompt_tokens),
            shared_key=context.shared_key,
            shared_tokens=min(context.shared_tokens, wanted.prompt_tokens),
        )
        return Plan(call, context, said, finish)

    async def received(self, plan: Plan, wanted: Wanted) -> Plan:
        """The plan with the KV of its prompt fetched from a prefiller, where the request names one.

        Raises:
            ApiError: 500 after a while where the prefiller does not have it (any more).
        """
        if not wanted.transfer.get("do_remote_prefill"):
            return plan
        tokens = await fetch(wanted.transfer, self.settings)
        if tokens is None:
            await asyncio.sleep(self.settings.lookup_s)
            self.book.failed_transfers += 1
            raise ApiError(500, "KV transfer failed: the remote blocks were not found.", "InternalServerError")
        await asyncio.sleep(self.core.transfer_s(tokens))
        return Plan(plan.call._replace(external=True), plan.context, plan.text, plan.finish)

    def start(self, plan: Plan, on_tokens: Callable[[], None]) -> Flow:
        """Hand the call to the engine; `on_tokens` is called whenever it has generated something.

        It is the engine's own callback, without a layer between, for it is called for every token of every stream.
        When the flow has ended, it must tell `finish`.
        """
        flow = self.core.submit(plan.call, on_tokens)
        self.book.active.add(flow)
        return flow

    def finish(self, flow: Flow, plan: Plan) -> None:
        """`flow` has generated all of its tokens."""
        self.book.close(flow, plan.finish)
        self.seen["completed"] += 1
        self.contexts.note(plan.context, answer_text("assistant", plan.text(0, flow.tokens)))

    def stop(self, flow: Flow) -> None:
        """The client has left: whatever is not done is given up."""
        if flow.ended:
            return
        self.core.cancel(flow)
        self.book.close(flow, None)
        self.seen["cancelled"] += 1
        self.cancelled.append(flow.call.id)

    def answer(self, chat: bool, plan: Plan, wanted: Wanted) -> Answer:
        """How the answer is written."""
        id = f"{'chatcmpl' if chat else 'cmpl'}-{plan.call.id}"
        tool = wanted.tool[0] if wanted.tool is not None else None
        return Answer(chat, id, wanted.model, self.now(), plan.text, tool)

    def stats(self) -> dict[str, Any]:
        """What the server has seen, for tests to ask."""
        load = self.core.load()
        return {
            "role": self.settings.role,
            "requests": self.n_requests,
            "completed": self.seen["completed"],
            "cancelled": self.seen["cancelled"],
            "cancelled_ids": list(self.cancelled),
            "refused": self.seen["refused"],
            "in_flight": self.in_flight,
            "running": load.running,
            "waiting": load.waiting,
            "kv_used_tokens": load.used_tokens,
            "kv_capacity_tokens": load.capacity_tokens,
            "leases": len(self.leases.kept),
            "admitted": [{"id": id, "priority": priority} for id, priority in self.core.admissions.latest],
        }


def new_core(settings: MockSettings, clock: Clock) -> Core:
    """The engine that the settings ask for."""
    if settings.gpu is None:
        return Pace(settings, clock)
    from control.adapters.mock.twin import Twin  # compiled code is loaded only where it is used

    return Twin(settings, clock)


def new_mock(settings: MockSettings, clock: Clock, crash: Callable[[], None]) -> Mock:
    """A server without its sockets."""
    core = new_core(settings, clock)
    book = Book(settings, core)
    leases = Leases(settings, clock, core, book)
    contexts = Contexts(settings.sizes[0])
    return Mock(settings, clock, core, book, leases, contexts, Faults(), crash, random.Random(settings.seed))


MOCK: web.AppKey[Mock] = web.AppKey("mock", Mock)
