"""A gateway over simulated servers, all on one event loop, and what must hold when a play is over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import numpy as np

from control.adapters.mock.serve import Server, running
from control.adapters.mock.settings import MockSettings
from control.config import GatewaySettings
from control.engine.door import Door
from control.engine.record import drain_journal
from control.engine.spare import start_gateway
from control.gateway.gateway import Gateway
from control.gateway.host import GatewayHost
from control.gateway.upstream import Health
from control.model.fleet import Fleet, InstanceSpec

QUICK = {"probe_s": 0.1, "scrape_s": 0.2, "port": 0, "drain_s": 1.0}
BODY = {
    "model": "mock",
    "messages": [{"role": "user", "content": "say something"}],
    "max_tokens": 8,
    "ignore_eos": True,
}


class Stage:
    """What a play has at hand."""

    def __init__(self, servers: list[Server], door: Door, host: GatewayHost, ended: list[dict[str, Any]]) -> None:
        self.servers, self.door, self.host, self.ended = servers, door, host, ended
        self.session = aiohttp.ClientSession()

    @property
    def gateway(self) -> Gateway:
        assert self.host.gateway is not None
        return self.host.gateway

    async def ready(self, n: int | None = None) -> None:
        """Wait until `n` servers (default: all) are ready."""
        wanted = len(self.gateway.upstreams) if n is None else n
        await until(lambda: sum(one.health is Health.READY for one in self.gateway.upstreams.values()) >= wanted)

    async def ask(self, headers: dict[str, str] | None = None, **changes: Any) -> tuple[int, Any, Any]:
        """Status, body and headers of one request that is not streamed."""
        async with self.session.post(
            self.host.url + "/v1/chat/completions", json=BODY | changes, headers=headers
        ) as response:
            return response.status, await response.json(content_type=None), response.headers

    async def stream(self, headers: dict[str, str] | None = None, **changes: Any) -> tuple[int, bytes]:
        """Status and all bytes of a streamed answer."""
        async with self.session.post(
            self.host.url + "/v1/chat/completions", json=BODY | {"stream": True} | changes, headers=headers
        ) as response:
            return response.status, await response.read()

    def check_closed(self) -> None:
        """All that was charged has been released."""
        rows = self.door.live.world.instances
        assert not self.gateway.calls
        assert not self.door.rows
        assert not self.door.numbers
        for name in ("n_waiting", "n_running", "queued_work_s"):
            assert not rows[name].any(), name
        np.testing.assert_array_equal(rows["free"] + rows["evictable"], rows["blocks"])


async def until(condition: Callable[[], Any], timeout_s: float = 20.0) -> None:
    """Wait for a condition.

    Raises:
        TimeoutError: it did not come true.
    """
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def staged(
    *servers: MockSettings,
    policy: str = "hexgen",
    more: tuple[InstanceSpec, ...] = (),
    window: int = 256,
    **settings: Any,
) -> AsyncIterator[Stage]:
    """A gateway over servers with these settings, and more instances beside them."""
    async with AsyncExitStack() as stack:
        up = [await stack.enter_async_context(running(one)) for one in servers]
        specs = tuple(
            InstanceSpec(f"s{i}", "A100", "Llama-3.1-8B", role=one.mock.settings.role, url=one.url, window=window)
            for i, one in enumerate(up)
        )
        live = start_gateway(Fleet("stage", (*specs, *more)), policy, 0.5)
        ended: list[dict[str, Any]] = []

        def drain() -> None:
            door.hear()
            ended.extend(drain_journal(live)[1])

        door = Door(live, drain)
        host = GatewayHost(door, GatewaySettings(**{**QUICK, **settings}))
        host.url = await host.open()
        stage = Stage(up, door, host, ended)
        try:
            yield stage
        finally:
            await stage.session.close()
            await host.close()


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """Run one asynchronous test."""
    asyncio.run(scene())  # type: ignore[arg-type]
