"""What clients and servers may not do to the gateway, however hard they try."""

import asyncio
from dataclasses import replace

import orjson
import pytest
from aiohttp import web

from control.adapters.mock.settings import MockSettings
from control.gateway import openai
from control.gateway.openai import Stream, usage_of
from tests.support.odd import odd_server, says
from tests.support.stage import BODY, SPEC, play, staged

FAST = MockSettings(ttft_ms=2.0, tpot_ms=1.0)


def test_a_body_nested_too_deeply_to_be_written_again_is_refused() -> None:
    async def scene() -> None:
        async with staged(FAST, spec=replace(SPEC, served_model="mock")) as stage:
            await stage.ready()
            deep = b'{"model": "Llama-3.1-8B", "messages": [], "x": ' + b"[" * 300 + b"]" * 300 + b"}"
            async with stage.session.post(stage.host.url + "/v1/chat/completions", data=deep) as response:
                assert response.status == 400
                assert "nested too deeply" in (await response.json())["error"]["message"]
            await stage.check_closed()

    play(scene)


def test_token_counts_beyond_belief_are_not_believed() -> None:
    usage = {"prompt_tokens": 2**40 - 1, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": -4}}
    assert usage_of({"usage": usage}) == (-1, 3, -1)


def test_an_event_without_an_end_is_given_up() -> None:
    stream = Stream(False)
    part = b"data: " + b"x" * 2**16
    for _ in range(openai.MOST_EVENT // len(part)):
        assert stream.feed(part) == b""
    with pytest.raises(openai.TooLongError, match="4,194,304 bytes"):
        stream.feed(part * 2)


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked() -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            host, port = stage.host.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            body = orjson.dumps(BODY | {"max_tokens": 2})
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
            writer.write(head.encode() + b"Expect: 100-continue\r\n\r\n")
            async with asyncio.timeout(10.0):
                assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
                assert await reader.readline() == b"\r\n"
                writer.write(body)
                assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            writer.close()
            await stage.check_closed()

    play(scene)


def test_models_without_a_name_are_passed_over() -> None:
    async def models(request: web.Request) -> web.StreamResponse:
        return web.json_response({"data": [{"id": 5}, {"id": None}]})

    async def scene() -> None:
        async with (
            odd_server(says(b"{}", kind="application/json"), models=models) as odd,
            staged(FAST, more=(odd,)) as stage,
        ):
            await stage.ready(1)
            async with stage.session.get(stage.host.url + "/v1/models") as response:
                assert response.status == 200

    play(scene)


def test_a_client_that_leaves_with_all_of_its_answer_did_not_cancel() -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            whole = b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'
            stream = Stream(False)
            stream.feed(whole)
            assert stream.is_finished
            await stage.ask()
            assert stage.gateway.totals.by_state == {"completed": 1}

    play(scene)
