"""The order in which calls that wait are served, here and on the server."""

import asyncio
from dataclasses import replace

from aiohttp import web

from control.adapters.mock.settings import MockSettings
from tests.support.odd import odd_server, says
from tests.support.stage import SPEC, Stage, play, staged, until

DEADLINES_S = (700, 100, 900, 400, 1000, 200, 800, 300, 600, 500)
ONE_SEAT = MockSettings(ttft_ms=10.0, tpot_ms=5.0, seats=1)


async def ask_all(stage: Stage) -> None:
    """One call that takes the seat, then ten with deadlines; what was sent is in the server's books."""
    first = asyncio.create_task(stage.ask(max_tokens=100))
    await until(lambda: stage.servers[0].mock.core.running)
    tasks = []
    for slo_s in DEADLINES_S:
        head = {"x-headway-slo-s": str(slo_s), "x-request-id": f"slo-{slo_s}"}
        tasks.append(asyncio.create_task(stage.ask(head)))
    await until(lambda: len(stage.gateway.calls) == 11)
    answers = await asyncio.gather(first, *tasks)
    assert {status for status, _, _ in answers} == {200}


def test_the_earliest_deadline_is_sent_first() -> None:
    async def scene() -> None:
        async with staged(ONE_SEAT, spec=replace(SPEC, window=1, scheduling_policy="fcfs")) as stage:
            await stage.ready()
            await ask_all(stage)
            assert stage.served(0)[1:] == [f"slo-{slo_s}" for slo_s in sorted(DEADLINES_S)]
            async with stage.session.get(stage.servers[0].url + "/mock/stats") as response:
                assert {row["priority"] for row in (await response.json())["admitted"]} == {0}

    play(scene)


def test_a_server_that_ranks_is_told_the_deadline() -> None:
    async def scene() -> None:
        ranking = replace(ONE_SEAT, scheduling_policy="priority")
        async with staged(ranking, spec=SPEC) as stage:
            await stage.ready()
            assert stage.upstream(0).has_priority
            await ask_all(stage)
            async with stage.session.get(stage.servers[0].url + "/mock/stats") as response:
                admitted = (await response.json())["admitted"][2:]
            priorities = [row["priority"] for row in admitted]
            assert priorities == sorted(priorities)
            assert len(set(priorities)) == 10
            assert [row["id"] for row in admitted] == [f"slo-{slo_s}" for slo_s in sorted(DEADLINES_S)]

    play(scene)


def test_a_server_that_refuses_to_rank_is_not_asked_to() -> None:
    seen: list[str | None] = []

    async def chat(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.get("x-vllm-priority"))
        return await says(b'{"choices": []}', kind="application/json")(request)

    async def scene() -> None:
        async with odd_server(chat) as odd, staged(more=(odd,)) as stage:
            await stage.ready()
            assert not stage.gateway.upstreams[0].has_priority
            assert any(kind == "no_priority" for kind, _ in stage.door.notes)
            assert (await stage.ask())[0] == 200
            assert seen == [None]

    play(scene)
