"""Clients that leave, in every phase of a call: nothing stays charged, and no server goes on for nobody."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from control.adapters.mock.settings import MockSettings
from control.policy.codes import HELD, WAITING
from tests.support.stage import SPEC, Stage, play, staged, until

SLOW = MockSettings(ttft_ms=20.0, tpot_ms=50.0)
SESSION_A, SESSION_B = {"x-session-id": "a"}, {"x-session-id": "b"}
LONG = [{"role": "user", "content": "word " * 480}]  # about 600 tokens as estimated


async def leave(task: "asyncio.Task[Any]") -> None:
    """The client of a request closes its connection."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def states(stage: Stage) -> list[int]:
    """States of the open calls, in order of arrival."""
    calls = stage.door.live.world.calls
    return [int(calls[c]["state"]) for _, c in sorted(stage.door.rows.items())]


@pytest.mark.parametrize("stream", [False, True])
def test_while_it_is_answered(stream: bool) -> None:
    async def scene() -> None:
        async with staged(SLOW) as stage:
            await stage.ready()
            ask = stage.stream if stream else stage.ask
            task = asyncio.create_task(ask(max_tokens=1000))
            mock = stage.servers[0].mock
            await until(lambda: any(flow.tokens > 2 for flow in mock.core.running))
            await leave(task)
            await until(lambda: mock.seen["cancelled"] == 1, 2.0)
            await until(lambda: stage.gateway.totals.by_state == {"cancelled": 1})

    play(scene)


def test_while_it_waits_here() -> None:
    async def scene() -> None:
        async with staged(SLOW, spec=replace(SPEC, window=1)) as stage:
            await stage.ready()
            first = asyncio.create_task(stage.stream(max_tokens=1000))
            await until(lambda: stage.servers[0].mock.core.running)
            tasks = [asyncio.create_task(stage.stream()) for _ in range(3)]
            await until(lambda: states(stage).count(WAITING) == 3)
            await leave(tasks[1])
            await until(lambda: states(stage).count(WAITING) == 2)
            await leave(first)
            for task in (tasks[0], tasks[2]):
                status, text = await task
                assert status == 200
                assert text.rstrip().endswith(b"[DONE]")
            assert len(stage.served(0)) == 3

    play(scene)


def test_while_its_server_has_not_begun_to_answer() -> None:
    async def scene() -> None:
        async with staged(SLOW) as stage:
            await stage.ready()
            stage.fault(0, hang=True)
            mock = stage.servers[0].mock
            task = asyncio.create_task(stage.stream())
            await until(lambda: mock.in_flight == 1)
            await leave(task)
            await until(lambda: mock.in_flight == 0, 2.0)

    play(scene)


def pair(prefiller: MockSettings, window: int | None = None, **settings: Any) -> Any:
    """A prefiller and a decoder with room for one of two long contexts."""
    spec = replace(SPEC, kv_tokens=1024, window=window)
    decoder = MockSettings(role="decode", ttft_ms=5.0, tpot_ms=50.0)
    return staged(prefiller, decoder, policy="conserve", spec=spec, **settings)


def test_in_the_prefill_leg() -> None:
    async def scene() -> None:
        async with pair(MockSettings(role="prefill", ttft_ms=20_000.0)) as stage:
            stage.fault(0, slow_stream=0.001)  # for the probe
            await stage.ready()
            stage.fault(0)
            mock = stage.servers[0].mock
            task = asyncio.create_task(stage.stream(SESSION_A))
            await until(lambda: mock.core.running)
            await leave(task)
            await until(lambda: mock.seen["cancelled"] == 1, 2.0)
            assert not mock.leases.kept

    play(scene)


@pytest.mark.parametrize(("window", "state", "messages"), [(None, HELD, LONG), (1, WAITING, None)])
def test_between_the_legs(window: int | None, state: int, messages: Any) -> None:
    async def scene() -> None:
        changes = {"max_tokens": 200} | ({"messages": messages} if messages else {})
        async with pair(MockSettings(role="prefill", ttft_ms=5.0), window) as stage:
            await stage.ready()
            first = asyncio.create_task(stage.stream(SESSION_A, **changes))
            prefiller, decoder = (one.mock for one in stage.servers)
            await until(lambda: decoder.core.running)
            second = asyncio.create_task(stage.stream(SESSION_B, **changes))
            await until(lambda: states(stage)[1:] == [state] and prefiller.leases.kept)
            await leave(second)
            await until(lambda: not prefiller.leases.kept, 2.0)  # long before the lease runs out
            await leave(first)
            await until(lambda: decoder.seen["cancelled"] == 1, 2.0)

    play(scene)


def test_just_when_it_is_to_be_sent() -> None:
    """The order to send a call is out, and its client leaves before anybody took it."""

    async def scene() -> None:
        async with staged(SLOW, spec=replace(SPEC, window=1)) as stage:
            await stage.ready()
            first = asyncio.create_task(stage.ask(max_tokens=4))
            await until(lambda: stage.servers[0].mock.core.running)
            second = asyncio.create_task(stage.stream())
            await until(lambda: len(stage.gateway.calls) == 2)
            hook(stage, lambda: second.cancel())
            await first
            await asyncio.gather(second, return_exceptions=True)

    play(scene)


def hook(stage: Stage, when_sent: Callable[[], Any]) -> None:
    """Have the waiting call's task cancelled in the very moment in which it gets its order."""
    call = list(stage.gateway.calls.values())[-1]
    take = call.take

    def take_and_leave(order: Any) -> None:
        take(order)
        assert call.task is not None
        call.task.cancel()
        when_sent()

    call.take = take_and_leave  # type: ignore[method-assign]
