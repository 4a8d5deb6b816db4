"""Many streams at once, and a server that is killed among them: each request ends once, whole or in words."""

import asyncio
import os
import signal
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from control.gateway.upstream import Health
from tests.support.running import Running, Start, free_port
from tests.support.stage import SPEC, Stage, play, staged, until

COUNTERS = ("running", "waiting", "in_flight")


def server(start: Start, port: int) -> Running:
    """A simulated server in a process of its own."""
    return start("mock-vllm", "--port", port, "--ttft-ms", 20, "--tpot-ms", 20, "--name", "mock")


async def one(stage: Stage, k: int) -> str:
    """How the client of one stream sees it end."""
    try:
        status, text = await stage.stream({"x-request-id": f"r{k}"}, max_tokens=40)
    except aiohttp.ClientError as error:
        return f"no answer: {error!r}"
    errors, whole = text.count(b'"error"'), text.rstrip().endswith(b"data: [DONE]")
    if status == 200 and whole and not errors:
        return "whole"
    return "error" if errors == 1 and not whole else f"{status} {text[-200:]!r}"


async def storm(start: Start, n: int) -> None:
    """`n` streams over four servers, one of which is killed and started again on its port."""
    ports = [free_port() for _ in range(4)]
    servers = [server(start, port) for port in ports]
    specs = [replace(SPEC, name=f"p{i}", url=f"http://127.0.0.1:{port}") for i, port in enumerate(ports)]
    async with staged(more=tuple(specs)) as stage:
        await until(lambda: ready(stage) == 4, 60.0)
        tasks = [asyncio.create_task(one(stage, k)) for k in range(n)]
        await until(lambda: any(call.said and call.instance == 0 for call in stage.gateway.calls.values()), 60.0)
        os.kill(servers[0].pid, signal.SIGKILL)
        await until(lambda: stage.gateway.upstreams[0].health is Health.SICK, 60.0)
        server(start, ports[0])
        ends = await asyncio.gather(*tasks)
        assert set(ends) <= {"whole", "error"}, set(ends)
        assert ends.count("whole") >= n // 2
        assert sum(stage.gateway.totals.by_state.values()) == n
        assert stage.gateway.totals.by_state["completed"] == ends.count("whole")
        await until(lambda: ready(stage) == 4, 60.0)
        sent = stage.gateway.upstreams[0].sent
        assert {await one(stage, n + k) for k in range(8)} == {"whole"}
        assert stage.gateway.upstreams[0].sent > sent
        for port in ports:
            stats = await asked(stage, port)
            assert [stats[name] for name in COUNTERS] == [0, 0, 0]


def ready(stage: Stage) -> int:
    """Servers that are ready."""
    return sum(one.health is Health.READY for one in stage.gateway.upstreams.values())


async def asked(stage: Stage, port: int) -> Any:
    """What a server says of itself."""
    async with stage.session.get(f"http://127.0.0.1:{port}/mock/stats") as response:
        return await response.json()


def test_a_server_is_killed_among_two_hundred_streams(start: Start) -> None:
    play(lambda: storm(start, 200))


@pytest.mark.slow
def test_a_server_is_killed_among_a_thousand_streams(start: Start) -> None:
    play(lambda: storm(start, 1000))
