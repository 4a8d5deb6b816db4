"""The endpoints of vLLM's server, and a few of our own under /mock."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from control.adapters.mock import faults as faults_of
from control.adapters.mock.answer import usage
from control.adapters.mock.faults import Faults
from control.adapters.mock.leases import TAKE
from control.adapters.mock.metrics import load_header
from control.adapters.mock.request import ApiError, Wanted, read
from control.adapters.mock.state import MOCK, Mock, Plan
from control.adapters.mock.stream import FaultyStream, Stream
from control.errors import SettingError

VERSION = "0.33.0"  # of vLLM, whose wire this is
MOST_BYTES = 64 * 2**20
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def app_of(mock: Mock) -> web.Application:
    """The web application of a server."""
    app = web.Application(client_max_size=MOST_BYTES)
    app[MOCK] = mock
    app.router.add_post("/v1/chat/completions", chat_completions)
    app.router.add_post("/v1/completions", completions)
    app.router.add_get("/v1/models", models)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/health", health)
    app.router.add_get("/version", version)
    app.router.add_get("/load", server_load)
    app.router.add_get("/is_sleeping", is_sleeping)
    app.router.add_route("*", "/ping", health)
    app.router.add_route("*", "/mock/stats", stats)
    app.router.add_get("/mock/faults", get_faults)
    app.router.add_post("/mock/faults", set_faults)
    app.router.add_delete("/mock/faults", clear_faults)
    app.router.add_post(TAKE, take_lease)
    return app


async def chat_completions(request: web.Request) -> web.StreamResponse:
    """POST /v1/chat/completions."""
    return await complete(request, True)


async def completions(request: web.Request) -> web.StreamResponse:
    """POST /v1/completions."""
    return await complete(request, False)


async def complete(request: web.Request, chat: bool) -> web.StreamResponse:
    """A request from arrival to goodbye; what cannot be served is told in OpenAI's shape."""
    mock = request.app[MOCK]
    mock.n_requests += 1
    mock.in_flight += 1
    request_id = request.headers.get("X-Request-Id") or uuid.uuid4().hex
    headers = {"X-Request-Id": request_id}
    try:
        if mock.faults is not HEALTHY or mock.settings.max_queued is not None:
            await mock.before()
        wanted = read(await request.read(), request.headers, chat, mock.settings)
        plan = await mock.received(mock.plan(wanted, request_id), wanted)
        if (form := request.headers.get("endpoint-load-metrics-format")) is not None:
            told = load_header(mock.load(), form)
            headers |= {} if told is None else {"endpoint-load-metrics": told}
        serve = streamed if wanted.stream else whole
        return await serve(request, mock, wanted, plan, chat, headers)
    except ApiError as error:
        mock.seen["refused"] += 1
        return web.Response(status=error.status, body=error.body, content_type="application/json", headers=headers)
    finally:
        mock.in_flight -= 1


async def streamed(
    request: web.Request, mock: Mock, wanted: Wanted, plan: Plan, chat: bool, headers: dict[str, str]
) -> web.StreamResponse:
    """Answer token by token."""
    answer = mock.answer(chat, plan, wanted)
    if mock.faults.touch_streams:
        stream: Stream = FaultyStream(request, answer, plan.finish, wanted.include_usage, mock.faults)
    else:
        stream = Stream(request, answer, plan.finish, wanted.include_usage)
    stream.at_end = lambda flow: mock.finish(flow, plan)
    flow = stream.flow = mock.start(plan, stream.on_tokens)
    try:
        return await stream.run(headers)
    finally:
        mock.stop(flow)


