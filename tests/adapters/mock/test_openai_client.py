"""The unmodified OpenAI client works against a simulated server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import orjson
import pytest

from control.adapters.mock.text import count_tokens
from tests.adapters.mock.wire import Wire, served

ASKED: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
}
TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
NAMED: Any = {"type": "function", "function": {"name": "weather"}}


@asynccontextmanager
async def client_of(wire: Wire) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client of the server behind `wire`."""
    client = openai.AsyncOpenAI(base_url=wire.server.url + "/v1", api_key="none", max_retries=0)
    async with client:
        yield client


@served()
async def test_a_whole_answer(wire: Wire) -> None:
    async with client_of(wire) as client:
        told = await client.chat.completions.create(model="mock", messages=ASKED, max_tokens=12, seed=1)
    assert told.usage is not None
    assert count_tokens(told.choices[0].message.content or "") == told.usage.completion_tokens
    assert told.usage.prompt_tokens_details is not None


@served()
async def test_a_stream_with_usage(wire: Wire) -> None:
    async with client_of(wire) as client:
        stream = await client.chat.completions.create(
            model="mock",
            messages=ASKED,
            max_completion_tokens=12,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"ignore_eos": True},
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert count_tokens(text) == 12
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 12


@pytest.mark.parametrize(("choice", "reason"), [(NAMED, "stop"), ("required", "tool_calls"), ("auto", "tool_calls")])
@served()
async def test_tool_calls_whole_and_streamed(wire: Wire, choice: Any, reason: str) -> None:
    asked: dict[str, Any] = {"model": "mock", "messages": ASKED, "tools": TOOLS, "tool_choice": choice}
    async with client_of(wire) as client:
        told = await client.chat.completions.create(**asked)
        stream = await client.chat.completions.create(**asked, stream=True)
        chunks = [chunk async for chunk in stream]
    call: Any = (told.choices[0].message.tool_calls or [])[0]
    assert told.choices[0].finish_reason == reason
    assert call.function.name == "weather"
    assert orjson.loads(call.function.arguments) == {"city": "some", "days": 1, "unit": "C"}
    parts = [part for chunk in chunks for choice in chunk.choices for part in choice.delta.tool_calls or []]
    assert [part.function.name for part in parts if part.function and part.function.name] == ["weather"]
    assert "".join(part.function.arguments or "" for part in parts if part.function) == call.function.arguments
    assert chunks[-1].choices[0].finish_reason == reason


@served()
async def test_an_agent_that_has_its_tools_answer_gets_text(wire: Wire) -> None:
    async with client_of(wire) as client:
        asked = await client.chat.completions.create(model="mock", messages=ASKED, tools=TOOLS)
        call = (asked.choices[0].message.tool_calls or [])[0]
        back: Any = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
        messages = [*ASKED, asked.choices[0].message.model_dump(), back]
        told = await client.chat.completions.create(model="mock", messages=messages, tools=TOOLS)
    assert told.choices[0].finish_reason == "stop"
    assert told.choices[0].message.content
    assert not told.choices[0].message.tool_calls


@served()
async def test_refusals_are_the_clients_own_exceptions(wire: Wire) -> None:
    async with client_of(wire) as client:
        with pytest.raises(openai.NotFoundError, match="does not exist"):
            await client.chat.completions.create(model="other", messages=ASKED)
        with pytest.raises(openai.BadRequestError, match="max_tokens"):
            await client.chat.completions.create(model="mock", messages=ASKED, max_tokens=-1)
        await wire.fault(error_after=3)
        stream = await client.chat.completions.create(model="mock", messages=ASKED, max_tokens=20, stream=True)
        with pytest.raises(openai.APIError):
            [chunk async for chunk in stream]


@served(tpot_ms=50.0)
async def test_closing_a_stream_reaches_the_engine(wire: Wire) -> None:
    async with client_of(wire) as client:
        stream = await client.chat.completions.create(model="mock", messages=ASKED, stream=True, max_tokens=20_000)
        async for _ in stream:
            break
        await stream.close()
        await wire.until(lambda told: (told["cancelled"], told["running"]) == (1, 0))


@served(names=("one", "two"))
async def test_the_list_of_models(wire: Wire) -> None:
    async with client_of(wire) as client:
        assert [model.id async for model in client.models.list()] == ["one", "two"]
