"""Each fault does what it says, while the server runs, and ends when it is cleared."""

import asyncio
import time
from typing import Any

import aiohttp
import orjson
import pytest

from control.adapters.mock.faults import Faults, parse
from control.adapters.mock.text import count_tokens
from control.errors import SettingError
from tests.adapters.mock.wire import CHAT, Wire, chat, events, said, served

LONG = {"max_tokens": 40, "ignore_eos": True}


async def text_until_it_stops(wire: Wire, wait_s: float = 0.3) -> tuple[str, str]:
    """What a stream brings until nothing comes for a while, and how it stopped."""
    text = b""
    async with wire.http.post(wire.server.url + CHAT, json=chat(stream=True, **LONG)) as answer:
        try:
            while True:
                part = await asyncio.wait_for(answer.content.readany(), wait_s)
                if not part:
                    return text.decode(), "end"
                text += part
        except TimeoutError:
            return text.decode(), "stall"
        except aiohttp.ClientError:
            return text.decode(), "reset"


def tokens_in(text: str) -> int:
    """Tokens in the whole events of a stream that may have been cut."""
    rows = [row.removeprefix("data: ") for row in text.split("\n\n")[:-1] if row.startswith("data: {")]
    return count_tokens(said([event for row in rows if "choices" in (event := orjson.loads(row))]))


@served()
async def test_latency_comes_before_everything(wire: Wire) -> None:
    await wire.fault(latency_ms=150)
    began = time.monotonic()
    await wire.post(CHAT, chat(max_tokens=1))
    assert time.monotonic() - began >= 0.15


@served()
async def test_errors_come_at_their_rate_until_they_are_cleared(wire: Wire) -> None:
    await wire.fault(error_rate=0.5, error_status=502)
    answers = [(await wire.post(CHAT, chat(max_tokens=1)))[0] for _ in range(60)]
    assert set(answers) == {200, 502}
    assert 10 < answers.count(502) < 50
    async with wire.http.delete(wire.server.url + "/mock/faults") as cleared:
        assert cleared.status == 200
    assert [(await wire.post(CHAT, chat(max_tokens=1)))[0] for _ in range(10)] == [200] * 10


@served()
async def test_full_is_503_in_admissions_words(wire: Wire) -> None:
    await wire.fault(full=True)
    status, told = await wire.post(CHAT, chat())
    assert status == 503
    assert "at capacity" in told["error"]["message"]


@served()
async def test_a_server_that_hangs_takes_requests_and_never_answers(wire: Wire) -> None:
    await wire.fault(hang=True)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wire.post(CHAT, chat(max_tokens=1)), 0.2)
    assert (await wire.get("/health"))[0] == 200
    assert (await wire.until(lambda told: told["in_flight"] == 0))["completed"] == 0


@served()
async def test_a_stalled_stream_stays_open(wire: Wire) -> None:
    await wire.fault(stall_after=7)
    text, how = await text_until_it_stops(wire)
    assert (tokens_in(text), how) == (7, "stall")
    assert "[DONE]" not in text


@served()
async def test_a_cut_stream_is_reset(wire: Wire) -> None:
    await wire.fault(cut_after=7)
    text, how = await text_until_it_stops(wire, 5.0)
    assert (tokens_in(text), how) == (7, "reset")
    await wire.until(lambda told: told["in_flight"] == 0)
    await wire.fault(cut_after=None)
    assert len(events(await wire.lines(chat(max_tokens=2)))) > 0


@served()
async def test_an_error_can_come_in_the_middle_with_status_200(wire: Wire) -> None:
    await wire.fault(error_after=7)
    lines = await wire.lines(chat(**LONG))
    assert orjson.loads(lines[-2].removeprefix("data: "))["error"]["code"] == 500
    assert lines[-1] == "data: [DONE]"
    assert tokens_in("\n\n".join([*lines, ""])) == 7


@served()
async def test_a_crash_drops_streams_and_the_listener(wire: Wire) -> None:
    streaming = asyncio.create_task(wire.lines(chat(max_tokens=20_000, ignore_eos=True)))
    await wire.until(lambda told: told["running"] == 1)
    await wire.fault(crash=True)
    with pytest.raises(aiohttp.ClientError):
        await streaming
    with pytest.raises(aiohttp.ClientConnectorError):
        await wire.get("/health")


@served()
async def test_stale_metrics_repeat_themselves(wire: Wire) -> None:
    await wire.fault(stale_metrics=True)
    before = (await wire.get("/metrics"))[1]
    await wire.post(CHAT, chat(max_tokens=3))
    assert (await wire.get("/metrics"))[1] == before
    await wire.fault(stale_metrics=False)
    assert await wire.metric("vllm:generation_tokens_total") > 0


@served()
async def test_missing_metrics_and_a_dead_engine(wire: Wire) -> None:
    await wire.fault(no_metrics=True, unhealthy=True)
    assert (await wire.get("/metrics"))[0] == 404
    assert (await wire.get("/health"))[0] == 503


@served(tpot_ms=5.0)
async def test_a_slow_server_takes_its_time(wire: Wire) -> None:
    await wire.fault(slow_stream=4)
    began = time.monotonic()
    await wire.post(CHAT, chat(max_tokens=11, ignore_eos=True))
    assert time.monotonic() - began >= 0.2


@served()
async def test_broken_events_and_comments_stand_between_good_ones(wire: Wire) -> None:
    await wire.fault(malformed_sse=True, keep_alive=True)
    lines = await wire.lines(chat(**LONG))
    assert ": keep-alive" in lines
    broken = [line for line in lines if line.startswith("data: ") and not line.endswith(("}", "[DONE]"))]
    assert broken
    good = [line for line in lines if line not in broken and not line.startswith(":")]
    assert count_tokens(said(events(good))) == 40


@served()
async def test_a_clock_can_be_ahead(wire: Wire) -> None:
    _, before = await wire.post(CHAT, chat(max_tokens=1))
    await wire.fault(clock_skew_s=3600)
    _, after = await wire.post(CHAT, chat(max_tokens=1))
    assert 3599 <= after["created"] - before["created"] <= 3700


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"typhoon": True}, "fault 'typhoon': expected one of latency_ms, error_rate"),
        ({"hang": 3}, "fault hang = 3: expected true or false"),
        ({"stall_after": 1.5}, "fault stall_after = 1.5: expected a whole number"),
        ({"error_rate": 2}, "fault error_rate = 2: expected a number from 0 to 1"),
        ([], "expected a JSON object"),
        (b"{", "unexpected end"),
    ],
)
@served()
async def test_an_unknown_fault_is_refused_and_changes_nothing(wire: Wire, body: Any, words: str) -> None:
    status, told = await wire.post("/mock/faults", body)
    assert status == 422
    assert words in told["error"]["message"]
    assert orjson.loads((await wire.get("/mock/faults"))[1]) == orjson.loads(orjson.dumps(Faults()))


@served(faults=parse(["full", "keep_alive=true"]))
async def test_faults_can_be_there_from_the_start(wire: Wire) -> None:
    assert (await wire.post(CHAT, chat()))[0] == 503


def test_faults_of_the_command_line() -> None:
    assert parse(["latency_ms=2.5", "cut_after=3", "hang"]) == Faults(latency_ms=2.5, cut_after=3, hang=True)
    with pytest.raises(SettingError, match=r"fault hang = 'maybe': expected true or false"):
        parse(["hang=maybe"])
