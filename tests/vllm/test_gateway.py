"""Headway in front of two real servers: its clients notice nothing, and a server that dies costs no call silently."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest
from openai import OpenAI

from tests.support.running import until
from tests.vllm.asking import CITIES, NAMED, WEATHER, pool, user
from tests.vllm.conftest import Pair
from tests.vllm.servers import MODEL, Server
from tests.vllm.stack import Stack, headway_over

pytestmark = pytest.mark.vllm

CLIENTS = 8
CHAT: dict[str, Any] = {"messages": [user("Tell me about tables.")], "max_tokens": 24}
TOOL: dict[str, Any] = {"messages": [user("rain?")], "max_tokens": 64, "tools": [WEATHER], "tool_choice": NAMED}
TEXT: dict[str, Any] = {"prompt": "Select all rows of", "max_tokens": 24}
ASKED = {"chat": CHAT, "named tool": TOOL, "completion": TEXT}


@pytest.fixture
def stack(pair: Pair, tmp_path: Path) -> Iterator[Stack]:
    """Headway in front of the pair."""
    with headway_over(tmp_path, pair) as found:
        yield found


def asked(client: OpenAI, body: dict[str, Any], stream: bool) -> tuple[dict[str, Any], Any]:
    """What a call came to, and the headers of its response; nothing of another call's prompt is in the cache for it."""
    options = {"stream_options": {"include_usage": True}} if stream else {}
    kind = client.chat.completions if "messages" in body else client.completions
    raw = kind.with_raw_response.create(  # type: ignore[union-attr]
        model=MODEL, temperature=0, stream=stream, extra_body={"cache_salt": uuid4().hex}, **body, **options
    )
    given = raw.parse()
    return told(list(given) if stream else [given]), raw.headers


def told(parts: list[Any]) -> dict[str, Any]:
    """Text, tool calls, finish reason and usage of an answer, whether it came whole or in parts."""
    found: dict[str, Any] = {"text": "", "tool": "", "arguments": "", "finish": None, "usage": None}
    for part in parts:
        found["usage"] = part.usage.model_dump() if part.usage else found["usage"]
        for choice in part.choices:
            found["finish"] = choice.finish_reason or found["finish"]
            said = getattr(choice, "delta", None) or getattr(choice, "message", None)
            found["text"] += (said.content if said else choice.text) or ""
            for call in (said.tool_calls if said else None) or ():
                found["tool"] += call.function.name or ""
                found["arguments"] += call.function.arguments or ""
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("asks", ASKED)
def test_an_answer_through_the_gateway_is_that_of_the_server(stack: Stack, pair: Pair, asks: str, stream: bool) -> None:
    with stack.client() as client:
        through, headers = asked(client, ASKED[asks], stream)
    server: Server = getattr(pair, headers["x-headway-instance"])
    with server.client() as client:
        direct, _ = asked(client, ASKED[asks], stream)
    assert through == direct
    assert through["usage"]["completion_tokens"] > 0
    if asks == "named tool":
        assert through["tool"] == "get_weather"
        assert json.loads(through["arguments"])["city"] in CITIES
    else:
        assert through["text"]
        assert through["finish"] == "length"


def test_a_fault_of_the_client_is_told_in_the_servers_words(stack: Stack, pair: Pair) -> None:
    bodies: list[dict[str, Any]] = [{"temperature": -1}, {"max_tokens": 100_000}]
    for body in bodies:
        errors = []
        for one in (stack, pair.small):
            with one.client() as client, pytest.raises(openai.APIStatusError) as refused:
                client.chat.completions.create(**{"model": MODEL, **CHAT, **body})
            errors.append((refused.value.status_code, refused.value.message))
        assert errors[0] == errors[1]
    assert stack.up() == 2


def test_calls_without_a_name_are_spread_by_speed(stack: Stack) -> None:
    with stack.client() as client, pool(CLIENTS) as threads:
        jobs = [threads.submit(asked, client, CHAT, True) for _ in range(3 * CLIENTS)]
        served = Counter(job.result()[1]["x-headway-instance"] for job in jobs)
    assert sum(served.values()) == 3 * CLIENTS
    assert set(served) == {"small", "med"}
    until(stack.is_idle, "the record says that all has ended")


class Callers:
    """Clients that ask again and again until told to stop, and what came of every call: who answered, or the error."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.stop = stack, threading.Event()
        self.ended: list[tuple[float, str]] = []
        self.wrong: list[str] = []

    def loop(self) -> None:
        """One client's calls."""
        with self.stack.client() as client:
            while not self.stop.is_set():
                self.ended.append((time.monotonic(), self.call(client)))

    def call(self, client: OpenAI) -> str:
        """The server of a full answer, or "error" for one that was told clearly; anything else is wrong."""
        try:
            answer, headers = asked(client, CHAT, True)
        except openai.APIError as error:
            if isinstance(error, openai.APIConnectionError) or not error.message:
                self.wrong.append(repr(error))
            return "error"
        except httpx2.TransportError as error:
            self.wrong.append(repr(error))
            return "error"
        if answer["finish"] != "length" or answer["usage"]["completion_tokens"] != CHAT["max_tokens"]:
            self.wrong.append(f"{answer}")
        return str(headers["x-headway-instance"])

    def since(self, at_s: float, name: str) -> int:
        """Calls since then that ended so."""
        return sum(ended_s > at_s and how == name for ended_s, how in list(self.ended))


def test_a_server_killed_under_load_costs_errors_at_most_and_comes_back_by_itself(
    stack: Stack, pair: Pair, logs: Path
) -> None:
    callers = Callers(stack)
    with pool(CLIENTS) as threads:
        jobs = [threads.submit(callers.loop) for _ in range(CLIENTS)]
        try:
            until(lambda: callers.since(0.0, "small") >= CLIENTS, "the server that will die answers")
            pair.small.kill()
            killed_s = time.monotonic()
            until(lambda: stack.up() == 1, "it is taken out")
            out_s = time.monotonic()
            until(lambda: callers.since(out_s, "med") >= CLIENTS, "the other one carries on")
            pair.small.end()
            pair.small.start(logs)
            pair.small.wait_ready()
            back_s = time.monotonic()
            until(lambda: callers.since(back_s, "small") >= CLIENTS, "it answers again")
        finally:
            callers.stop.set()
        for job in jobs:
            job.result()
    assert callers.wrong == []
    assert callers.since(killed_s, "error") <= CLIENTS
    assert stack.up() == 2
    until(stack.is_idle, "the record says that all has ended")
    for name in ("headway_instance_waiting_calls", "headway_instance_in_flight_calls"):
        assert stack.metric(name) == 0
