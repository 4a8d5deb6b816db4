"""The gateway's overhead is measured on real processes; how much it is depends on the machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from control.gateway.speed.client import is_whole
from control.gateway.speed.page import BEGIN, END, rewrite
from control.gateway.speed.processes import own_cpu_s
from tests.support.running import environment, object_of

SYSTEMS = ("direct", "pass-through", "headway")


@pytest.mark.bench
def test_every_system_is_measured_and_the_page_is_rewritten(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    command = [sys.executable, "-m", "control.cli", "bench", "gateway", "--quick", "--json", f"--out={page}"]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=True)
    result = object_of(done.stdout)
    assert tuple(result["systems"]) == SYSTEMS
    for figures in result["systems"].values():
        assert figures["streams"] > 0
        assert figures["requests"] > 0
        assert figures["failed"] == 0
    assert {target["name"]: target["value"] for target in result["targets"]}.keys() <= result["systems"][
        "headway"
    ].keys()
    assert "vllm-router" in result["skipped"]
    assert "round 1 of 1" in done.stderr
    text = page.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert all(f"| {name} |" in text for name in SYSTEMS)


def test_a_router_that_is_no_program_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "control.cli", "bench", "gateway", "--quick", "--router", "no-such-router"]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True)
    assert done.returncode == 2
    assert "no-such-router" in done.stderr


def test_only_its_own_section_of_the_page_is_rewritten(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Ours\n\n{BEGIN}\nold\n{END}\n\nkept\n")
    rewrite(page, RESULT)
    once = page.read_text()
    assert once.startswith(f"# Ours\n\n{BEGIN}\n")
    assert once.endswith(f"{END}\n\nkept\n")
    assert "old" not in once
    rewrite(page, RESULT)
    assert page.read_text() == once


def test_cpu_time_is_read_past_a_name_with_blanks_and_brackets() -> None:
    stat = "12 (a ) name) S 1 12 12 0 -1 0 0 0 0 0 300 100 50 50 20 0 8 0 1 2 3"
    assert own_cpu_s(stat) == pytest.approx(own_cpu_s(stat.replace("300 100 50 50", "500 0 0 0")))
    assert own_cpu_s(stat) > 0.0


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n", False),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Le", False),
    ],
)
def test_where_an_answer_ends(answer: bytes, whole: bool) -> None:
    assert is_whole(answer) is whole


FIGURES = {
    "first_chunk_p50_ms": 1.0,
    "first_chunk_p99_ms": 2.0,
    "cpu_s_per_1000_streams": 1.0,
    "requests_per_s": 100.0,
    "cpu_ms_per_request": 0.1,
}
RESULT = {
    "command": "headway bench gateway",
    "date": "2030-01-01",
    "machine": {
        "processor": "one",
        "cores": 2,
        "python": "3.11",
        "load_average_before": 0.1,
        "load_average_after": 0.2,
    },
    "systems": {"direct": FIGURES},
    "rounds": 1,
    "rate_per_s": 1.0,
    "stream_s": 1.0,
    "connections": 1,
    "targets": [{"name": "requests_per_s", "at_most": False, "limit": 50.0, "value": 100.0, "met": True}],
    "skipped": {},
}
