"""Requests through the gateway to simulated servers over real sockets."""

import asyncio

import orjson
import pytest

from control.adapters.mock.settings import MockSettings
from tests.support.stage import play, staged, until

FAST = MockSettings(ttft_ms=5.0, tpot_ms=1.0)


def test_an_answer_is_passed_on_with_who_gave_it() -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            status, body, headers = await stage.ask()
            assert status == 200
            assert body["usage"]["completion_tokens"] == 8
            assert headers["x-headway-instance"] == "s0"

    play(scene)


def test_a_stream_is_passed_on_byte_for_byte() -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            status, through = await stage.stream(seed=1)
            assert status == 200
            assert through.rstrip().endswith(b"data: [DONE]")
            assert b'"usage":{' not in through.replace(b" ", b"")
            _, asked = await stage.stream(seed=1, stream_options={"include_usage": True})
            assert b'"completion_tokens":8' in asked.replace(b" ", b"")
            words = [
                "".join(
                    choice["delta"].get("content") or ""
                    for line in answer.split(b"\n\n")
                    if line.startswith(b"data: {")
                    for choice in orjson.loads(line[6:])["choices"]
                )
                for answer in (through, asked)
            ]
            assert words[0] == words[1] != ""

    play(scene)


def test_a_client_that_leaves_frees_the_seat_of_its_server() -> None:
    async def scene() -> None:
        async with staged(MockSettings(ttft_ms=5.0, tpot_ms=50.0)) as stage:
            await stage.ready()
            task = asyncio.create_task(stage.stream(max_tokens=1000))
            await until(lambda: stage.gateway.calls and next(iter(stage.gateway.calls.values())).first_s)
            task.cancel()
            await until(lambda: not stage.gateway.calls)
            await until(lambda: stage.servers[0].mock.seen["cancelled"] == 1)
            assert stage.gateway.totals.by_state == {"cancelled": 1}

    play(scene)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"messages": [], "model": 3}', 400),
        (b'{"messages": [], "model": "x"}', 404),
    ],
)
def test_bad_bodies_get_one_clear_line(body: bytes, status: int) -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            async with stage.session.post(stage.host.url + "/v1/chat/completions", data=body) as response:
                assert response.status == status
                assert (await response.json())["error"]["message"]

    play(scene)
