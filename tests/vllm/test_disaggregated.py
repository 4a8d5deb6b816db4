"""Headway over a real prefiller and a real decoder: KV moves once, and nothing is left behind."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.running import until
from tests.vllm.asking import Answer, facts, opened, user
from tests.vllm.conftest import Handover
from tests.vllm.servers import BLOCK_TOKENS, MODEL, Server
from tests.vllm.stack import Stack, headway_over
from tests.vllm.test_handover import SOURCES, gained, prompt_tokens

pytestmark = pytest.mark.vllm

TURNS = 5


@pytest.fixture
def stack(handover: Handover, tmp_path: Path) -> Iterator[Stack]:
    """Headway in front of the two, whose decoder takes one call at a time."""
    for server in handover:
        server.forget()
    with headway_over(tmp_path, handover, "conserve", windows={"decode": 1}) as found:
        yield found


def turn(stack: Stack, messages: list[Any], session: str) -> Answer:
    """One turn of a conversation, streamed to its end."""
    answer = Answer()
    with stack.client() as client:
        named = client.with_options(default_headers={"x-session-id": session})
        with opened(named, *messages, tokens=16) as stream:
            for chunk in stream:
                answer.take(chunk)
    assert answer.finish_reason == "length"
    return answer


def test_a_conversation_moves_its_kv_once_and_stays_with_its_decoder(stack: Stack, handover: Handover) -> None:
    asked = handover.prefill.metric("vllm:request_success_total") or 0.0
    messages, gains = list[Any](), list[dict[str, float]]()
    for number in range(TURNS):
        before = prompt_tokens(handover.decode)
        messages.append(user(facts(40, f"turn {number}")))
        answer = turn(stack, messages, "five turns")
        gains.append(gained(handover.decode, before, answer.prompt_tokens))
        messages.append({"role": "assistant", "content": answer.text})
        if number == 0:
            assert gains[0] == {**dict.fromkeys(SOURCES, 0), "external_kv_transfer": answer.prompt_tokens}
            held = answer.prompt_tokens
        else:
            assert gains[-1]["external_kv_transfer"] == 0
            assert gains[-1]["local_cache_hit"] >= held // BLOCK_TOKENS * BLOCK_TOKENS
            assert gains[-1]["local_compute"] < answer.prompt_tokens - held + 2 * BLOCK_TOKENS
            held = answer.prompt_tokens
    until(lambda: (handover.prefill.metric("vllm:request_success_total") or 0.0) - asked == 1, "one prefill leg")
    assert stack.metric("headway_kv_hand_overs_total") == 1
    assert stack.metric("headway_kv_late_hand_overs_total") == 0
    assert stack.metric("headway_instance_kv_transfers_total", instance="prefill") == 1
    assert stack.metric("headway_instance_pinned_conversations", instance="decode") == 1
    until(stack.is_idle, "the record says that all has ended")
    told = stack.metric("headway_instance_cached_tokens_total", instance="decode")
    assert 0 < told <= sum(gain["local_cache_hit"] for gain in gains)


def left_alone(stack: Stack, message: Any, tokens: int) -> HTTPConnection:
    """The connection of a client that has asked and does not read; closing it is leaving."""
    connection = HTTPConnection("127.0.0.1", stack.port)
    body = {"model": MODEL, "messages": [message], "max_tokens": tokens, "ignore_eos": True, "stream": True}
    connection.request("POST", "/v1/chat/completions", orjson.dumps(body), {"content-type": "application/json"})
    return connection


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """A server that stands still, its connections open."""
    processes = server.processes()
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGCONT)


def check_nothing_is_left(stack: Stack, servers: tuple[Server, ...]) -> None:
    """No call, seat or KV block is held by anybody, and no KV had to run out."""
    for server in servers:
        until(lambda server=server: server.metric("vllm:num_requests_running") == 0, f"{server} runs nothing")  # type: ignore[misc]
        until(lambda server=server: server.metric("vllm:kv_cache_usage_perc") == 0, f"{server} holds no KV")  # type: ignore[misc]
        assert not server.metric("vllm:nixl_num_kv_expired_reqs_total")
    for name in ("headway_instance_waiting_calls", "headway_instance_in_flight_calls"):
        until(lambda name=name: stack.metric(name) == 0, f"{name} is 0")  # type: ignore[misc]
    assert stack.metric("headway_instance_queued_work_seconds") == 0


def test_a_client_that_leaves_in_the_prefill_leg_strands_nothing(stack: Stack, handover: Handover) -> None:
    with frozen(handover.prefill):
        connection = left_alone(stack, user(facts(200, "leaves early")), tokens=8)
        until(lambda: stack.metric("headway_instance_in_flight_calls", instance="prefill") == 1, "it prefills")
        connection.close()
        until(lambda: stack.metric("headway_open_requests") == 0, "the gateway has noticed")
    check_nothing_is_left(stack, handover)
    assert stack.metric("headway_kv_hand_overs_total") == 0
    assert turn(stack, [user(facts(60, "after"))], "after").text


def test_a_client_that_leaves_between_the_legs_strands_nothing(stack: Stack, handover: Handover) -> None:
    first = left_alone(stack, user(facts(50, "stays")), tokens=3000)
    until(lambda: stack.metric("headway_instance_in_flight_calls", instance="decode") == 1, "the decoder is taken")
    second = left_alone(stack, user(facts(200, "leaves")), tokens=8)
    until(lambda: stack.metric("headway_instance_calls_finished_total", instance="prefill") == 2, "it is prefilled")
    assert stack.metric("headway_open_requests") == 2
    second.close()
    until(lambda: stack.metric("headway_open_requests") == 1, "the gateway has noticed")
    until(lambda: handover.prefill.metric("vllm:kv_cache_usage_perc") == 0, "the prefiller has let go of its KV")
    assert stack.metric("headway_instance_in_flight_calls", instance="decode") == 1
    first.close()
    check_nothing_is_left(stack, handover)
    assert turn(stack, [user(facts(60, "after"))], "after").text
