"""A real server beside a simulated instance: one gateway, one wire."""

import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest
from openai import AsyncOpenAI

from control.adapters.mock.settings import MockSettings
from control.twin.acts import kill
from tests.support.stage import SPEC, Stage, play, staged, until

FAST = MockSettings(ttft_ms=5.0, tpot_ms=1.0)
SIM = replace(SPEC, name="sim")


def mixed(*more: Any) -> Any:
    """One of each, in turn."""
    return staged(FAST, policy="rr-fcfs", more=(SIM, *more))


def test_both_answer_alike() -> None:
    async def scene() -> None:
        async with mixed() as stage:
            await stage.ready()
            answers = [await stage.ask() for _ in range(4)]
            assert {headers["x-headway-instance"] for _, _, headers in answers} == {"s0", "sim"}
            for status, body, _ in answers:
                assert status == 200
                assert body["usage"]["completion_tokens"] == 8
                assert body["choices"][0]["finish_reason"]
            for _ in range(2):
                _, text = await stage.stream(stream_options={"include_usage": True})
                events = [event.removeprefix(b"data: ") for event in text.strip().split(b"\n\n")]
                assert events[-1] == b"[DONE]"
                assert orjson.loads(events[-2])["usage"]["completion_tokens"] == 8

    play(scene)


def test_the_openai_client_reads_both() -> None:
    async def scene() -> None:
        async with mixed() as stage, AsyncOpenAI(base_url=stage.host.url + "/v1", api_key="x") as client:
            await stage.ready()
            messages: Any = [{"role": "user", "content": "hello"}]
            for _ in range(2):
                answer = await client.chat.completions.create(model="Llama-3.1-8B", messages=messages, max_tokens=4)
                assert answer.choices[0].message.content
                stream = await client.chat.completions.create(
                    model="Llama-3.1-8B", messages=messages, max_tokens=4, stream=True
                )
                said = [choice.delta.content or "" async for chunk in stream for choice in chunk.choices]
                assert "".join(said)
                text = await client.completions.create(model="Llama-3.1-8B", prompt="hello", max_tokens=4)
                assert text.choices[0].text

    play(scene)


def lose_sim(stage: Stage) -> None:
    """The simulated instance fails."""
    with stage.door.lock:
        kill(stage.door.live.world, 1)


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_a_lost_simulated_instance_moves_or_ends_in_words(stream: bool) -> None:
    async def scene() -> None:
        async with mixed() as stage:
            await stage.ready()
            ask: Any = stage.stream if stream else stage.ask
            tasks = [asyncio.create_task(ask(max_tokens=300)) for _ in range(2)]
            await until(lambda: any(call.tokens > 2 for call in stage.gateway.calls.values()))
            lose_sim(stage)
            answers = await asyncio.gather(*tasks)
            if not stream:
                assert [answer[0] for answer in answers] == [200, 200]
                assert {answer[2]["x-headway-instance"] for answer in answers} == {"s0"}
                return
            broken = [text for _, text in answers if b'"error"' in text]
            assert len(broken) == 1
            assert b"the simulated instance was lost" in broken[0]
            assert b"[DONE]" not in broken[0]

    play(scene)


def test_without_another_server_the_client_is_told() -> None:
    async def scene() -> None:
        async with mixed() as stage:
            await stage.ready()
            await stage.ask()
            task = asyncio.create_task(stage.stream(max_tokens=300))
            await until(lambda: any(call.said for call in stage.gateway.calls.values()))
            with stage.door.lock:
                stage.gateway.suspend(stage.upstream(0))
                kill(stage.door.live.world, 1)
            _, text = await task
            assert text.count(b'"error"') == 1
            assert b"[DONE]" not in text
            await stage.ready()

    play(scene)


def test_a_client_of_a_simulated_instance_leaves() -> None:
    async def scene() -> None:
        async with mixed() as stage:
            await stage.ready()
            await stage.ask()
            task = asyncio.create_task(stage.stream(max_tokens=3000))
            await until(lambda: any(call.said for call in stage.gateway.calls.values()))
            task.cancel()
            await until(lambda: stage.gateway.totals.by_state.get("cancelled") == 1)

    play(scene)
