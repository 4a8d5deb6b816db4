"""A server whose answers a test writes itself, for what no well-behaved server would send."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from control.model.fleet import InstanceSpec

Chat = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def odd_server(
    chat: Chat, role: str = "mixed", name: str = "odd", models: Chat | None = None
) -> AsyncIterator[InstanceSpec]:
    """An instance that is ready and answers chats with `chat`; `models`: how it lists its models, if oddly."""

    async def one_model(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "mock", "max_model_len": 4096}]})

    async def one_token(request: web.Request) -> web.Response:
        if "x-vllm-priority" in request.headers:
            told = "Got priority 1 but Priority scheduling is not enabled."
            return web.json_response({"error": {"message": told}}, status=400)
        return web.json_response({"choices": [{"index": 0, "text": "x", "finish_reason": "length"}]})

    async def health(request: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.router.add_get("/v1/models", models or one_model)
    app.router.add_get("/health", health)
    app.router.add_post("/v1/completions", one_token)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    try:
        yield InstanceSpec(name, "A100", "Llama-3.1-8B", role=role, url=f"http://127.0.0.1:{port}")
    finally:
        await runner.cleanup()


def says(*parts: bytes, kind: str = "text/event-stream") -> Chat:
    """A chat that is answered with these bytes, each sent by itself."""

    async def chat(request: web.Request) -> web.StreamResponse:
        out = web.StreamResponse(headers={"content-type": kind})
        await out.prepare(request)
        for part in parts:
            await out.write(part)
        await out.write_eof()
        return out

    return chat
