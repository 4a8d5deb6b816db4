"""A prefiller and a decoder: two legs, KV moved as the policy says, and nothing kept where a leg fails."""

import asyncio
from typing import Any

import orjson
import pytest
from aiohttp import web

from control.adapters.mock.settings import MockSettings
from tests.support.odd import odd_server, says
from tests.support.stage import Stage, play, staged, until

PREFILLER = MockSettings(role="prefill", ttft_ms=5.0, tpot_ms=1.0)
DECODER = MockSettings(role="decode", ttft_ms=5.0, tpot_ms=1.0)


async def turn(stage: Stage, session: str, k: int, **changes: Any) -> bytes:
    """One turn of a session, which must be answered whole."""
    head = {"x-session-id": session, "x-request-id": f"{session}-{k}"}
    messages = [{"role": "user", "content": f"{session} {j} " + "word " * 200} for j in range(k + 1)]
    more = {"messages": messages, "min_tokens": 8, "stream_options": {"include_usage": True}}
    status, text = await stage.stream(head, **(more | changes))
    assert status == 200, text
    assert text.rstrip().endswith(b"[DONE]")
    assert b'"error"' not in text
    return text


@pytest.mark.parametrize(("policy", "moved"), [("conserve", 1), ("full-disagg", 5)])
def test_a_conversation_moves_its_kv_as_the_policy_says(policy: str, moved: int) -> None:
    async def scene() -> None:
        async with staged(PREFILLER, DECODER, policy=policy) as stage:
            await stage.ready()
            for k in range(5):
                await turn(stage, "talk", k)
            # The server refuses stream_options and min_tokens in a leg of one token, and fails a decode leg whose
            # kv_transfer_params are not whole: both would show as a detour.
            assert stage.gateway.totals.faults == 0
            assert stage.gateway.totals.hand_overs == moved
            assert stage.gateway.totals.late_hand_overs == 0
            assert stage.served(0) == [f"talk-{k}" for k in range(moved)]
            assert stage.served(1) == [f"talk-{k}" for k in range(5)]
            assert stage.door.live.world.instances["sent"].tolist() == [moved, 0]

    play(scene)


def test_what_the_prefiller_gives_is_passed_on_whole() -> None:
    given = {"do_remote_prefill": True, "remote_block_ids": [[1, 2], [3]], "news": {"deep": [None, 1.5, "x"]}}
    seen: list[dict[str, Any]] = []

    async def chat(request: web.Request) -> web.StreamResponse:
        seen.append(await request.json())
        if seen[-1]["max_tokens"] == 1:
            return web.json_response({"choices": [], "kv_transfer_params": given})
        return await says(b'data: {"choices": [{}]}\n\ndata: [DONE]\n\n')(request)

    async def scene() -> None:
        async with (
            odd_server(chat, "prefill", "p") as prefiller,
            odd_server(chat, "decode", "d") as decoder,
            staged(more=(prefiller, decoder), policy="conserve") as stage,
        ):
            await stage.ready()
            await turn(stage, "talk", 0, temperature=0.5)
            prefill, decode = seen
            assert {"stream_options", "min_tokens"} & set(prefill) == set()
            assert prefill["stream"] is False
            assert prefill["kv_transfer_params"]["do_remote_decode"] is True
            assert decode["kv_transfer_params"] == given
            assert decode["min_tokens"] == 8
            assert prefill["temperature"] == decode["temperature"] == 0.5

    play(scene)


def test_a_decoder_that_fails_costs_a_new_start() -> None:
    async def scene() -> None:
        async with staged(PREFILLER, DECODER, DECODER, policy="conserve") as stage:
            await stage.ready()
            stage.fault(1, error_rate=1.0)
            await asyncio.gather(*(turn(stage, f"talk{k}", 0) for k in range(4)))
            assert stage.upstream(1).faults["sick"] > 0
            assert len(stage.served(2)) >= 4  # and what was fetched only to be let go of
            await until(lambda: not stage.servers[0].mock.leases.kept, 3.0)

    play(scene)


def test_without_another_decoder_the_client_is_told() -> None:
    async def scene() -> None:
        short = MockSettings(role="prefill", ttft_ms=5.0, tpot_ms=1.0, lease_s=0.5)
        async with staged(short, DECODER, policy="conserve") as stage:
            await stage.ready()
            stage.fault(1, error_rate=1.0)
            status, body, _ = await stage.ask({"x-session-id": "a"})
            assert status in (502, 503)
            assert "500" in body["error"]["message"]
            await until(lambda: not stage.servers[0].mock.leases.kept, 3.0)

    play(scene)


@pytest.mark.parametrize("said", [b'{"choices": []}', b'{"kv_transfer_params": null}', b"{", b"[]"])
def test_a_prefiller_that_hands_nothing_over_has_failed(said: bytes) -> None:
    async def scene() -> None:
        async with (
            odd_server(says(said, kind="application/json"), "prefill") as odd,
            staged(DECODER, policy="conserve", more=(odd,)) as stage,
        ):
            await stage.ready()
            status, body, headers = await stage.ask({"x-session-id": "a"})
            assert stage.gateway.upstreams[1].faults["sick"] == 1
            assert status == 200  # the decoder can do it all
            assert headers["x-headway-instance"] == "s0"
            assert orjson.dumps(body)

    play(scene)


def test_a_late_hand_over_is_counted() -> None:
    async def scene() -> None:
        async with staged(PREFILLER, DECODER, policy="conserve", lease_s=0.01) as stage:
            await stage.ready()
            stage.fault(1, latency_ms=50.0)
            await turn(stage, "talk", 0)
            assert stage.gateway.totals.late_hand_overs == 1
            assert any(kind == "late_hand_over" for kind, _ in stage.door.notes)

    play(scene)
