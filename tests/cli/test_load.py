"""`headway load`: a trace against a server over HTTP, a report as one object or for people."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Headway
from tests.support.running import starter
from tests.support.tiny_engine import TinyEngine, served

TRACE = (
    '{"id": "a", "kind": "agent", "tenant": "acme", "arrival_s": 0.0, "slo_s": 20.0, "calls": ['
    '{"stage": "ask", "group": 0, "input_tokens": 40, "output_tokens": 3, "tool_s": 0.1},'
    '{"stage": "check", "group": 1, "input_tokens": 60, "output_tokens": 4}]}\n'
    '{"id": "b", "kind": "agent", "arrival_s": 0.2, "calls": ['
    '{"stage": "ask", "group": 0, "input_tokens": 40, "output_tokens": 3}]}\n'
)


def test_a_trace_is_driven_and_reported(headway: Headway, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(TRACE)
    engine = TinyEngine(base_ms=1.0)
    with served(engine) as url:
        said = headway("load", "--url", url, "--trace", "t.jsonl", "--out", "report.json", "--json")
        assert said.code == 0, said.err
        shown = headway("load", "--url", url, "--trace", "t.jsonl", "--fleet", "demo-mixed", "--no-policy-headers")
    told = json.loads(said.out)
    assert told == json.loads((tmp_path / "report.json").read_text())
    assert (told["workflows"]["done"], told["calls"]["done"], told["slo_attainment"]) == (2, 3, 1.0)
    assert told["calls"]["tokens"]["output"] == 10
    assert {"mean", "p50", "p95", "p99"} <= told["ttft_s"].keys()
    assert told["lateness_s"]["most"] >= 0.0
    assert "workflow latency" in shown.out
    assert "SLO attainment 100 %" in shown.out
    assert "x-headway-workflow" not in engine.seen[-1]["headers"]


def test_a_scenario_is_driven_by_name(headway: Headway) -> None:
    with served(TinyEngine(base_ms=0.2, seq_ms=0.0, token_ms=0.0)) as url:
        options = ("--scenario", "text2sql", "--workflows", 1, "--rate", 5)
        said = headway("load", "--url", url, *options, "--duration", 30, "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["workflows"]["done"] == 1


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--url", "http://127.0.0.1:9"), "--trace is missing"),
        (("--url", "http://127.0.0.1:9", "--trace", "none.csv"), "none.csv: no such file"),
        (("--url", "http://127.0.0.1:9", "--trace", "text2sql"), "expected an OpenAI-compatible server"),
        (("--url", "here", "--trace", "text2sql"), "expected http://HOST:PORT"),
        (("--url", "http://127.0.0.1:9", "--trace", "text2sql", "--scenario", "agents"), "expected one of them"),
        (("--url", "http://127.0.0.1:9", "--trace", "text2sql", "--duration", "0"), "--duration = 0"),
    ],
)
def test_bad_input_is_one_line(headway: Headway, arguments: tuple[object, ...], what: str) -> None:
    said = headway("load", *arguments, "--json")
    assert (said.code, said.out, len(said.err.strip().splitlines())) == (2, "", 1), said
    assert what in said.err


def test_ctrl_c_gives_the_report_so_far(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(TRACE.replace('"arrival_s": 0.2', '"arrival_s": 500.0'))
    engine = TinyEngine(base_ms=1.0)
    with served(engine) as url, starter(tmp_path) as start:
        running = start("load", "--url", url, "--trace", "t.jsonl", "--json")
        deadline = time.monotonic() + 60.0
        while len(engine.seen) < 4 and time.monotonic() < deadline:  # 2 to learn the tokenizer, 2 of the first workflow
            time.sleep(0.02)
        while engine.calls and time.monotonic() < deadline:
            time.sleep(0.02)
        running.signal(signal.SIGINT)
        assert running.wait() == 0
        told = json.loads(running.stdout)
    assert told["interrupted"]
    assert (told["workflows"]["planned"], told["workflows"]["started"]) == (2, 1)
