"""A small engine behind the OpenAI wire, to test clients on real sockets: continuous batching with known costs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer

TOKENS_A_WORD = 2  # its tokenizer
BUDGET, SEATS, KV = 512, 8, 8192
METRICS = (
    "# TYPE vllm:cache_config_info gauge\n"
    f'vllm:cache_config_info{{block_size="16",num_gpu_blocks="{KV // 16}",sliding_window="None"}} 1.0\n'
)


@dataclass
class Call:
    """One request under way."""

    prompt_tokens: int
    wanted: int
    done: int = 0
    prefilled: int = 0
    pieces: "asyncio.Queue[int]" = field(default_factory=asyncio.Queue)


@dataclass
class TinyEngine:
    """Iterations cost base_ms + seq_ms B + token_ms P, slept on the event loop."""

    base_ms: float = 2.0
    seq_ms: float = 0.2
    token_ms: float = 0.01
    usage: bool = True
    broken: dict[int, str] = field(default_factory=dict)  # number of a request -> how it goes wrong
    seen: list[dict[str, Any]] = field(default_factory=list)  # bodies, with their headers
    calls: list[Call] = field(default_factory=list)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Iterations without end."""
        while True:
            batch = self.calls[:SEATS]
            if not batch:
                self.woken.clear()
                await self.woken.wait()
                continue
            budget, prefill = BUDGET, 0
            for call in batch:
                part = min(budget, call.prompt_tokens - call.prefilled)
                call.prefilled, budget, prefill = call.prefilled + part, budget - part, prefill + part
            ready = [call for call in batch if call.prefilled == call.prompt_tokens]
            await asyncio.sleep(1e-3 * (self.base_ms + self.seq_ms * len(ready) + self.token_ms * prefill))
            for call in ready:
                call.done += 1
                call.pieces.put_nowait(call.done)
            self.calls = [call for call in self.calls if call.done < call.wanted]

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """POST of a completion or a chat."""
        body = await request.json()
        number = len(self.seen)
        self.seen.append(body | {"headers": {k.lower(): v for k, v in request.headers.items()}})
        if self.broken.get(number) == "503":
            return web.json_response({"error": {"message": "the queue is full"}}, status=503)
        words = body["prompt"] if "prompt" in body else " ".join(m["content"] for m in body["messages"])
        call = Call(max(1, TOKENS_A_WORD * len(words.split())), body.get("max_tokens") or 16)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": keep-alive\n\n")
        self.calls.append(call)
        self.woken.set()
        while await call.pieces.get() < call.wanted:
            await response.write(self.piece("prompt" in body))
            if self.broken.get(number) == "cut":
                return response
        await response.write(self.piece("prompt" in body))
        if self.usage:
            counts = {"prompt_tokens": call.prompt_tokens, "completion_tokens": call.wanted}
            await response.write(b"data: " + orjson.dumps({"choices": [], "usage": counts}) + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    def piece(self, text: bool) -> bytes:
        """One event with a word."""
        choice = {"index": 0, "text": " word"} if text else {"index": 0, "delta": {"content": " word"}}
        return b"data: " + orjson.dumps({"choices": [choice]}) + b"\n\n"


@asynccontextmanager
async def serving(engine: TinyEngine) -> AsyncIterator[str]:
    """The engine's address while it serves."""

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "tiny", "max_model_len": 4096}]})

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=METRICS)

    async def version(_: web.Request) -> web.Response:
        return web.json_response({"version": "0.19.0"})

    async def tokenize(request: web.Request) -> web.Response:
        return web.json_response({"count": TOKENS_A_WORD * len((await request.json())["prompt"].split())})

    app = web.Application(client_max_size=2**24)
    app.router.add_get("/v1/models", models)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/version", version)
    app.router.add_post("/tokenize", tokenize)
    app.router.add_post("/v1/completions", engine.complete)
    app.router.add_post("/v1/chat/completions", engine.complete)
    server = TestServer(app)
    await server.start_server()
    loop = asyncio.create_task(engine.run())
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        loop.cancel()
        await server.close()
