"""The gateway: OpenAI-compatible HTTP in front of the fleet, on an event loop of its own.

It owns the connections; which call goes where, and when, the door tells it.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import aiohttp
from aiohttp import web

from control.config import GatewaySettings
from control.engine.door import Door
from control.engine.tickets import Order
from control.gateway.about import About
from control.gateway.admission import read_request, turn_away, unknown
from control.gateway.call import Broken, Call, LegFailedError
from control.gateway.durations import Durations
from control.gateway.handover import abandon_kv
from control.gateway.identity import identity_of, usable
from control.gateway.local import Local
from control.gateway.openai import BadRequestError
from control.gateway.relay import Relay
from control.gateway.replies import problem
from control.gateway.totals import Totals
from control.gateway.upstream import Fault, Health, Upstream
from control.gateway.watch import Watcher
from control.policy.codes import ABORTED, CALL_ENDED, CALL_STATES, CAUSES, DOWN

log = logging.getLogger("headway.gateway")

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
SWEEP_S = 0.05
PARTS = 20  # of the open calls whose progress is told at each sweep
LEAVE_S = 3.0  # calls that are broken off at the end are given so long
CONNECT_S = 5.0  # a server that takes no connection for so long is not there
KEPT_ALIVE_S = 4.0  # an idle connection; vLLM closes it after 5 s, and a request must not meet that
PASSED_ON = ("authorization", "traceparent", "tracestate", "x-session-id", "baggage")
CONTENT = {"/v1/chat/completions": "messages", "/v1/completions": "prompt"}


class Gateway:
    """Requests in, servers behind; see the module's text."""

    def __init__(self, door: Door, settings: GatewaySettings) -> None:
        self.door, self.settings = door, settings
        self.upstreams = {
            i: Upstream(i, spec) for i, spec in enumerate(door.live.fleet.instances) if spec.url is not None
        }
        self.calls: dict[int, Call] = {}
        self.relay, self.local, self.watcher, about = Relay(self), Local(self), Watcher(self), About(self)
        self.totals, self.durations = Totals(), Durations()
        self.bytes_a_token = 4.0  # of a request's body, learned from usage
        self.tasks: set[asyncio.Task[Any]] = set()
        self.stopping = False
        self.part = 0
        self.run_id = uuid.uuid4().hex[:8]
        self.routes: dict[tuple[str, str], Handler] = {
            ("POST", "/v1/chat/completions"): self.complete,
            ("POST", "/v1/completions"): self.complete,
            ("GET", "/v1/models"): about.models,
            ("GET", "/health"): about.health,
            ("GET", "/metrics"): about.metrics,
        }

    # ---- life

    async def start(self) -> None:
        """Open connections and begin to watch the servers. The loop that runs this runs everything."""
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_ALIVE_S),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),  # no client may get another one's cookies
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept"),
            read_bufsize=2**18,
        )
        loop = asyncio.get_running_loop()
        self.door.on_orders = lambda orders: (loop.call_soon_threadsafe(self.deliver, orders), None)[1]
        self.keep(self.sweep())
        self.watcher.start()

    async def stop(self) -> None:
        """Let the calls under way end, for as long as is allowed, then break off what is left."""
        self.stopping = True
        until_s = time.monotonic() + self.settings.drain_s
        while self.calls and time.monotonic() < until_s:
            await asyncio.sleep(0.05)
        for call in list(self.calls.values()):
            call.break_off(Broken.STOPPING)
        until_s = time.monotonic() + LEAVE_S
        while self.calls and time.monotonic() < until_s:
            await asyncio.sleep(0.01)
        self.door.on_orders = lambda orders: None
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.watcher.close()
        await self.session.close()

    def keep(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something beside everything else."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.drop)

    def drop(self, task: asyncio.Task[Any]) -> None:
        """Something that ran beside everything else has ended; it should not have failed."""
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a task of the gateway failed", exc_info=task.exception())

    # ---- requests

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Any request."""
        handler = self.routes.get((request.method, request.path))
        try:
            return unknown(request, list(self.routes)) if handler is None else await handler(request)
        except (web.HTTPException, ConnectionError):
            raise
        except Exception:
            log.exception("%s %s failed in the gateway", request.method, request.path)
            return problem(500, "the gateway failed; its log tells more", "server_error")

    async def complete(self, request: web.BaseRequest) -> web.StreamResponse:
        """A chat or text completion."""
        self.totals.requests += 1
        try:
            ask = await read_request(request, CONTENT[request.path], self.settings.most_body_mb)
            who = identity_of(request.headers, ask.body)
        except BadRequestError as error:
            return problem(error.status, str(error), "invalid_request_error")
        turned_away = turn_away(self, ask)
        if turned_away is not None:
            return turned_away
        self.totals.by_match[who.matched] = self.totals.by_match.get(who.matched, 0) + 1
        request_id = usable(request.headers.get("x-request-id")) or f"hw-{self.run_id}-{self.totals.requests}"
        return await self.relay.serve(Call(request, ask, who, request_id))

    @property
    def model_names(self) -> set[str]:
        """Names a request may give for its model."""
        names = {one.served_model for one in self.upstreams.values() if one.served_model}
        return names | {spec.model for spec in self.door.live.fleet.instances}

    @property
    def longest(self) -> int:
        """Longest context that any server takes, tokens."""
        return int(max(self.door.live.world.instances["max_model_len"].tolist()))

    # ---- calls

    def enter(self, call: Call) -> None:
        """Let a call in at the door; it is charged from here on."""
        tokens = max(1, int(len(call.ask.raw) / self.bytes_a_token))
        longest = self.longest
        if longest <= tokens < 2 * longest:
            tokens = longest - 1  # an estimate must not refuse what the server would take
        call.begun_s = time.monotonic()
        call.planned = self.local.length_of(call) if self.door.simulated else 1
        call.uid, orders = self.door.enter(call.who, tokens, call.planned)
        call.key = call.uid
        self.calls[call.key] = call
        self.deliver(orders)

    def deliver(self, orders: list[Order]) -> None:
        """Hand orders to the calls they are about."""
        for order in orders:
            call = self.calls.get(order.call)
            if call is None:
                continue
            if order.kind == ABORTED:
                call.break_off(Broken.GIVEN_UP)
                continue
            if order.kind == CALL_ENDED:
                call.uid = 0  # the door knows it no more
            call.take(order)

    def finish(self, call: Call) -> None:
        """A call is over: the one place where what was charged is released."""
        self.calls.pop(call.key, None)
        usage, generated = call.usage, call.usage.generated
        if generated < 0 and call.stream is not None:
            generated = call.stream.events
        if call.uid:
            counts = usage.input_tokens, generated, usage.cached
            self.deliver(self.door.ends(call.uid, call.state, call.cause, *counts, call.since_first_s()))
        name = CALL_STATES[call.state]
        self.totals.by_state[name] = self.totals.by_state.get(name, 0) + 1
        abandon_kv(self, call)
        first_s = call.first_s - call.begun_s if call.first_s else None
        took_s = time.monotonic() - call.begun_s
        self.durations.note(call.request.path, call.ask.model[:64], CAUSES[call.cause], took_s, first_s)
        if usage.input_tokens > 0:
            ratio = len(call.ask.raw) / usage.input_tokens
            self.bytes_a_token += 0.05 * (min(100.0, ratio) - self.bytes_a_token)
        self.watcher.note(call, generated)

    async def post(self, call: Call, upstream: Upstream, body: bytes) -> aiohttp.ClientResponse:
        """Send a body to a server; the response's head."""
        path, headers = call.request.path, self.headers(call, upstream)
        return await self.session.post(upstream.url_of(path), data=body, headers=headers, allow_redirects=False)

    def headers(self, call: Call, upstream: Upstream) -> dict[str, str]:
        """Headers of a request to a server."""
        headers = {
            "content-type": "application/json",
            "accept-encoding": "identity",  # the stream is read on its way
            "x-request-id": call.request_id,
        }
        for name in PASSED_ON:
            value = usable(call.request.headers.get(name), 8192)
            if value:
                headers[name] = value
        if upstream.has_priority:
            headers["x-vllm-priority"] = str(self.priority(call))
        if self.watcher.wants_load(upstream):
            headers["endpoint-load-metrics-format"] = "JSON"
        return headers

    def priority(self, call: Call) -> int:
        """The server's own priority of a call: its deadline, in ms of the world; lower goes first."""
        c = self.door.rows.get(call.uid)
        if c is None:
            return 0
        row = self.door.live.world.calls[c]
        return int(1e3 * min(1e6, float(row["ready_s"] + row["budget_s"])))

    # ---- what is noticed

    def note_fault(self, upstream: Upstream, failure: LegFailedError) -> None:
        """A server failed a call; the breaker opens after some in a row."""
        if failure.fault is not Fault.CLIENT:
            self.totals.faults += 1
        if upstream.failed(failure.fault, str(failure)):
            self.suspend(upstream)

    def suspend(self, upstream: Upstream) -> None:
        """A server is taken to be dead until it answers a probe."""
        upstream.health = Health.SICK
        log.warning("%s is taken out: %s", upstream.spec.name, upstream.reason)
        self.door.notes.append(("server_lost", f"{upstream.spec.name} taken out: {upstream.reason}"))
        self.deliver(self.door.suspend(upstream.row))

    def suspend_unseen(self, upstream: Upstream) -> None:
        """A server gets no calls before it has been seen ready."""
        self.deliver(self.door.suspend(upstream.row))

    def resume(self, upstream: Upstream) -> None:
        """A server has answered a probe."""
        upstream.health, upstream.failures, upstream.unwell, upstream.reason = Health.READY, 0, 0, ""
        log.info("%s is ready", upstream.spec.name)
        self.door.notes.append(("server_ready", f"{upstream.spec.name} is ready"))
        self.deliver(self.door.resume(upstream.row))

    def note_load(self, upstream: Upstream, headers: Mapping[str, str]) -> None:
        """A response may carry what the server says of its load."""
        told = headers.get("endpoint-load-metrics")
        if told is not None:
            self.watcher.take_load(upstream, told)

    async def sweep(self) -> None:
        """Every SWEEP_S: break off what has stalled, tell the progress of some of the streams."""
        while True:
            await asyncio.sleep(SWEEP_S)
            try:
                self.look_around(time.monotonic())
            except Exception:
                log.exception("a sweep failed")

    def look_around(self, now_s: float) -> None:
        """One sweep."""
        self.part = (self.part + 1) % PARTS
        for key, call in list(self.calls.items()):
            if call.writing_s and now_s - call.writing_s > self.settings.stall_s:
                call.break_off(Broken.UNREAD)
            elif call.last_s and now_s - call.last_s > self.patience_s(call):
                call.last_s = 0.0
                call.break_off(Broken.STALLED)
            elif key % PARTS == self.part and call.stream is not None and call.stream.events:
                self.door.first_token(call.uid, call.stream.events, call.since_first_s())
        rows = self.door.live.world.instances
        for upstream in self.upstreams.values():
            if upstream.health is not Health.READY and rows[upstream.row]["state"] != DOWN:
                self.deliver(self.door.suspend(upstream.row))  # an operator's word does not make it well
        if self.part == 0:
            self.deliver(self.door.close_idle(self.settings.idle_s))

    def patience_s(self, call: Call) -> float:
        """How long a server may be silent about a call, s."""
        return self.settings.stall_s if call.first_s else self.settings.first_byte_s
