"""What Headway relies on in a real server's answers: a release that changes it shows here first."""

import json
from typing import Any

import openai
import pytest

from tests.vllm.asking import CITIES, DAYS, NAMED, WEATHER, ask, facts, user
from tests.vllm.servers import BLOCK_TOKENS, CONTEXT_TOKENS, MODEL, Server

pytestmark = pytest.mark.vllm

GAUGES = [
    "num_requests_running",
    "num_requests_waiting",
    "num_requests_waiting_by_reason",
    "kv_cache_usage_perc",
    "engine_sleep_state",
    "cache_config_info",
]
COUNTERS = [
    "prefix_cache_queries",
    "prefix_cache_hits",
    "prompt_tokens",
    "prompt_tokens_by_source",
    "generation_tokens",
    "num_preemptions",
    "request_success",
    "admission_rejections",
]
HISTOGRAMS = [
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_prompt_tokens",
    "request_generation_tokens",
    "iteration_tokens_total",
]


def test_a_server_tells_that_it_is_well_and_what_it_serves(either: Server) -> None:
    assert either.get("/health") == (200, "")
    assert json.loads(either.get("/version")[1])["version"]
    (served,) = json.loads(either.get("/v1/models")[1])["data"]
    assert (served["id"], served["max_model_len"]) == (MODEL, CONTEXT_TOKENS)
    assert json.loads(either.get("/load")[1]) == {"server_load": 0}


def test_every_metric_that_is_read_is_there_under_its_name(small: Server) -> None:
    text = small.get("/metrics")[1]
    wanted = [f"# TYPE vllm:{name} gauge" for name in GAUGES]
    wanted += [f"# TYPE vllm:{name}_total counter" for name in COUNTERS]
    wanted += [f"# TYPE vllm:{name} histogram" for name in HISTOGRAMS]
    assert [line for line in wanted if line not in text.splitlines()] == []
    assert small.metric("vllm:cache_config_info", num_gpu_blocks="2048", kv_cache_size_tokens="65536") == 1
    assert small.metric("vllm:prompt_tokens_by_source_total", source="local_compute") is not None


def test_a_stream_ends_with_its_usage(either: Server) -> None:
    answer = ask(either, user("hello"), tokens=12)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 12
    assert answer.prompt_tokens > 0
    assert answer.finish_reason == "length"
    assert answer.text


def test_a_prompt_seen_before_comes_from_the_cache(either: Server) -> None:
    salt, prompt = f"seen {either.port}", user(facts(30))
    first, second = (ask(either, prompt, tokens=2, cache_salt=salt) for _ in range(2))
    assert first.cached_tokens == 0
    assert second.cached_tokens == (second.prompt_tokens - 1) // BLOCK_TOKENS * BLOCK_TOKENS


def test_a_call_sent_twice_alone_gives_the_same_answer(either: Server) -> None:
    first, second = (ask(either, user(facts(20)), tokens=24, cache_salt=f"twin {turn}") for turn in range(2))
    assert first.text == second.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_named_tool_is_called_with_arguments_of_its_schema(small: Server, stream: bool) -> None:
    with small.client() as client:
        given: Any = client.chat.completions.create(
            model=MODEL, messages=[user("rain?")], max_tokens=64, tools=[WEATHER], tool_choice=NAMED, stream=stream
        )
        parts = [chunk.choices[0].delta for chunk in given] if stream else [given.choices[0].message]
    calls = [call.function for part in parts for call in part.tool_calls or []]
    arguments = json.loads("".join(call.arguments or "" for call in calls))
    assert calls[0].name == "get_weather"
    assert arguments["city"] in CITIES
    assert arguments["days"] in DAYS


def test_an_answer_bears_the_identity_of_its_request(small: Server) -> None:
    with small.client() as client:
        given = client.chat.completions.with_raw_response.create(
            model=MODEL, messages=[user("hello")], max_tokens=1, extra_headers={"X-Request-Id": "call-7"}
        )
    assert given.headers["x-request-id"] == "call-7"
    assert given.parse().id == "chatcmpl-call-7"


@pytest.mark.parametrize("form", ["TEXT", "JSON"])
def test_an_answer_tells_the_load_to_who_asks_for_it(small: Server, form: str) -> None:
    with small.client() as client:
        given = client.chat.completions.with_raw_response.create(
            model=MODEL, messages=[user("hello")], max_tokens=1, extra_headers={"endpoint-load-metrics-format": form}
        )
    load = given.headers["endpoint-load-metrics"]
    assert load.startswith(f"{form} ")
    assert "kv_cache_usage_perc" in load
    assert "num_requests_waiting" in load


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "other"}, 404),
        ({"messages": [user("word " * CONTEXT_TOKENS)]}, 400),
        ({"max_tokens": CONTEXT_TOKENS + 1}, 400),
        ({"temperature": -1}, 400),
    ],
    ids=["unknown model", "prompt too long", "answer too long", "bad value"],
)
def test_a_clients_fault_is_a_4xx_and_leaves_the_server_well(small: Server, body: dict[str, Any], status: int) -> None:
    with small.client() as client, pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(**{"model": MODEL, "messages": [user("hello")], "max_tokens": 1, **body})
    assert refused.value.status_code == status
    assert refused.value.body["code"] == status  # type: ignore[index]
    assert small.get("/health")[0] == 200
