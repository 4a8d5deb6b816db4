"""Prefill here, decode there: what a gateway must pass on, and what goes wrong when it is late."""

import asyncio
from typing import Any

import pytest

from control.adapters.mock import leases
from control.adapters.mock.serve import running
from control.adapters.mock.settings import MockSettings
from control.adapters.mock.text import count_tokens
from tests.adapters.mock.wire import CHAT, QUICK, Wire, chat, events, said, served

ASK = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
PROMPT = "word " * 320


async def prefilled(wire: Wire) -> dict[str, Any]:
    """The kv_transfer_params of a prefill leg."""
    status, told = await wire.post(CHAT, chat(PROMPT, max_tokens=1, kv_transfer_params=ASK))
    assert status == 200
    assert told["usage"]["completion_tokens"] == 1
    transfer = told["kv_transfer_params"]
    assert isinstance(transfer, dict)
    return transfer


@pytest.mark.parametrize("apart", [False, True], ids=["one process", "over HTTP"])
@served(role="prefill")
async def test_the_decoder_takes_over_without_a_prefill(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    if apart:
        monkeypatch.setattr(leases, "PEERS", {})
    transfer = await prefilled(wire)
    assert (await wire.stats())["kv_used_tokens"] > 320
    async with running(MockSettings(role="decode", **QUICK)) as server:
        decoder = Wire(server, wire.http)
        body = chat(PROMPT, max_tokens=12, ignore_eos=True, kv_transfer_params=transfer)
        assert count_tokens(said(events(await decoder.lines(body)))) == 12
        source = 'vllm:prompt_tokens_by_source_total{engine="0",model_name="mock",source='
        assert await decoder.metric(source + '"external_kv_transfer"') > 320
        assert await decoder.metric(source + '"local_compute"') == 0
    told = await wire.stats()
    assert (told["leases"], told["kv_used_tokens"]) == (0, 0)
    assert await wire.metric("vllm:nixl_num_kv_expired_reqs_total") == 0


@served(role="prefill", lease_s=0.05, lookup_s=0.05)
async def test_a_late_decoder_fails_and_the_prefiller_counts_it(wire: Wire) -> None:
    transfer = await prefilled(wire)
    await wire.until(lambda told: told["leases"] == 0)
    assert await wire.metric("vllm:nixl_num_kv_expired_reqs_total") == 1
    assert (await wire.stats())["kv_used_tokens"] == 0
    status, told = await wire.post(CHAT, chat(PROMPT, kv_transfer_params=transfer))
    assert (status, told["error"]["code"]) == (500, 500)
    assert await wire.metric("vllm:nixl_num_failed_transfers_total") == 1
    assert (await wire.post(CHAT, chat(max_tokens=1)))[0] == 200


@pytest.mark.parametrize("spoilt", ["mock_ticket", "remote_block_ids", "remote_engine_id"])
@served(lookup_s=0.05)
async def test_what_is_not_passed_on_whole_is_not_found(wire: Wire, spoilt: str) -> None:
    transfer = await prefilled(wire)
    transfer.pop(spoilt)
    assert (await wire.post(CHAT, chat(PROMPT, kv_transfer_params=transfer)))[0] == 500


@served(lookup_s=0.05)
async def test_a_prefiller_that_is_gone_fails_the_decode_leg_only(wire: Wire) -> None:
    transfer = await prefilled(wire) | {"remote_engine_id": "gone", "remote_port": 1}
    assert (await wire.post(CHAT, chat(PROMPT, kv_transfer_params=transfer)))[0] == 500
    assert (await wire.get("/health"))[0] == 200


@served(gpu="H100", model="Llama-3.1-8B", names=("mock",), speed=20.0)
async def test_a_hand_over_between_two_simulated_gpus(wire: Wire) -> None:
    transfer = await prefilled(wire)
    assert (await wire.stats())["kv_used_tokens"] >= 320
    body = chat(PROMPT, max_tokens=5, ignore_eos=True, kv_transfer_params=transfer)
    _, told = await asyncio.wait_for(wire.post(CHAT, body), 20.0)
    assert told["usage"]["completion_tokens"] == 5
    assert told["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert (await wire.stats())["kv_used_tokens"] == 0
