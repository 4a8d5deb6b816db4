"""The gateway: OpenAI-compatible HTTP in front of the fleet, on an event loop of its own.

It owns the connections; which call goes where, and when, the door tells it.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from control.config import GatewaySettings
from control.engine.door import Door, Order
from control.gateway.identity import identity_of
from control.gateway.local import Local
from control.gateway.openai import Ask, BadRequestError, read_ask
from control.gateway.relay import PASSED_ON, Call, LegFailedError, Relay, problem
from control.gateway.text import metrics_text
from control.gateway.upstream import Fault, Health, Upstream
from control.gateway.watch import Watcher
from control.policy.codes import ABORTED, CALL_ENDED, FAILED, UP

log = logging.getLogger("headway.gateway")

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
SWEEP_S = 0.05
PARTS = 20  # of the open calls whose progress is told at each sweep
CONTENT = {"/v1/chat/completions": "messages", "/v1/completions": "prompt"}


@dataclass
class Totals:
    """Counted since the start."""

    requests: int = 0
    by_state: dict[str, int] = field(default_factory=dict)
    by_match: dict[str, int] = field(default_factory=dict)
    turned_away: int = 0
    reroutes: int = 0
    hand_overs: int = 0
    hand_over_s: float = 0.0  # from the prefill leg's answer to the decode leg's first byte, sum
    late_hand_overs: int = 0  # longer than the lease


class Gateway:
    """Requests in, servers behind; see the module's text."""

    def __init__(self, door: Door, settings: GatewaySettings) -> None:
        self.door, self.settings = door, settings
        self.upstreams = {
            i: Upstream(i, spec) for i, spec in enumerate(door.live.fleet.instances) if spec.url is not None
        }
        self.calls: dict[int, Call] = {}
        self.relay, self.local, self.watcher = Relay(self), Local(self), Watcher(self)
        self.totals = Totals()
        self.bytes_a_token = 4.0  # of a request's body, learned from usage
        self.tasks: set[asyncio.Task[Any]] = set()
        self.stopping = False
        self.part = 0
        self.run_id = uuid.uuid4().hex[:8]
        self.routes: dict[tuple[str, str], Handler] = {
            ("POST", "/v1/chat/completions"): self.complete,
            ("POST", "/v1/completions"): self.complete,
            ("GET", "/v1/models"): self.models,
            ("GET", "/health"): self.health,
            ("GET", "/metrics"): self.metrics,
        }

    # ---- life

    async def start(self) -> None:
        """Open connections and begin to watch the servers. The loop that runs this runs everything."""
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0)
        self.session = aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False, read_bufsize=2**18
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
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.session.close()

    def keep(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something beside everything else."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # ---- requests

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Any request."""
        handler = self.routes.get((request.method, request.path))
        if handler is None:
            known = [method for method, path in self.routes if path == request.path]
            if known:
                return problem(405, f"{request.method} {request.path}: {known[0]} is accepted", "invalid_request_error")
            paths = ", ".join(path for _, path in self.routes)
            return problem(404, f"{request.path} is not served; accepted are {paths}", "invalid_request_error")
        return await handler(request)

    async def complete(self, request: web.BaseRequest) -> web.StreamResponse:
        """A chat or text completion."""
        self.totals.requests += 1
        try:
            ask = read_ask(await request.read(), CONTENT[request.path])
        except BadRequestError as error:
            return problem(400, str(error), "invalid_request_error")
        except web.HTTPRequestEntityTooLarge:
            most = self.settings.most_body_mb
            return problem(413, f"the body is larger than {most} MB", "invalid_request_error")
        turned_away = self.turn_away(ask)
        if turned_away is not None:
            return turned_away
        who = identity_of(request.headers, ask.body)
        self.totals.by_match[who.matched] = self.totals.by_match.get(who.matched, 0) + 1
        request_id = request.headers.get("x-request-id") or f"hw-{self.run_id}-{self.totals.requests}"
        return await self.relay.serve(Call(request, ask, who, request_id))

    def turn_away(self, ask: Ask) -> web.Response | None:
        """The response to a request that is not let in; None: it is."""
        if ask.model and ask.model not in self.model_names:
            known = ", ".join(sorted(self.model_names)) or "none yet"
            message = f"the model {ask.model!r} does not exist; served are: {known}"
            return problem(404, message, "NotFoundError")
        if self.stopping:
            return problem(503, "the gateway is shutting down", "service_unavailable", retry_after_s=5)
        rows = self.door.live.world.instances
        waiting = sum(rows["n_waiting"].tolist()) + int(self.door.live.world.clock[0]["n_held"])
        if waiting < self.settings.most_waiting and UP in rows["state"].tolist():  # a few rows: lists beat NumPy
            return None
        self.totals.turned_away += 1
        if waiting >= self.settings.most_waiting:
            up = max(1, int((rows["state"] == UP).sum()))
            wait_s = min(60, max(1, int(float(rows["queued_work_s"].sum()) / up / 10)))
            reason = f"{waiting} calls wait already, at most {self.settings.most_waiting} may"
            return problem(429, reason, "overloaded", retry_after_s=wait_s)
        return problem(503, "no server of the fleet is up", "service_unavailable", retry_after_s=5)

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
        self.calls[call.uid] = call
        self.deliver(orders)

    def deliver(self, orders: list[Order]) -> None:
        """Hand orders to the calls they are about."""
        for order in orders:
            call = self.calls.get(order.call)
            if call is None:
                continue
            if order.kind == ABORTED:
                call.given_up = True
                if call.task is not None:
                    call.task.cancel()
                continue
            if order.kind == CALL_ENDED:
                call.uid = 0  # the door knows it no more
            call.take(order)

    def finish(self, call: Call) -> None:
        """A call is over: the one place where what was charged is released."""
        uid = call.uid
        for key in [uid] if uid else [key for key, one in self.calls.items() if one is call]:
            self.calls.pop(key, None)
        name = STATE_NAMES.get(call.state, "failed")
        self.totals.by_state[name] = self.totals.by_state.get(name, 0) + 1
        if call.kv is not None and call.instance < 0:
            self.relay.abandon_kv(call)
        if not uid:
            return
        if call.instance < 0:
            self.deliver(self.door.give_up(uid))
            return
        usage, generated = call.usage, call.usage.generated
        if generated < 0 and call.stream is not None:
            generated = call.stream.events
        if usage.input_tokens > 0:
            ratio = len(call.ask.raw) / usage.input_tokens
            self.bytes_a_token += 0.05 * (min(100.0, ratio) - self.bytes_a_token)
        self.watcher.compare(call, generated)
        self.deliver(self.door.ends(uid, call.state, call.cause, usage.input_tokens, generated, usage.cached))

    def headers(self, call: Call, upstream: Upstream) -> dict[str, str]:
        """Headers of a request to a server."""
        headers = {"content-type": "application/json", "x-request-id": call.request_id}
        given = call.request.headers
        for name in PASSED_ON:
            if name in given:
                headers[name] = given[name]
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
            self.totals.reroutes += 1
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
        upstream.health, upstream.failures, upstream.reason = Health.READY, 0, ""
        log.info("%s is ready", upstream.spec.name)
        self.door.notes.append(("server_ready", f"{upstream.spec.name} is ready"))
        self.deliver(self.door.resume(upstream.row))

    def note_hand_over(self, call: Call) -> None:
        """The decode leg has begun to answer: the prefiller's KV was fetched, in time or not."""
        taken_s = time.monotonic() - call.kv_at_s
        self.totals.hand_overs += 1
        self.totals.hand_over_s += taken_s
        if taken_s > self.settings.lease_s:
            self.totals.late_hand_overs += 1
            told = f"KV was fetched {taken_s:.1f} s after its prefill, past its lease"
            self.door.notes.append(("late_hand_over", told))

    def note_load(self, upstream: Upstream, headers: Mapping[str, str]) -> None:
        """A response may carry what the server says of its load."""
        told = headers.get("endpoint-load-metrics")
        if told is not None:
            self.watcher.take_load(upstream, told)

    async def sweep(self) -> None:
        """Every SWEEP_S: break off what has stalled, tell the progress of some of the streams."""
        while True:
            await asyncio.sleep(SWEEP_S)
            now_s = time.monotonic()
            self.part = (self.part + 1) % PARTS
            for uid, call in list(self.calls.items()):
                if call.last_s and now_s - call.last_s > self.patience_s(call) and call.task is not None:
                    call.stalled, call.last_s = True, 0.0
                    call.task.cancel()
                elif uid % PARTS == self.part and call.stream is not None and call.stream.events:
                    self.door.first_token(uid, call.stream.events)
            if self.part == 0:
                self.deliver(self.door.close_idle(self.settings.idle_s))

    def patience_s(self, call: Call) -> float:
        """How long a server may be silent about a call, s."""
        return self.settings.stall_s if call.first_s else self.settings.first_byte_s

    # ---- the rest of the wire

    async def models(self, request: web.BaseRequest) -> web.Response:
        """Models that may be asked for."""
        rows = [
            {"id": name, "object": "model", "owned_by": "headway", "max_model_len": self.longest}
            for name in sorted(self.model_names)
        ]
        return answer({"object": "list", "data": rows})

    async def health(self, request: web.BaseRequest) -> web.Response:
        """200 while any server is up."""
        rows = self.door.live.world.instances
        up = int((rows["state"] == UP).sum())
        return answer({"status": "ok" if up else "no server is up", "up": up, "of": len(rows)}, 200 if up else 503)

    async def metrics(self, request: web.BaseRequest) -> web.Response:
        """Our own metrics, as a Prometheus text."""
        return web.Response(
            body=metrics_text(self), headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"}
        )


STATE_NAMES = {4: "completed", 5: "refused", 6: "cancelled", FAILED: "failed"}


def answer(body: Any, status: int = 200) -> web.Response:
    """A JSON response."""
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")
