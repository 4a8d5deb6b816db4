"""What a gateway or a client relies on in vLLM's answers."""

import asyncio
from typing import Any

import aiohttp
import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from control.adapters.mock.text import count_tokens
from tests.adapters.mock.wire import CHAT, Wire, chat, events, said, served


@served()
async def test_a_stream_brings_role_text_reason_usage_and_the_end(wire: Wire) -> None:
    chunks = events(await wire.lines(chat(max_tokens=9, ignore_eos=True, stream_options={"include_usage": True})))
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert count_tokens(said(chunks)) == 9
    assert [c["finish_reason"] for chunk in chunks for c in chunk["choices"]][-1] == "length"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 9
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}


@served(ttft_ms=0.0, tpot_ms=0.0)
async def test_tokens_that_come_at_once_share_a_chunk(wire: Wire) -> None:
    chunks = events(await wire.lines(chat(max_tokens=9, ignore_eos=True)))
    assert count_tokens(said(chunks)) == 9
    assert len(chunks) == 2


@served()
async def test_streamed_and_whole_answers_are_the_same_for_the_same_seed(wire: Wire) -> None:
    body = chat(max_tokens=30, seed=4)
    _, one = await wire.post(CHAT, body)
    text = one["choices"][0]["message"]["content"]
    assert said(events(await wire.lines(body))) == text
    _, other = await wire.post(CHAT, {**body, "seed": 5})
    assert other["choices"][0]["message"]["content"] != text


@served(mean_output=40.0)
async def test_an_answer_left_open_has_a_length_of_its_own(wire: Wire) -> None:
    counts = []
    for k in range(40):
        _, told = await wire.post(CHAT, chat(f"question {k}", max_tokens=60))
        counts.append((told["usage"]["completion_tokens"], told["choices"][0]["finish_reason"]))
    assert {reason for _, reason in counts} == {"stop", "length"}
    assert all((n == 60) == (reason == "length") for n, reason in counts)
    assert len({n for n, _ in counts}) > 10


@pytest.mark.parametrize("more", [{"ignore_eos": True}, {"min_tokens": 5}])
@served(mean_output=2.0)
async def test_a_length_that_is_asked_for_is_kept(wire: Wire, more: dict[str, Any]) -> None:
    _, told = await wire.post(CHAT, chat(max_tokens=50, **more))
    assert told["usage"]["completion_tokens"] == 50


@served()
async def test_plain_completions(wire: Wire) -> None:
    status, told = await wire.post("/v1/completions", {"prompt": "Once upon a time"})
    assert status == 200
    assert told["object"] == "text_completion"
    assert 1 <= count_tokens(told["choices"][0]["text"]) <= 16
    lines = await wire.lines({"prompt": [1, 2, 3], "max_tokens": 4, "ignore_eos": True}, "/v1/completions")
    assert count_tokens("".join(chunk["choices"][0]["text"] for chunk in events(lines))) == 4


@served()
async def test_the_request_id_comes_back(wire: Wire) -> None:
    body = orjson.dumps(chat(max_tokens=1))
    async with wire.http.post(wire.server.url + CHAT, data=body, headers={"X-Request-Id": "r-17"}) as answer:
        assert answer.headers["X-Request-Id"] == "r-17"
        assert (await answer.json())["id"] == "chatcmpl-r-17"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{not json", 400, "not valid JSON"),
        ([], 400, "expected a JSON object"),
        (chat(model="other"), 404, "The model `other` does not exist."),
        (chat(max_tokens=0), 400, "max_tokens must be at least 1"),
        (chat(max_tokens="many"), 400, "max_tokens must be a whole number"),
        (chat(max_tokens=3000), 400, "'max_tokens' or 'max_completion_tokens' is too large: 3000"),
        (chat("word " * 3000), 400, "This model's maximum context length is 2048 tokens. However, your request has"),
        (chat(stream_options={"include_usage": True}), 400, "Stream options can only be defined"),
        (chat(min_tokens=9, max_tokens=2), 400, "min_tokens must be less"),
        (chat(n=2), 400, "n = 2"),
        ({"model": "mock", "messages": []}, 400, "messages must be a list"),
        (chat(tool_choice={"type": "function", "function": {"name": "f"}}), 400, "'f', which is not among the tools"),
    ],
)
@served(max_model_len=2048)
async def test_what_cannot_be_served_is_told_in_openais_shape(wire: Wire, body: Any, status: int, words: str) -> None:
    found, told = await wire.post(CHAT, body)
    assert (found, told["error"]["code"]) == (status, status)
    assert words in told["error"]["message"]
    assert set(told["error"]) == {"message", "type", "param", "code"}
    assert (await wire.stats())["running"] == 0


