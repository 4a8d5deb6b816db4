"""Servers that fail before anything of an answer went out: a detour where there is one, else one clear error."""

import asyncio
from dataclasses import replace

import pytest

from control.adapters.mock.serve import running
from control.adapters.mock.settings import MockSettings
from control.gateway.upstream import BREAK_AFTER, Fault, Health, Upstream, fault_of
from tests.support.odd import odd_server, says
from tests.support.stage import SPEC, Stage, play, staged, until

FAST = MockSettings(ttft_ms=5.0, tpot_ms=1.0)
IN_TURN = "rr-fcfs"


def test_only_sick_servers_open_the_breaker_and_only_by_failures_in_a_row() -> None:
    one = Upstream(0, SPEC, Health.READY)
    assert not any(one.failed(fault, "x") for fault in (Fault.CLIENT, Fault.FULL) * 10)
    assert not any(one.failed(Fault.SICK, "x") for _ in range(BREAK_AFTER - 1))
    one.answered()
    assert [one.failed(Fault.SICK, "x") for _ in range(BREAK_AFTER)] == [False] * (BREAK_AFTER - 1) + [True]


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (200, b"", None),
        (400, b"", Fault.CLIENT),
        (404, b"", Fault.CLIENT),
        (429, b"", Fault.FULL),
        (503, b"The server is at capacity", Fault.FULL),
        (503, b"engine is dead", Fault.SICK),
        (500, b"", Fault.SICK),
        (502, b"", Fault.SICK),
    ],
)
def test_the_class_of_a_failure(status: int, body: bytes, fault: Fault | None) -> None:
    assert fault_of(status, body) is fault


def test_a_dead_server_costs_no_answer_and_comes_back_after_a_probe() -> None:
    async def scene() -> None:
        async with staged(*[FAST] * 4, policy=IN_TURN) as stage:
            await stage.ready()
            dead = stage.servers[0]
            await dead.close()
            answers = await asyncio.gather(*(stage.ask() for _ in range(24)))
            assert [status for status, _, _ in answers] == [200] * 24
            await until(lambda: stage.upstream(0).health is Health.SICK)
            sent = stage.upstream(0).sent
            answers = await asyncio.gather(*(stage.ask() for _ in range(8)))
            assert {status for status, _, _ in answers} == {200}
            assert stage.upstream(0).sent == sent
            port = dead.mock.address[1]
            async with running(replace(FAST, port=port)) as again:
                await until(lambda: stage.upstream(0).health is Health.READY)
                assert again.mock.seen["completed"] == 1  # the probe
                await asyncio.gather(*(stage.ask() for _ in range(8)))
                assert again.mock.seen["completed"] > 1

    play(scene)


def test_an_error_of_one_server_is_not_seen() -> None:
    async def scene() -> None:
        async with staged(FAST, FAST, policy=IN_TURN) as stage:
            await stage.ready()
            stage.fault(0, error_rate=1.0)
            answers = [await stage.ask() for _ in range(2)]
            assert [(status, headers["x-headway-instance"]) for status, _, headers in answers] == [(200, "s1")] * 2
            assert stage.gateway.totals.reroutes > 0
            assert stage.upstream(0).health is Health.READY

    play(scene)


def test_servers_that_all_fail_give_one_clear_error() -> None:
    async def scene() -> None:
        async with staged(FAST, FAST) as stage:
            await stage.ready()
            for i in range(2):
                stage.fault(i, error_rate=1.0)
            status, body, _ = await stage.ask()
            assert status == 502
            assert "2 servers failed" in body["error"]["message"]
            assert "500" in body["error"]["message"]
            status, _ = await stage.stream()
            assert status == 502
            assert stage.gateway.totals.by_state == {"failed": 2}

    play(scene)


def test_a_full_server_is_not_sick() -> None:
    async def scene() -> None:
        async with staged(FAST, FAST, policy=IN_TURN) as stage:
            await stage.ready()
            stage.fault(0, full=True)
            answers = [await stage.ask() for _ in range(8)]
            assert {headers["x-headway-instance"] for _, _, headers in answers} == {"s1"}
            assert stage.upstream(0).health is Health.READY
            assert stage.upstream(0).faults["full"] > 3
            assert stage.upstream(0).faults["sick"] == 0
            stage.fault(1, full=True)
            status, body, headers = await stage.ask()
            assert status == 503
            assert int(headers["Retry-After"]) > 0
            assert "full" in body["error"]["message"]
            assert stage.upstream(1).health is Health.READY

    play(scene)


def test_what_is_the_clients_fault_is_passed_on_as_the_server_said_it() -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            wrong = {"model": "mock", "messages": [{"role": "user", "content": "x"}], "max_tokens": -1}
            async with stage.session.post(stage.servers[0].url + "/v1/chat/completions", json=wrong) as response:
                said = await response.json()
            for _ in range(BREAK_AFTER + 2):
                status, body, _ = await stage.ask(max_tokens=-1)
                assert status == 400
                assert body == said
            assert stage.upstream(0).health is Health.READY
            assert stage.upstream(0).faults["client"] == BREAK_AFTER + 2
            status, body, _ = await stage.ask(model="another")
            assert status == 404
            assert "mock" in body["error"]["message"]

    play(scene)


def test_a_context_that_is_too_long_is_the_clients_fault() -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            await stage.ready()
            status, body, _ = await stage.ask(messages=[{"role": "user", "content": "word " * 40_000}])
            assert status == 400
            assert "maximum context length" in body["error"]["message"]  # the server's own words
            status, body, _ = await stage.ask(messages=[{"role": "user", "content": "word " * 2_000_000}])
            assert status == 400
            assert "longer than any server takes" in body["error"]["message"]
            assert stage.upstream(0).health is Health.READY

    play(scene)


@pytest.mark.parametrize("fault", [{"hang": True}, {"stall_after": 0}])
def test_a_server_that_says_nothing_is_left(fault: dict[str, object]) -> None:
    async def scene() -> None:
        async with staged(FAST, FAST, policy=IN_TURN, first_byte_s=1.0) as stage:
            await stage.ready()
            stage.fault(0, **fault)
            status, text = await stage.stream()
            assert status == 200
            assert text.rstrip().endswith(b"[DONE]")
            assert stage.gateway.totals.reroutes == 1
            stage.fault(1, **fault)
            status, text = await stage.stream()
            assert status == 504
            assert b"nothing for too long" in text

    play(scene)


def test_comments_alone_do_not_tie_a_call_to_its_server() -> None:
    async def scene() -> None:
        async with odd_server(says(b": wait\n\n")) as odd, staged(FAST, policy=IN_TURN, more=(odd,)) as stage:
            await stage.ready()
            answers = [await stage.stream() for _ in range(2)]
            assert all(text.rstrip().endswith(b"[DONE]") and b"error" not in text for _, text in answers)
            assert sum(text.startswith(b": wait") for _, text in answers) == 1
            assert stage.gateway.totals.by_state == {"completed": 2}

    play(scene)


@pytest.mark.parametrize("said", [b"<html>", b'"text"', b'{"error": {"message": "out of memory"}}'])
def test_an_answer_that_is_none_is_a_failure(said: bytes) -> None:
    async def scene(stage: Stage) -> None:
        await stage.ready()
        status, body, _ = await stage.ask()
        assert status == 502
        assert "odd" in body["error"]["message"]

    async def whole() -> None:
        async with odd_server(says(said, kind="application/json")) as odd, staged(more=(odd,)) as stage:
            await scene(stage)

    play(whole)
