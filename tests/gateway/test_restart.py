"""A gateway that stops, and the next one over the same state."""

import asyncio
from typing import Any

import pytest

from control.adapters.mock.settings import MockSettings
from control.config import GatewaySettings
from control.engine.checkpoint import load, save
from control.engine.door import Door
from control.engine.record import drain_journal
from control.gateway.host import GatewayHost
from tests.support.stage import QUICK, Stage, check_books, play, staged, until


def test_calls_under_way_may_end() -> None:
    async def scene() -> None:
        async with staged(MockSettings(ttft_ms=5.0, tpot_ms=10.0), drain_s=10.0) as stage:
            await stage.ready()
            task = asyncio.create_task(stage.stream(max_tokens=50))
            await until(lambda: stage.servers[0].mock.core.running)
            await stage.close()
            status, text = await task
            assert status == 200
            assert text.rstrip().endswith(b"[DONE]")
            assert stage.gateway.totals.by_state == {"completed": 1}

    play(scene)


@pytest.mark.parametrize("stream", [True, False])
def test_what_takes_too_long_is_broken_off_in_words(stream: bool) -> None:
    async def scene() -> None:
        async with staged(MockSettings(ttft_ms=5.0, tpot_ms=50.0), drain_s=0.1) as stage:
            await stage.ready()
            ask: Any = stage.stream if stream else stage.ask
            task = asyncio.create_task(ask(max_tokens=1000))
            await until(lambda: any(flow.tokens > 2 for flow in stage.servers[0].mock.core.running))
            await stage.close()
            status, said = (await task)[:2]
            assert status == (200 if stream else 503)
            assert "shutting down" in str(said)
            assert stage.gateway.totals.by_state == {"failed": 1}
            await until(lambda: stage.servers[0].mock.seen["cancelled"] == 1)

    play(scene)


def test_the_next_gateway_goes_on_where_the_first_was_killed() -> None:
    async def scene() -> None:
        slow = MockSettings(ttft_ms=5.0, tpot_ms=20.0)
        async with staged(slow, slow, policy="collocated") as stage:
            await stage.ready()
            who = {"x-session-id": "talk"}
            _, _, headers = await stage.ask(who)
            tasks = [asyncio.create_task(stage.stream({"x-session-id": f"t{k}"}, max_tokens=1000)) for k in range(3)]
            await until(lambda: sum(len(one.mock.core.running) for one in stage.servers) == 3)
            blob = saved(stage)
            await stage.close()
            await asyncio.gather(*tasks)
            second, ended = taken_up(stage, blob)
            world = second.live.world
            assert set(second.live.flows) == {"talk", "t0", "t1", "t2"}
            assert not world.instances["n_running"].any()
            assert not second.rows
            assert world.instances["pinned"].any()
            await one_more(stage, second, who, headers["x-headway-instance"])
            second.close_idle(0.0)
            second.drain()
            check_books(second)
            assert sorted(str(row["cause"]) for row in ended) == ["None", *["restarted"] * 3]

    play(scene)


def saved(stage: Stage) -> bytes:
    """The state as it would be found after a kill."""
    with stage.door.lock:
        stage.door.drain()
        return save(stage.door.live)


def taken_up(stage: Stage, blob: bytes) -> tuple[Door, list[dict[str, Any]]]:
    """A door to the saved state, and what will have ended."""
    live = load(blob, stage.door.live.given, stage.door.live.source)
    ended: list[dict[str, Any]] = []

    def drain() -> None:
        door.hear()
        ended.extend(drain_journal(live)[1])

    door = Door.__new__(Door)
    Door.__init__(door, live, drain)
    return door, ended


async def one_more(stage: Stage, door: Door, who: dict[str, str], where: str) -> None:
    """The next turn of a conversation, at a gateway of its own."""
    host = GatewayHost(door, GatewaySettings(**QUICK))
    host.url = await host.open()
    first, stage.host = stage.host, host
    try:
        await stage.ready()
        status, _, headers = await stage.ask(who)
        assert status == 200
        assert headers["x-headway-instance"] == where
    finally:
        await host.close()
        stage.host = first
