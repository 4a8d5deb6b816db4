"""The load driver, against a small engine on real sockets: order, headers, lengths, conversations, failures, report."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from control.adapters.completions import Answer, session
from control.adapters.driver import Drive, Flow
from control.adapters.driver_report import attainment, report, spread
from control.adapters.filler import Rate
from control.adapters.prompts import Prompts
from control.errors import InputError
from control.model.workload import Workload, empty_calls, empty_workflows
from tests.support.tiny_engine import TinyEngine, serving


def work(*flows: list[dict[str, Any]], arrivals: list[float] | None = None, slo_s: float = math.nan) -> Workload:
    """A workload of workflows, each a list of calls as columns."""
    workflows, calls = empty_workflows(len(flows)), empty_calls(sum(map(len, flows)))
    workflows["arrival_s"] = arrivals or [0.0] * len(flows)
    workflows["slo_s"] = slo_s
    row = 0
    for w, flow in enumerate(flows):
        workflows[w]["first_call"], workflows[w]["n_calls"] = row, len(flow)
        for k, columns in enumerate(flow):
            calls[row]["workflow"] = w
            for name, value in ({"group": k, "input_tokens": 20, "output_tokens": 3} | columns).items():
                calls[row][name] = value
            row += 1
    return Workload("test", "own", workflows, calls, ("agent",), ("acme",), ("ask", "check"), 4, 4)


def driven(
    workload: Workload, engine: TinyEngine, until: Callable[[Drive], bool] | None = None, **settings: Any
) -> Drive:
    """The run at its end, or cancelled when `until` holds."""

    async def run() -> Drive:
        async with serving(engine) as url, session(20.0) as client:
            drive = Drive(client, url, "tiny", workload, **settings)
            await drive.prepare()
            engine.seen.clear()
            task = asyncio.create_task(drive.run(lambda d: until and until(d) and task.cancel(), 0.01))
            await asyncio.wait([task])
            return drive

    return asyncio.run(run())


def quick(**broken: Any) -> TinyEngine:
    return TinyEngine(base_ms=0.5, seq_ms=0.0, token_ms=0.0, **broken)


def test_every_call_is_sent_with_its_lengths_and_whose_it_is() -> None:
    engine = quick()
    workload = work([{"step": 0}, {"step": 1, "input_tokens": 120, "output_tokens": 5}], slo_s=2.5)
    drive = driven(workload, engine)
    first, last = engine.seen
    assert (first["max_tokens"], last["max_tokens"], first["ignore_eos"]) == (3, 5, True)
    names = ("x-headway-kind", "x-headway-stage", "x-headway-tenant", "x-headway-slo-s")
    assert [first["headers"][name] for name in names] == ["agent", "ask", "acme", "2.5"]
    assert first["headers"]["x-headway-workflow"] == last["headers"]["x-headway-workflow"]
    assert "x-headway-final" not in first["headers"]
    assert last["headers"]["x-headway-final"] == "1"
    told = report(drive)
    assert told["calls"]["tokens"]["input"] == pytest.approx(140, abs=4)
    assert told["calls"]["tokens"]["output"] == 8
    assert told["calls"]["tokens"]["prompt_length_error"] < 0.1


def test_a_plain_server_gets_no_headers_of_ours() -> None:
    engine = quick()
    driven(work([{"stream": 0}]), engine, headers=False)
    assert not [name for name in engine.seen[0]["headers"] if name.startswith("x-headway")]
    assert engine.seen[0]["headers"]["x-session-id"].endswith("-s0")


def test_stages_wait_for_the_one_before_and_its_tools() -> None:
    """Calls of a group go out together; the next group after the slowest and its tool time; not behind the last."""
    calls = [{"group": 0, "tool_s": 0.3}, {"group": 0}, {"group": 1, "tool_s": 30.0}]
    drive = driven(work(calls), quick())
    sent = {c: answer.sent_s for c, answer in drive.answers}
    ended = {c: answer.ended_s for c, answer in drive.answers}
    assert sent[1] < ended[0]
    assert sent[2] >= ended[0] + 0.3
    flow = drive.flows[0]
    assert flow.done
    assert flow.latency_s == pytest.approx(ended[2] - drive.begun_s, abs=0.05)


def test_workflows_arrive_on_time_whether_or_not_the_server_keeps_up() -> None:
    engine = TinyEngine(base_ms=100.0)
    drive = driven(work(*([[{}]] * 3), arrivals=[0.0, 0.05, 0.1]), engine)
    starts = [flow.started_s for flow in drive.flows]
    assert starts == sorted(starts)
    assert starts[2] < drive.flows[0].ended_s
    assert all(flow.started_s >= flow.planned_s for flow in drive.flows)


def test_a_conversation_goes_on_from_what_was_said() -> None:
    turns = [
        {"stream": 0, "shared_key": 1, "shared_tokens": 20, "input_tokens": 60},
        {"stream": 0, "shared_key": 1, "shared_tokens": 20, "input_tokens": 120, "history_tokens": 63},
        {"stream": 0, "input_tokens": 50, "history_tokens": 20},
    ]
    engine = quick()
    driven(work(turns), engine)
    first, second, third = (body["messages"] for body in engine.seen)
    assert [message["role"] for message in first] == ["system", "user"]
    assert second[:2] == first
    assert second[2] == {"role": "assistant", "content": " word word word"}
    assert second[3]["role"] == "user"
    assert [third[0], len(third)] == [first[0], 2]  # compacted: only the shared prompt is left
    words = sum(len(message["content"].split()) for message in second)
    assert words == pytest.approx(60, abs=3)


def test_shared_prompts_are_the_same_text_and_other_words_are_not() -> None:
    prompts = Prompts(Rate(2.0, 0.0), 7)
    calls = work(*([[{"shared_key": 0, "shared_tokens": 40, "input_tokens": 80}]] * 2)).calls
    (system, mine), (same, yours) = (prompts.of(call, row) for row, call in enumerate(calls))
    assert system == same
    assert mine != yours
    other = Prompts(Rate(2.0, 0.0), 8).of(calls[0], 0)
    assert other[0] != system
    assert Prompts(Rate(2.0, 0.0), 7).of(calls[0], 0) == [system, mine]


def test_a_failed_call_ends_its_workflow_and_is_told() -> None:
    drive = driven(work([{}, {}], [{}], arrivals=[0.0, 0.3]), quick(broken={2: "503"}))  # 2 requests went before
    told = report(drive)
    assert (told["workflows"]["done"], told["workflows"]["failed"]) == (1, 1)
    assert told["failures"] == {"http 503": {"count": 1, "first": "the queue is full"}}
    assert told["calls"]["failed"] == 1


def test_an_interrupted_run_tells_what_there_is() -> None:
    calls = [[{}], [{"output_tokens": 2000}]]
    first_is_done = lambda drive: report(drive)["workflows"]["done"] == 1  # noqa: E731
    drive = driven(work(*calls), TinyEngine(base_ms=20.0), until=first_is_done)
    told = report(drive)
    assert told["interrupted"]
    assert (told["workflows"]["done"], told["workflows"]["unfinished"]) == (1, 1)
    assert drive.in_flight == 0


def test_no_workflow_starts_after_the_duration() -> None:
    drive = driven(work(*([[{}]] * 3), arrivals=[0.0, 0.1, 60.0]), quick(), duration_s=1.0)
    assert len(drive.flows) == 2
    counts = {name: n for name, n in report(drive)["workflows"].items() if name != "per_s"}
    assert counts == {"planned": 3, "started": 2, "done": 2, "failed": 0, "unfinished": 0}


def test_a_server_that_is_not_there_is_bad_input() -> None:
    async def run() -> None:
        async with session(5.0) as client:
            await Drive(client, "http://127.0.0.1:9", "m", work([{}])).prepare()

    with pytest.raises(InputError, match=r"127.0.0.1:9/v1/chat/completions: connect"):
        asyncio.run(run())


def test_attainment_counts_failed_workflows_as_missed() -> None:
    flows = [
        Flow(0, 0.0, 0.0, 1.0, done=True, slo_s=2.0),
        Flow(1, 0.0, 0.0, 3.0, done=True, slo_s=2.0),
        Flow(2, 0.0, 0.0, 0.5, failed=True, slo_s=2.0),
        Flow(3, 0.0, 0.0, slo_s=2.0),
        Flow(4, 0.0, 0.0, 9.0, done=True),
    ]
    assert attainment(flows) == pytest.approx(1 / 3)
    assert attainment(flows[4:]) is None


def test_figures_of_nothing_are_none() -> None:
    assert spread([math.nan]) == {"mean": None, "p50": None, "p95": None, "p99": None}
    assert spread(np.arange(101.0)) == {"mean": 50.0, "p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert math.isnan(Answer(0.0).ttft_s)