async def whole(
    request: web.Request, mock: Mock, wanted: Wanted, plan: Plan, chat: bool, headers: dict[str, str]
) -> web.StreamResponse:
    """Answer in one piece, with the way to the KV where a decoder will go on."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_tokens() -> None:
        if flow.ended:
            mock.finish(flow, plan)
            if not over.done():
                over.set_result(None)

    flow = mock.start(plan, on_tokens)
    try:
        await over
    finally:
        mock.stop(flow)
    transfer = None
    if wanted.transfer.get("do_remote_decode"):
        transfer = mock.leases.grant(plan.call.id, wanted.prompt_tokens, mock.address)
    counts = usage(wanted.prompt_tokens, flow.tokens, flow.cached_tokens)
    body = mock.answer(chat, plan, wanted).whole(flow.tokens, plan.finish, counts, transfer)
    return web.Response(body=body, content_type="application/json", headers=headers)


def as_json(value: Any, status: int = 200) -> web.Response:
    """A JSON response."""
    return web.Response(status=status, body=orjson.dumps(value), content_type="application/json")


async def models(request: web.Request) -> web.Response:
    """GET /v1/models."""
    mock = request.app[MOCK]
    card = {"object": "model", "created": mock.started, "owned_by": "vllm", "parent": None}
    card |= {"root": mock.settings.served[0], "max_model_len": mock.settings.sizes[1]}
    return as_json({"object": "list", "data": [{"id": name, **card} for name in mock.settings.served]})


async def metrics(request: web.Request) -> web.Response:
    """GET /metrics."""
    mock = request.app[MOCK]
    if mock.faults.no_metrics:
        raise web.HTTPNotFound
    text = mock.book.text() if mock.frozen is None else mock.frozen[0]
    return web.Response(body=text, headers={"Content-Type": "text/plain; version=1.0.0; charset=utf-8"})


async def health(request: web.Request) -> web.Response:
    """GET /health and /ping: 200, or 503 where the engine is dead."""
    return web.Response(status=503 if request.app[MOCK].faults.unhealthy else 200)


async def version(request: web.Request) -> web.Response:
    """GET /version."""
    return as_json({"version": VERSION})


async def server_load(request: web.Request) -> web.Response:
    """GET /load: requests in flight."""
    return as_json({"server_load": request.app[MOCK].in_flight})


async def is_sleeping(request: web.Request) -> web.Response:
    """GET /is_sleeping."""
    return as_json({"is_sleeping": False})


async def stats(request: web.Request) -> web.Response:
    """GET or POST /mock/stats: what the server has seen."""
    return as_json(request.app[MOCK].stats())


async def get_faults(request: web.Request) -> web.Response:
    """GET /mock/faults: those in force."""
    return as_json(request.app[MOCK].faults)


async def set_faults(request: web.Request) -> web.Response:
    """POST /mock/faults: set the named ones; null resets one. 422 names what is wrong."""
    mock = request.app[MOCK]
    try:
        values = orjson.loads(await request.read())
        if not isinstance(values, dict):
            raise SettingError(f"faults = {values!r}: expected a JSON object")
        faults = faults_of.changed(mock.faults, values)
    except (orjson.JSONDecodeError, SettingError) as error:
        return as_json({"error": {"message": str(error), "type": "BadRequestError", "code": 422}}, 422)
    put_in_force(mock, faults)
    return as_json(mock.faults)


async def clear_faults(request: web.Request) -> web.Response:
    """DELETE /mock/faults: nothing goes wrong any more."""
    put_in_force(request.app[MOCK], HEALTHY)
    return as_json(HEALTHY)


def put_in_force(mock: Mock, faults: Faults) -> None:
    """Set the faults after the answer to who asked has left."""
    if faults.crash:
        asyncio.get_running_loop().call_later(CRASH_S, mock.set_faults, faults)
    else:
        mock.set_faults(HEALTHY if faults == HEALTHY else faults)


async def take_lease(request: web.Request) -> web.Response:
    """A decoder in another process fetches the KV of a hand-over."""
    try:
        asked = orjson.loads(await request.read())
    except orjson.JSONDecodeError:
        asked = None
    asked = asked if isinstance(asked, dict) else {}
    named = (asked.get(name) for name in ("remote_engine_id", "remote_block_ids", "mock_ticket"))
    tokens = request.app[MOCK].leases.take(*named)
    return as_json({"tokens": tokens}, 404 if tokens is None else 200)


HEALTHY = Faults()
CRASH_S = 0.02  # s from the order to crash to the crash
