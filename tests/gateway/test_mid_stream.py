"""What goes wrong inside a stream: the client is told, once, and the books say that the call failed."""

import asyncio
from typing import Any

import pytest

from control.adapters.mock.settings import MockSettings
from control.gateway.upstream import Health
from tests.support.odd import odd_server, says
from tests.support.stage import play, staged, until

FAST = MockSettings(ttft_ms=5.0, tpot_ms=1.0)
TOKEN = b'data: {"choices": [{"index": 0, "delta": {"content": "x"}}]}\n\n'


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"cut_after": 3}, b"broke off"),
        ({"stall_after": 3}, b"nothing for too long"),
        ({"error_after": 3}, b"EngineCore encountered an issue"),
    ],
)
def test_a_stream_that_fails_says_so(fault: dict[str, Any], said: bytes) -> None:
    async def scene() -> None:
        async with staged(FAST, stall_s=0.5) as stage:
            await stage.ready()
            stage.fault(0, **fault)
            status, text = await stage.stream(max_tokens=1000)
            assert status == 200
            assert text.count(b'"error"') == 1
            assert said in text
            assert stage.gateway.totals.by_state == {"failed": 1}
            assert stage.upstream(0).faults["sick"] == 1
            await until(lambda: not stage.servers[0].mock.core.running)  # the engine generates for nobody

    play(scene)


def test_streams_that_stall_open_the_breaker() -> None:
    async def scene() -> None:
        async with staged(FAST, stall_s=0.3, probe_s=60.0) as stage:
            await stage.ready()
            stage.fault(0, stall_after=2)
            await asyncio.gather(*(stage.stream(max_tokens=50) for _ in range(3)))
            assert stage.upstream(0).health is Health.SICK
            status, _ = await stage.stream()
            assert status == 503

    play(scene)


@pytest.mark.parametrize("fault", [{"malformed_sse": True}, {"keep_alive": True}, {"slow_stream": 20.0}])
def test_an_odd_stream_is_passed_on_whole(fault: dict[str, Any]) -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            stage.fault(0, **fault)
            status, text = await stage.stream(max_tokens=10)
            assert status == 200
            assert text.rstrip().endswith(b"data: [DONE]")
            assert b'"finish_reason":"length"' in text
            assert (b": keep-alive" in text) == ("keep_alive" in fault)
            assert stage.gateway.totals.by_state == {"completed": 1}
            with stage.door.lock:
                stage.door.drain()
            assert stage.gateway.door.live.world.instances["decode_tokens"][0] == 9  # and the first

    play(scene)


@pytest.mark.parametrize("parts", [(TOKEN, TOKEN), (TOKEN, b'data: {"choices": [')])
def test_a_stream_without_an_end_is_an_error(parts: tuple[bytes, ...]) -> None:
    async def scene() -> None:
        async with odd_server(says(*parts)) as odd, staged(more=(odd,)) as stage:
            await stage.ready()
            status, text = await stage.stream()
            assert status == 200
            assert text.startswith(TOKEN)
            assert text.count(b'"error"') == 1
            assert stage.gateway.totals.by_state == {"failed": 1}

    play(scene)


def test_the_end_of_a_stream_may_lack_its_empty_line() -> None:
    async def scene() -> None:
        async with odd_server(says(TOKEN, b"data: [DONE]\n")) as odd, staged(more=(odd,)) as stage:
            await stage.ready()
            assert await stage.stream() == (200, TOKEN + b"data: [DONE]\n")
            assert stage.gateway.totals.by_state == {"completed": 1}

    play(scene)


def test_a_stream_may_be_answered_in_one_piece() -> None:
    said = b'{"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}}'

    async def scene() -> None:
        async with odd_server(says(said, kind="application/json")) as odd, staged(more=(odd,)) as stage:
            await stage.ready()
            assert await stage.stream() == (200, said)
            assert stage.gateway.totals.by_state == {"completed": 1}

    play(scene)


def test_a_client_that_does_not_read_is_dropped_and_its_server_not_blamed() -> None:
    many = TOKEN.replace(b'"x"', b'"' + b"x" * 100_000 + b'"')

    async def scene() -> None:
        async with odd_server(says(*[many] * 400)) as odd, staged(more=(odd,), stall_s=0.5) as stage:
            await stage.ready()
            host, port = stage.host.url.removeprefix("http://").split(":")
            body = b'{"messages": [], "stream": true}'
            _, writer = await asyncio.open_connection(host, int(port), limit=1024)
            head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
            writer.write(head % len(body) + body)
            await until(lambda: stage.gateway.totals.by_state)
            assert stage.gateway.totals.by_state == {"cancelled": 1}
            assert stage.gateway.upstreams[0].faults["sick"] == 0
            writer.close()

    play(scene)