@served(names=("mock", "alias"), max_model_len=4096)
async def test_models_health_version_and_load(wire: Wire) -> None:
    _, told = await wire.get("/v1/models")
    assert [(m["id"], m["max_model_len"]) for m in orjson.loads(told)["data"]] == [("mock", 4096), ("alias", 4096)]
    assert [(await wire.get(path))[0] for path in ("/health", "/ping", "/version", "/load")] == [200] * 4
    assert orjson.loads((await wire.get("/load"))[1]) == {"server_load": 0}
    assert (await wire.post(CHAT, {**chat(max_tokens=1), "model": "alias"}))[1]["model"] == "alias"


@served(kv_tokens=8000)
async def test_metrics_are_those_of_vllm_and_add_up(wire: Wire) -> None:
    for k in range(3):
        await wire.post(CHAT, chat(f"question {k}", max_tokens=10, ignore_eos=True))
    families = {family.name: family for family in text_string_to_metric_families((await wire.get("/metrics"))[1])}
    assert families["vllm:generation_tokens"].samples[0].value == 30
    assert families["vllm:cache_config_info"].samples[0].labels["kv_cache_size_tokens"] == "8000"
    for name in ("time_to_first_token_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds"):
        counts = [s.value for s in families[f"vllm:{name}"].samples if s.name.endswith("_count")]
        assert counts == [3], name
    tokens = [s.value for s in families["vllm:inter_token_latency_seconds"].samples if s.name.endswith("_count")]
    assert tokens == [27]
    assert await wire.metric('vllm:request_success_total{engine="0",finished_reason="length"') == 3
    assert await wire.metric("vllm:prompt_tokens_by_source_total") == await wire.metric("vllm:prompt_tokens_total")


@served(ttft_ms=0.0, tpot_ms=3_600_000.0, kv_tokens=1600)
async def test_gauges_show_what_is_under_way(wire: Wire) -> None:
    async with wire.http.post(wire.server.url + CHAT, json=chat("word " * 390, stream=True)) as answer:
        await answer.content.readline()
        assert await wire.metric("vllm:num_requests_running") == 1
        assert await wire.metric("vllm:kv_cache_usage_perc") == 400 / 1600
        assert await wire.metric("vllm:generation_tokens_total") == 1


@pytest.mark.parametrize("form", ["TEXT", "JSON"])
@served()
async def test_an_answer_tells_the_load_where_it_is_asked_to(wire: Wire, form: str) -> None:
    headers = {"endpoint-load-metrics-format": form}
    async with wire.http.post(wire.server.url + CHAT, json=chat(max_tokens=1), headers=headers) as answer:
        told = answer.headers["endpoint-load-metrics"]
    assert told.startswith(form)
    assert "kv_cache_usage_perc" in told
    assert "num_requests_waiting" in told


@served(seats=1, ttft_ms=3_600_000.0)
async def test_a_client_that_leaves_frees_its_seat_at_once(wire: Wire) -> None:
    first = asyncio.create_task(wire.post(CHAT, chat(), X_Request_Id="first"))
    await wire.until(lambda told: told["running"] == 1)
    second = asyncio.create_task(wire.lines(chat()))
    await wire.until(lambda told: told["waiting"] == 1)
    first.cancel()
    told = await wire.until(lambda told: told["cancelled"] == 1)
    assert told["cancelled_ids"] == ["first"]
    assert (told["running"], told["waiting"], told["in_flight"]) == (1, 0, 1)
    second.cancel()
    told = await wire.until(lambda told: told["cancelled"] == 2)
    assert (told["running"], told["waiting"], told["kv_used_tokens"]) == (0, 0, 0)


