"""Who is let in, and what those are told who are not."""

import asyncio
import logging
from collections import Counter
from dataclasses import replace

import pytest

from control.adapters.mock.settings import MockSettings
from tests.support.running import free_port
from tests.support.stage import SPEC, play, staged, until

FAST = MockSettings(ttft_ms=5.0, tpot_ms=1.0)


def test_more_than_may_wait_are_told_when_to_come_again() -> None:
    async def scene() -> None:
        slow = MockSettings(ttft_ms=5.0, tpot_ms=20.0)
        async with staged(slow, spec=replace(SPEC, window=1), most_waiting=3) as stage:
            await stage.ready()
            tasks = [asyncio.create_task(stage.ask(max_tokens=20)) for _ in range(4)]
            await until(lambda: int(stage.door.live.world.instances["n_waiting"].sum()) == 3)
            status, body, headers = await stage.ask()
            assert status == 429
            assert int(headers["Retry-After"]) >= 1
            assert "3 calls wait" in body["error"]["message"]
            assert [status for status, _, _ in await asyncio.gather(*tasks)] == [200] * 4
            assert stage.gateway.totals.turned_away == 1

    play(scene)


def test_a_body_has_a_largest_size() -> None:
    async def scene() -> None:
        async with staged(FAST, most_body_mb=1) as stage:
            await stage.ready()
            status, body, _ = await stage.ask(messages=[{"role": "user", "content": "x" * 2**21}])
            assert status == 413
            assert "1 MB" in body["error"]["message"]
            assert (await stage.ask())[0] == 200

    play(scene)


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("POST", "/v1/embeddings", 404, "/v1/chat/completions"),
        ("GET", "/v1/chat/completions", 405, "POST is accepted"),
        ("POST", "/v1/models", 405, "GET is accepted"),
    ],
)
def test_what_is_not_served_is_said(method: str, path: str, status: int, said: str) -> None:
    async def scene() -> None:
        async with (
            staged(FAST) as stage,
            stage.session.request(method, stage.host.url + path) as response,
        ):
            assert response.status == status
            assert said in (await response.json())["error"]["message"]

    play(scene)


def test_no_server_at_all() -> None:
    async def scene() -> None:
        dead = replace(SPEC, name="dead", url=f"http://127.0.0.1:{free_port()}")
        async with staged(more=(dead,)) as stage:
            await until(lambda: stage.gateway.upstreams[0].reason != "not asked yet")
            status, body, headers = await stage.ask()
            assert status == 503
            assert "Retry-After" in headers
            assert "no server" in body["error"]["message"]
            async with stage.session.get(stage.host.url + "/health") as response:
                assert response.status == 503

    play(scene)


def test_a_burst_does_not_go_to_one_server() -> None:
    async def scene() -> None:
        async with staged(*[MockSettings(ttft_ms=50.0, tpot_ms=5.0)] * 4) as stage:
            await stage.ready()
            answers = await asyncio.gather(*(stage.ask() for _ in range(40)))
            where = Counter(headers["x-headway-instance"] for _, _, headers in answers)
            assert sum(where.values()) == 40
            assert all(abs(where[f"s{i}"] - 10) <= 3 for i in range(4)), where

    play(scene)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"messages": ' + b"[" * 2000 + b"]" * 2000 + b"}", 400),
        (b'{"messages": [], "temperature": NaN}', 400),
        (b"\xff\xfe", 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "n": 3, "model": "mock"}', 400),
        (b'{"messages": "x", "model": "mock"}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "stream": null, "model": null, "max_tokens": 2}', 200),
        (b'{"messages": [{"role": "user", "content": "x"}], "stream": true, "stream_options": "x"}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "stream": 1}', 400),
        (b'{"messages": [{"role": "user", "content": "' + b"x" * 10_000_000 + b'"}]}', 400),
        (b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 18446744073709551615}', 400),
    ],
)
def test_any_body_gets_an_answer(body: bytes, status: int) -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            async with stage.session.post(stage.host.url + "/v1/chat/completions", data=body) as response:
                assert response.status == status
                said = await response.json()
                assert status == 200 or said["error"]["message"]
            assert stage.upstream(0).faults["sick"] == 0

    play(scene)


def test_headers_that_are_no_text_do_no_harm() -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            host, port = stage.host.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            names = (b"x-request-id", b"x-session-id", b"traceparent", b"x-headway-tenant")
            body = b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 2}'
            head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
            head += b"".join(name + b": \xff\xfe\r\n" for name in names)
            writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            said = await reader.read()
            assert said.startswith(b"HTTP/1.1 200")
            writer.close()

    play(scene)


def test_a_defect_of_the_gateway_is_an_answer_and_a_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("headway.gateway")  # whatever tests before this one did to it
    monkeypatch.setattr(log, "disabled", False)
    monkeypatch.setattr(log, "handlers", [caplog.handler])
    caplog.set_level(logging.INFO, "headway.gateway")

    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()

            async def broken(*_: object) -> None:
                raise ZeroDivisionError

            stage.gateway.relay.whole = broken  # type: ignore[assignment]
            status, body, _ = await stage.ask({"x-request-id": "req-7"})
            assert status == 500
            assert "req-7" in body["error"]["message"]
            assert "req-7" in caplog.text

    play(scene)
