"""A real socket to a server of the test's own."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import orjson
import uvloop

from control.adapters.mock.serve import Server, running
from control.adapters.mock.settings import MockSettings

CHAT = "/v1/chat/completions"
PATIENCE_S = 30.0
#: Times that keep tests short: all tokens of an answer within some milliseconds.
QUICK = {"ttft_ms": 1.0, "tpot_ms": 1.0}


class Wire:
    """A client of one server."""

    def __init__(self, server: Server, http: aiohttp.ClientSession) -> None:
        self.server, self.http = server, http

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.post(self.server.url + path, data=data, headers=named) as answer:
            return answer.status, orjson.loads(await answer.read())

    async def get(self, path: str) -> tuple[int, str]:
        """Status and text."""
        async with self.http.get(self.server.url + path) as answer:
            return answer.status, await answer.text()

    async def fault(self, **faults: Any) -> None:
        """Have something go wrong."""
        status, told = await self.post("/mock/faults", faults)
        assert status == 200, told

    async def stats(self) -> dict[str, Any]:
        """What the server has seen."""
        _, told = await self.post("/mock/stats", {})
        assert isinstance(told, dict)
        return told

    async def lines(self, body: dict[str, Any], path: str = CHAT) -> list[str]:
        """The lines of a stream that are not empty."""
        async with self.http.post(self.server.url + path, json={**body, "stream": True}) as answer:
            assert answer.status == 200, await answer.text()
            return [line for line in (await answer.text()).split("\n") if line]

    async def metric(self, line: str) -> float:
        """The value of a metric whose line begins with `line`, summed over labels."""
        _, text = await self.get("/metrics")
        found = [float(row.rsplit(" ", 1)[1]) for row in text.splitlines() if row.startswith(line)]
        assert found, f"no {line} in /metrics"
        return sum(found)

    async def until(self, what: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first stats of which `what` is true."""
        async with asyncio.timeout(PATIENCE_S):
            while not what(told := await self.stats()):
                await asyncio.sleep(0.005)
        return told


def chat(text: str = "Tell me something", **more: Any) -> dict[str, Any]:
    """The body of a chat request."""
    return {"model": "mock", "messages": [{"role": "user", "content": text}], **more}


def events(lines: list[str]) -> list[dict[str, Any]]:
    """The events of a stream that ends as it should."""
    assert lines[-1] == "data: [DONE]"
    return [orjson.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def said(chunks: list[dict[str, Any]]) -> str:
    """The text that the chunks of a chat bring."""
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def served(**settings: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Runs a test that is a coroutine with a Wire to a server of these settings as its first argument."""

    def wrap(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**given: Any) -> None:
            async def go() -> None:
                async with running(MockSettings(**{**QUICK, **settings})) as server, aiohttp.ClientSession() as http:
                    await test(Wire(server, http), **given)

            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # the loop of a server of its own
                runner.run(asyncio.wait_for(go(), 2 * PATIENCE_S))

        mine = inspect.signature(test)
        left = [value for name, value in mine.parameters.items() if name != "wire"]
        run.__signature__ = mine.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return wrap
