"""A gateway over simulated servers, all on one event loop, and what must hold when a play is over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import aiohttp
import numpy as np

from control.adapters.mock.faults import Faults
from control.adapters.mock.serve import Server, running
from control.adapters.mock.settings import MockSettings
from control.config import GatewaySettings
from control.engine.door import Door
from control.engine.record import drain_journal
from control.engine.spare import start_gateway
from control.engine.tickets import Identity
from control.gateway.gateway import Gateway
from control.gateway.host import GatewayHost
from control.gateway.upstream import Health, Upstream
from control.model.fleet import Fleet, InstanceSpec
from control.policy.codes import COMPLETED
from control.twin.observe import emitted_by

QUICK = {"probe_s": 0.1, "scrape_s": 0.2, "port": 0, "drain_s": 1.0}
BODY = {
    "model": "mock",
    "messages": [{"role": "user", "content": "say something"}],
    "max_tokens": 8,
    "ignore_eos": True,
}


SPEC = InstanceSpec("s", "A100", "Llama-3.1-8B")


class Stage:
    """What a play has at hand."""

    def __init__(self, servers: list[Server], door: Door, host: GatewayHost, ended: list[dict[str, Any]]) -> None:
        self.servers, self.door, self.host, self.ended = servers, door, host, ended
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self.is_closed = False

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

    def fault(self, i: int, **faults: Any) -> None:
        """Have these go wrong on server `i` from now on, and nothing else."""
        self.servers[i].mock.set_faults(Faults(**faults))

    def upstream(self, i: int) -> Upstream:
        """What the gateway knows of server `i`."""
        return self.gateway.upstreams[i]

    def served(self, i: int) -> list[str]:
        """Ids of the calls that server `i` gave a seat to, in order, without the gateway's own probe."""
        return [id for id, _ in self.servers[i].mock.core.admissions.latest][1:]

    async def close(self) -> None:
        """Stop the gateway, once."""
        if not self.is_closed:
            self.is_closed = True
            await self.host.close()

    def open_calls(self) -> int:
        """Calls that the door knows by now; the world is moved as an engine's tick would."""
        with self.door.lock:
            self.door.move()
            self.door.drain()
            return len(self.door.rows)

    async def check_closed(self) -> None:
        """Soon after the last answer, all that was charged has been released, here and on the servers."""
        mocks = [one.mock for one in self.servers]
        await until(lambda: not self.gateway.calls and not self.open_calls(), 5.0)
        await until(lambda: not any(mock.in_flight or mock.core.load().running for mock in mocks), 5.0)
        assert not any(mock.core.load().waiting or mock.leases.kept or mock.core.held for mock in mocks)
        with self.door.lock:
            self.door.close_idle(0.0)
            self.door.drain()
            check_books(self.door)


def check_books(door: Door) -> None:
    """Nothing is charged in a world whose workflows have all ended."""
    world = door.live.world
    assert not door.rows
    assert not door.numbers
    assert not door.live.flows
    for name in ("n_waiting", "n_running", "queued_work_s", "reserved", "pinned"):
        assert not world.instances[name].any(), name
    for name in ("n_held", "open_workflows"):
        assert world.clock[0][name] == 0, name
    assert world.transfers.size[0] == 0
    rows = world.instances
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
    spec: InstanceSpec = SPEC,
    **settings: Any,
) -> AsyncIterator[Stage]:
    """A gateway over servers with these settings, all of them like `spec`, and more instances beside them.

    When the play is over, the books must close.
    """
    async with AsyncExitStack() as stack:
        up = [await stack.enter_async_context(running(one)) for one in servers]
        specs = [replace(spec, name=f"s{i}", role=one.mock.settings.role, url=one.url) for i, one in enumerate(up)]
        stage = make_stage(up, Fleet("stage", (*specs, *more)), policy, settings)
        stage.host.url = await stage.host.open()
        try:
            yield stage
            await stage.check_closed()
        finally:
            await stage.session.close()
            await stage.close()


def make_stage(up: list[Server], fleet: Fleet, policy: str, settings: dict[str, Any]) -> Stage:
    """The parts of a stage, nothing started."""
    live = start_gateway(fleet, policy, 0.5)
    ended: list[dict[str, Any]] = []

    def drain() -> None:
        door.hear()
        ended.extend(drain_journal(live)[1])

    door = Door(live, drain)
    return Stage(up, door, GatewayHost(door, GatewaySettings(**{**QUICK, **settings})), ended)


@cache
def warm() -> None:
    """Have what a gateway calls compiled before anybody counts seconds."""
    live = start_gateway(Fleet("warm", (SPEC, replace(SPEC, name="real", url="http://nowhere"))), "rr-fcfs", 0.5)
    door = Door(live, lambda: (door.hear(), drain_journal(live))[0])
    for _ in range(2):
        uid, _ = door.enter(Identity(), 100, 10)
        emitted_by(live.world, door.rows[uid], live.now_s)
        door.first_token(uid)
        door.ends(uid, COMPLETED, 0, 100, 10, 0)
    door.close_idle(0.0)
    door.still()


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """Run one asynchronous test."""
    warm()
    asyncio.run(scene())  # type: ignore[arg-type]