@served(seats=1, ttft_ms=100.0, scheduling_policy="priority")
async def test_the_header_of_priority_wins_over_the_body(wire: Wire) -> None:
    waiting = [asyncio.create_task(wire.post(CHAT, chat(max_tokens=1), X_Request_Id="runs"))]
    await wire.until(lambda told: told["running"] == 1)
    for name, body, header in (("late", 1, None), ("soon", 9, "-5"), ("middle", 0, None)):
        headers = {"X_Request_Id": name} | ({"X_Vllm_Priority": header} if header else {})
        waiting.append(asyncio.create_task(wire.post(CHAT, chat(max_tokens=1, priority=body), **headers)))
    await wire.until(lambda told: told["waiting"] == 3)
    await asyncio.gather(*waiting)
    admitted = (await wire.stats())["admitted"]
    assert [entry["id"] for entry in admitted] == ["runs", "soon", "middle", "late"]
    assert admitted[1]["priority"] == -5


@served(max_queued=1, ttft_ms=3_600_000.0)
async def test_a_full_queue_is_told_apart_from_a_sick_server(wire: Wire) -> None:
    first = asyncio.create_task(wire.post(CHAT, chat()))
    await wire.until(lambda told: told["running"] == 1)
    status, told = await wire.post(CHAT, chat())
    assert (status, "max_num_queued_reqs" in told["error"]["message"]) == (503, True)
    assert await wire.metric("vllm:admission_rejections_total") == 1
    first.cancel()


@pytest.mark.parametrize("named", [{}, {"session_id": "s"}])
@served()
async def test_a_second_turn_hits_the_cache_and_another_tenant_does_not(wire: Wire, named: dict[str, str]) -> None:
    body = chat("word " * 400, max_tokens=20, ignore_eos=True, **named)
    _, first = await wire.post(CHAT, body)
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    reply = {"role": "assistant", "content": first["choices"][0]["message"]["content"]}
    messages = [*body["messages"], reply, {"role": "user", "content": "and then?"}]
    _, salted = await wire.post(CHAT, {**body, "messages": messages, "cache_salt": "other"})
    _, second = await wire.post(CHAT, {**body, "messages": messages})
    whole = first["usage"]["total_tokens"]
    assert salted["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert whole - 16 <= second["usage"]["prompt_tokens_details"]["cached_tokens"] <= whole + 8
    assert await wire.metric("vllm:prefix_cache_hits_total") > 0


@served(gpu="H100", model="Llama-3.1-8B", names=("mock",), speed=20.0)
async def test_the_same_wire_over_the_twin(wire: Wire) -> None:
    body = chat("word " * 4000, max_tokens=20, ignore_eos=True)
    _, first = await wire.post(CHAT, body)
    reply = {"role": "assistant", "content": first["choices"][0]["message"]["content"]}
    messages = [*body["messages"], reply, {"role": "user", "content": "and then?"}]
    chunks = events(await wire.lines({**body, "messages": messages, "stream_options": {"include_usage": True}}))
    assert count_tokens(said(chunks)) == 20
    assert chunks[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] > 3900
    leaver = asyncio.create_task(wire.lines(chat(max_tokens=100_000, ignore_eos=True)))
    await wire.until(lambda told: told["running"] == 1)
    leaver.cancel()
    await wire.until(lambda told: (told["cancelled"], told["running"], told["kv_used_tokens"]) == (1, 0, 0))


@served()
async def test_old_clients_get_a_stream_without_chunks(wire: Wire) -> None:
    body = orjson.dumps(chat(max_tokens=3, stream=True, ignore_eos=True))
    url = wire.server.url + CHAT
    async with aiohttp.ClientSession(version=aiohttp.HttpVersion10) as old, old.post(url, data=body) as answer:
        lines = [line for line in (await answer.text()).split("\n") if line]
    assert count_tokens(said(events(lines))) == 3
