"""What the gateway shows, what it makes of what servers show, and servers that are being drained."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from control.adapters.mock.settings import MockSettings
from control.gateway.upstream import Health
from control.policy.codes import DRAINING, UP
from control.twin.acts import cancel, drain, revive
from tests.support.stage import Stage, play, staged, until

FAST = MockSettings(ttft_ms=5.0, tpot_ms=1.0)


async def shown(stage: Stage) -> dict[tuple[str, str], float]:
    """Samples of the gateway's metrics, by name and by the first label's value."""
    async with stage.session.get(stage.host.url + "/metrics") as response:
        assert response.status == 200
        text = await response.text()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, next(iter(sample.labels.values()), "")): sample.value for sample in samples}


def test_metrics_count_what_happened() -> None:
    async def scene() -> None:
        async with staged(FAST, FAST, policy="rr-fcfs") as stage:
            await stage.ready()
            await asyncio.gather(*(stage.ask() for _ in range(4)))
            stage.fault(1, error_rate=1.0)
            await stage.ask()
            await stage.ask()
            await stage.ask(max_tokens=-1)
            await stage.ask({"x-session-id": "a"})
            await stage.check_closed()
            at = await shown(stage)
            assert at["headway_requests_total", ""] == 8
            assert at["headway_requests_ended_total", "completed"] == 7
            assert at["headway_requests_ended_total", "failed"] == 1
            assert at["headway_requests_named_total", "x-session-id"] == 1
            assert at["headway_server_faults_total", ""] == at["headway_reroutes_total", ""] > 0
            assert at["headway_open_requests", ""] == 0
            for name in ("s0", "s1"):
                assert at["headway_instance_in_flight_calls", name] == 0
                assert at["headway_instance_metrics_age_seconds", name] >= 0
            finished = [at["headway_instance_calls_finished_total", name] for name in ("s0", "s1")]
            assert sum(finished) == 7

    play(scene)


@pytest.mark.parametrize("fault", [{"stale_metrics": True}, {"no_metrics": True}, {"clock_skew_s": 86_400.0}])
def test_what_a_server_shows_of_itself_moves_no_call(fault: dict[str, Any]) -> None:
    async def scene() -> None:
        async with staged(FAST, FAST) as stage:
            await stage.ready()
            stage.fault(0, **fault)
            at_s = stage.door.live.now_s
            await until(lambda: stage.door.live.now_s > at_s + 0.5)
            answers = await asyncio.gather(*(stage.ask() for _ in range(20)))
            assert {status for status, _, _ in answers} == {200}
            where = Counter(headers["x-headway-instance"] for _, _, headers in answers)
            assert abs(where["s0"] - where["s1"]) <= 4
            assert stage.upstream(0).health is Health.READY

    play(scene)


def test_a_server_that_drains_finishes_what_it_has() -> None:
    async def scene() -> None:
        async with staged(MockSettings(ttft_ms=5.0, tpot_ms=10.0), FAST, policy="rr-fcfs") as stage:
            await stage.ready()
            tasks = [asyncio.create_task(stage.stream(max_tokens=40)) for _ in range(2)]
            await until(lambda: stage.servers[0].mock.core.running)
            with stage.door.lock:
                drain(stage.door.live.world, 0)
            answers = await asyncio.gather(*(stage.ask() for _ in range(6)))
            assert {headers["x-headway-instance"] for _, _, headers in answers} == {"s1"}
            for status, text in await asyncio.gather(*tasks):
                assert status == 200
                assert text.rstrip().endswith(b"[DONE]")
            with stage.door.lock:
                revive(stage.door.live.world, 0)
            answers = await asyncio.gather(*(stage.ask() for _ in range(4)))
            assert {headers["x-headway-instance"] for _, _, headers in answers} == {"s0", "s1"}

    play(scene)


def test_a_drain_outlives_a_failure() -> None:
    async def scene() -> None:
        async with staged(FAST, FAST) as stage:
            await stage.ready()
            rows = stage.door.live.world.instances
            with stage.door.lock:
                drain(stage.door.live.world, 0)
            stage.fault(0, unhealthy=True, error_rate=1.0)
            await until(lambda: stage.upstream(0).health is Health.SICK)
            stage.fault(0)
            await until(lambda: stage.upstream(0).health is Health.READY)
            assert rows["state"].tolist() == [DRAINING, UP]

    play(scene)


def test_an_operators_word_does_not_make_a_server_well() -> None:
    async def scene() -> None:
        async with staged(FAST, FAST) as stage:
            await stage.ready()
            stage.fault(0, unhealthy=True, error_rate=1.0)
            await until(lambda: stage.upstream(0).health is Health.SICK)
            with stage.door.lock:
                revive(stage.door.live.world, 0)
            await until(lambda: stage.door.live.world.instances["state"][0] != UP)
            answers = await asyncio.gather(*(stage.ask() for _ in range(4)))
            assert {headers["x-headway-instance"] for _, _, headers in answers} == {"s1"}

    play(scene)


@pytest.mark.parametrize("stream", [False, True])
def test_a_workflow_that_an_operator_gives_up_ends_in_words(stream: bool) -> None:
    async def scene() -> None:
        async with staged(MockSettings(ttft_ms=5.0, tpot_ms=50.0)) as stage:
            await stage.ready()
            ask: Any = stage.stream if stream else stage.ask
            task = asyncio.create_task(ask({"x-session-id": "a"}, max_tokens=1000))
            await until(lambda: any(flow.tokens > 2 for flow in stage.servers[0].mock.core.running))
            with stage.door.lock:
                cancel(stage.door.live.world, stage.door.live.flows["a"].row)
                stage.door.drain()
            status, said = (await task)[:2]
            assert status == (200 if stream else 499)
            assert "given up by an operator" in str(said)
            await until(lambda: stage.servers[0].mock.seen["cancelled"] == 1)

    play(scene)


def test_durations_are_told_under_the_names_of_opentelemetry() -> None:
    async def scene() -> None:
        async with staged(MockSettings(ttft_ms=5.0, tpot_ms=1.0)) as stage:
            await stage.ready()
            await stage.stream()
            async with stage.session.get(stage.host.url + "/metrics") as response:
                text = await response.text()
            labels = 'gen_ai_operation_name="chat",gen_ai_request_model="mock"'
            assert f'gen_ai_server_request_duration_seconds_count{{error_type="",{labels}}} 1.0' in text
            assert f"gen_ai_server_time_to_first_token_seconds_count{{{labels}}} 1.0" in text

    play(scene)


def test_load_told_with_answers_stands_in_for_metrics_that_are_missing() -> None:
    async def scene() -> None:
        async with staged(FAST) as stage:
            stage.fault(0, no_metrics=True)
            await stage.ready()
            await stage.ask()
            row = stage.door.live.observed
            await until(lambda: 0 in row and row[0]["seen_kv_used_fraction"] is not None)
            assert row[0]["metrics"] == "missing"
            assert row[0]["seen_waiting"] == 0
            assert row[0]["seen_running"] is None

    play(scene)
