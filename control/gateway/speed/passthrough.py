"""The least an HTTP proxy written with aiohttp can do, in a process of its own: what the gateway is measured against.

Run as `python -m control.gateway.speed.passthrough URL URL ...`; it prints the address it listens on.
"""

import asyncio
import itertools
import sys
from collections.abc import Iterator, Sequence

import aiohttp
import uvloop
from aiohttp import web


class PassThrough:
    """Sends each request to the next server and passes on what comes back."""

    def __init__(self, session: aiohttp.ClientSession, urls: Sequence[str]) -> None:
        self.session = session
        self.urls: Iterator[str] = itertools.cycle(urls)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request."""
        body, kind = await request.read(), {"content-type": "application/json"}
        async with self.session.request(
            request.method, next(self.urls) + request.path, data=body, headers=kind
        ) as answer:
            kind = {"content-type": answer.headers.get("content-type", "application/json")}
            if not kind["content-type"].startswith("text/event-stream"):
                return web.Response(status=answer.status, body=await answer.read(), headers=kind)
            out = web.StreamResponse(status=answer.status, headers=kind)
            await out.prepare(request)
            async for data in answer.content.iter_any():
                await out.write(data)
            await out.write_eof()
            return out


async def serve(urls: Sequence[str]) -> None:
    """Serve on a free port until the process is ended."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
        runner = web.ServerRunner(web.Server(PassThrough(session, urls).handle, access_log=None))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
        print(f"listening on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as main:
        main.run(serve(sys.argv[1:]))
