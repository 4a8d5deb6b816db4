"""The gateway on a thread of its own, with an event loop of its own."""

import asyncio
import logging
import sys
import threading
from collections.abc import Coroutine
from typing import Any

import uvloop
from aiohttp import web

from control.config import GatewaySettings
from control.engine.door import Door
from control.errors import SettingError
from control.gateway.gateway import Gateway

log = logging.getLogger("headway.gateway")

GOODBYE_S = 1.0  # connections whose last answer is being read are given so long
SWITCH_S = 0.0005  # the loop of requests must not wait long for the interpreter while the record is made


class GatewayHost:
    """Runs a gateway until it is told to stop."""

    def __init__(self, door: Door, settings: GatewaySettings) -> None:
        self.door, self.settings = door, settings
        self.gateway: Gateway | None = None
        self.url = ""

    def start(self) -> str:
        """Listen; the address.

        Raises:
            SettingError: the address is taken or not ours.
        """
        sys.setswitchinterval(SWITCH_S)
        self.loop = uvloop.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="gateway", daemon=True)
        self.thread.start()
        try:
            self.url = self.run(self.open())
        except OSError as error:
            at = f"{self.settings.host}:{self.settings.port}"
            raise SettingError(f"--gateway-port: cannot listen on {at}: {error.strerror or error}") from error
        log.info("gateway on %s", self.url)
        return self.url

    def stop(self) -> None:
        """Let the calls under way end, then close."""
        self.run(self.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5.0)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Have the loop do something, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def open(self) -> str:
        """Start the gateway and listen."""
        self.gateway = Gateway(self.door, self.settings)
        most = self.settings.most_body_mb * 2**20
        server = web.Server(self.gateway.handle, handler_cancellation=True, access_log=None)
        server.request_factory = bounded(server.request_factory, most)
        self.runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=GOODBYE_S)
        await self.runner.setup()
        self.site = web.TCPSite(self.runner, self.settings.host, self.settings.port, backlog=2048)
        try:
            await self.site.start()
        except OSError:
            await self.runner.cleanup()
            raise
        await self.gateway.start()
        port = self.runner.addresses[0][1]
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        return f"http://{host}:{port}"

    async def close(self) -> None:
        """Take no new connection, let what is under way end, close."""
        await self.site.stop()
        if self.gateway is not None:
            await self.gateway.stop()
        await self.runner.cleanup()


def bounded(factory: Any, most: int) -> Any:
    """The request factory with a limit on the size of bodies, bytes."""

    def make(*args: Any) -> web.BaseRequest:
        request: web.BaseRequest = factory(*args)
        request._client_max_size = most
        return request

    return make
