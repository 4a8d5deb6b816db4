"""OpenAI's own client gets from the gateway what it gets from the server."""

from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError

from control.adapters.mock.settings import MockSettings
from tests.support.stage import play, staged

FAST = MockSettings(ttft_ms=5.0, tpot_ms=1.0)
MESSAGES: Any = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "What is the time in Oslo?"}]
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "clock",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


async def whole(client: AsyncOpenAI, **more: Any) -> Any:
    """An answer without what differs from one to the next."""
    answer = await client.chat.completions.create(model="mock", messages=MESSAGES, seed=3, **more)
    choice = answer.choices[0]
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]  # type: ignore[union-attr]
    assert answer.usage is not None
    return (
        choice.message.content,
        calls,
        choice.finish_reason,
        answer.usage.prompt_tokens,
        answer.usage.completion_tokens,
    )


async def streamed(client: AsyncOpenAI, **more: Any) -> Any:
    """The same of a streamed answer."""
    options: Any = {"include_usage": True}
    words, tools, finish, usage = "", "", None, None
    stream = await client.chat.completions.create(
        model="mock", messages=MESSAGES, seed=3, stream=True, stream_options=options, **more
    )
    async for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            words += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                tools += (call.function.name or "") + (call.function.arguments or "")  # type: ignore[union-attr]
            finish = choice.finish_reason or finish
    assert usage is not None
    return words, tools, finish, usage.prompt_tokens, usage.completion_tokens


@pytest.mark.parametrize("read", [whole, streamed])
@pytest.mark.parametrize(
    "more",
    [
        {"max_tokens": 12},
        {"max_completion_tokens": 5},
        {"tools": TOOLS},
        {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "clock"}}},
    ],
)
def test_the_answer_is_the_servers(read: Any, more: dict[str, Any]) -> None:
    async def scene() -> None:
        async with (
            staged(FAST) as stage,
            AsyncOpenAI(base_url=stage.host.url + "/v1", api_key="x") as through,
            AsyncOpenAI(base_url=stage.servers[0].url + "/v1", api_key="x") as direct,
        ):
            await stage.ready()
            assert await read(through, **more) == await read(direct, **more)

    play(scene)


def test_errors_are_the_clients_own_exceptions() -> None:
    async def scene() -> None:
        async with staged(FAST) as stage, AsyncOpenAI(base_url=stage.host.url + "/v1", api_key="x") as client:
            await stage.ready()
            with pytest.raises(NotFoundError, match="does not exist"):
                await client.chat.completions.create(model="another", messages=MESSAGES)
            with pytest.raises(BadRequestError, match="max_tokens"):
                await client.chat.completions.create(model="mock", messages=MESSAGES, max_tokens=0)
            assert [model.id async for model in client.models.list()] == ["Llama-3.1-8B", "mock"]

    play(scene)
