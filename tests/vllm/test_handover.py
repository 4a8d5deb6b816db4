"""Prefill here, decode there: the two legs of a call, done by hand, and what the servers say about it."""

from typing import Any

import pytest

from tests.support.running import until
from tests.vllm.asking import Answer, ask, facts, user
from tests.vllm.conftest import Handover
from tests.vllm.servers import BLOCK_TOKENS, MODEL, Server

pytestmark = pytest.mark.vllm

PREFILL_LEG = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    **dict.fromkeys(("remote_engine_id", "remote_block_ids", "remote_host", "remote_port")),
}
SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")


def prefill(server: Server, *messages: Any) -> tuple[str, dict[str, Any]]:
    """The first leg: its token, and the parameters for the second."""
    with server.client() as client:
        given = client.chat.completions.create(
            model=MODEL,
            messages=messages,
            max_tokens=1,
            temperature=0,
            extra_body={"ignore_eos": True, "kv_transfer_params": PREFILL_LEG},
        )
    return given.choices[0].message.content or "", (given.model_extra or {})["kv_transfer_params"]


def prompt_tokens(server: Server) -> dict[str, float]:
    """Prompt tokens so far, by where their KV came from."""
    return {source: server.metric("vllm:prompt_tokens_by_source_total", source=source) or 0.0 for source in SOURCES}


def gained(server: Server, before: dict[str, float], tokens: int) -> dict[str, float]:
    """What came to `before`, once the server has counted a prompt of that many tokens."""

    def counted() -> dict[str, float] | None:
        gain = {source: count - before[source] for source, count in prompt_tokens(server).items()}
        return gain if sum(gain.values()) >= tokens else None

    gain: dict[str, float] = until(counted, f"{tokens} prompt tokens counted by {server}")
    return gain


def handed_over(handover: Handover, *messages: Any) -> tuple[str, Answer]:
    """Both legs of a call: the first one's token, and the second one's answer."""
    token, params = prefill(handover.prefill, *messages)
    return token, ask(handover.decode, *messages, tokens=6, kv_transfer_params=params)


def test_the_decoder_takes_over_the_prompt_and_computes_none_of_it(handover: Handover) -> None:
    before = prompt_tokens(handover.decode)
    token, answer = handed_over(handover, user(facts(50, "alpha")))
    assert answer.text.startswith(token)
    tokens = answer.prompt_tokens
    assert gained(handover.decode, before, tokens) == {**dict.fromkeys(SOURCES, 0), "external_kv_transfer": tokens}
    for server in handover:
        assert server.metric("vllm:nixl_num_failed_transfers_total") == 0
        assert server.metric("vllm:nixl_num_kv_expired_reqs_total") == 0


def test_the_prefiller_keeps_no_kv_in_use_after_the_hand_over(handover: Handover) -> None:
    handed_over(handover, user(facts(50, "beta")))
    until(lambda: handover.prefill.metric("vllm:kv_cache_usage_perc") == 0, "the prefiller's blocks are free")
    assert handover.prefill.metric("vllm:num_requests_running") == 0


def test_the_second_turn_finds_the_first_in_the_decoders_cache(handover: Handover) -> None:
    first = user(facts(50, "gamma"))
    _, answer = handed_over(handover, first)
    before = prompt_tokens(handover.decode)
    second = ask(handover.decode, first, {"role": "assistant", "content": answer.text}, user("go on"))
    cached = second.cached_tokens
    assert cached >= answer.prompt_tokens // BLOCK_TOKENS * BLOCK_TOKENS
    computed = second.prompt_tokens - cached
    gain = gained(handover.decode, before, second.prompt_tokens)
    assert gain == {"local_compute": computed, "local_cache_hit": cached, "external_kv_transfer": 0}


def test_a_prefiller_out_of_reach_is_an_error_that_the_decoder_survives(handover: Handover) -> None:
    message = user(facts(50, "delta"))
    _, params = prefill(handover.prefill, message)
    nowhere = {**params, "remote_engine_id": "nobody", "remote_port": 9}
    with pytest.raises(Exception, match="Internal server error"):
        ask(handover.decode, message, kv_transfer_params=nowhere)
    assert ask(handover.decode, user("still there?"), tokens=2).text
    assert (handover.decode.metric("vllm:nixl_num_failed_transfers_total") or 0) >= 1
