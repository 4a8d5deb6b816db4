"""Start and stop a simulated server: in a process of its own, or inside a test."""

import asyncio
import errno
import gc
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from control.adapters.mock.core import WallClock
from control.adapters.mock.server import HEALTHY, app_of
from control.adapters.mock.settings import MockSettings
from control.adapters.mock.state import Mock, new_mock
from control.errors import InputError

CRASHED = 70  # exit code of a process that was told to crash
GOODBYE_S = 1.0  # s that requests under way are given when the server ends


@dataclass
class Server:
    """A server that listens."""

    mock: Mock
    runner: web.AppRunner
    site: web.TCPSite

    @property
    def url(self) -> str:
        """Its address, without a path."""
        host, port = self.mock.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def close(self) -> None:
        """End it; requests under way are cut off after GOODBYE_S."""
        self.mock.leases.close()
        await self.runner.cleanup()

    def crash(self) -> None:
        """Be gone as a killed process is: nobody listens, all connections are dropped."""
        self.mock.leases.close()
        listener, server = self.site._server, self.runner.server
        if listener is not None:
            listener.close()
        for connection in server.connections if server is not None else ():
            if connection.transport is not None:
                connection.transport.abort()


async def listen(settings: MockSettings, die: Callable[[], None] | None = None) -> Server:
    """A server on its port; `die` is what a crash comes to, None: the sockets close.

    Raises:
        InputError: the port cannot be had.
    """
    mock = new_mock(settings, WallClock(), die or (lambda: server.crash()))
    runner = web.AppRunner(app_of(mock), handler_cancellation=True, access_log=None, shutdown_timeout=GOODBYE_S)
    await runner.setup()
    site = web.TCPSite(runner, settings.host, settings.port, backlog=1024)
    try:
        await site.start()
    except OSError as error:
        await runner.cleanup()
        why = "in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise InputError(
            f"{settings.host}:{settings.port}: {why}; name another with --port, 0 takes a free one"
        ) from error
    mock.address = runner.addresses[0][:2]
    server = Server(mock, runner, site)
    mock.set_faults(HEALTHY if settings.faults == HEALTHY else settings.faults)
    return server


@asynccontextmanager
async def running(settings: MockSettings | None = None) -> AsyncIterator[Server]:
    """A server for the length of a block, on the event loop that runs."""
    server = await listen(settings or MockSettings())
    try:
        yield server
    finally:
        await server.close()


async def serve(settings: MockSettings, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `say` is given one line as soon as the server listens."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    server = await listen(settings, lambda: os._exit(CRASHED))
    gc.freeze()  # what was loaded stays: no need to look it through again and again
    say(f"listening on {server.url}, {description(settings)}")
    await over.wait()
    await server.close()


def description(settings: MockSettings) -> str:
    """What is served, in words."""
    kv_tokens, max_model_len = settings.sizes
    names = ", ".join(settings.served)
    if settings.gpu is None:
        pace = f"first token after {settings.ttft_ms:g} ms, then every {settings.tpot_ms:g} ms"
    else:
        pace = f"as {settings.model} on {settings.gpu}"
    if settings.speed != 1.0:
        pace += f", {settings.speed:g} times as fast"
    return f"model {names}, {pace}, {settings.seats} seats, {kv_tokens:,} KV tokens, context {max_model_len:,}"


def run(settings: MockSettings, say: Callable[[str], None]) -> None:
    """Serve in this process, on uvloop, until told to end.

    Raises:
        InputError: the port cannot be had.
    """
    import uvloop  # not there on Windows; only a server of its own needs its speed

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings, say))
