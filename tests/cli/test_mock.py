"""`headway mock-vllm` as a process."""

import signal
import socket
import urllib.request
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.running import Running, Start, object_of, until


def address(running: Running) -> str:
    """Where it listens, as soon as it says so."""
    until(lambda: running.stdout.endswith("\n") or not running.is_alive(), "the line that says where it listens")
    assert running.stdout.startswith("listening on http://"), running.stderr
    return running.stdout.split()[2].rstrip(",")


def post(url: str, body: Any) -> dict[str, Any]:
    """The JSON answer to a JSON body."""
    with urllib.request.urlopen(url, orjson.dumps(body), timeout=30) as answer:
        return object_of(answer.read().decode())


def test_it_says_where_it_listens_serves_and_ends_when_told(start: Start) -> None:
    running = start("mock-vllm", "--port", 0, "--name", "m", "--ttft-ms", 1, "--tpot-ms", 1, "--seats", 8)
    url = address(running)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
    assert post(f"{url}/v1/chat/completions", body)["usage"]["completion_tokens"] <= 3
    assert "model m, first token after 1 ms, then every 1 ms, 8 seats" in running.stdout
    running.signal(signal.SIGTERM)
    assert running.wait(20.0) == 0
    assert running.stderr == ""


def test_it_ends_though_a_stream_is_under_way(start: Start) -> None:
    running = start("mock-vllm", "--port", 0)
    url = address(running)
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 20_000, "ignore_eos": True}
    with urllib.request.urlopen(f"{url}/v1/chat/completions", orjson.dumps(body), timeout=30) as answer:
        assert answer.readline().startswith(b"data: ")
        running.signal(signal.SIGTERM)
        assert running.wait(20.0) == 0
    assert running.stderr == ""


def test_a_crash_ends_the_process(start: Start) -> None:
    running = start("mock-vllm", "--port", 0)
    post(f"{address(running)}/mock/faults", {"crash": True})
    assert running.wait(20.0) == 70


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gpu", "H1000", "--model", "Llama-3.1-8B"], "GPU 'H1000' is not in the catalogue, did you mean"),
        (["--gpu", "H100"], "give both or neither"),
        (["--gpu", "H100", "--model", "Llama-3.1-8B", "--ttft-ms", "3"], "--ttft-ms and --gpu"),
        (["--fault", "typhoon"], "fault 'typhoon': expected one of"),
        (["--fault", "stall_after=many"], "fault stall_after = 'many': expected a whole number"),
        (["--seats", "0"], "seats = 0: expected a number from 1"),
        (["--scheduling-policy", "lifo"], "scheduling_policy = 'lifo': expected one of fcfs, priority"),
        (["--port", "70000"], "port = 70000"),
    ],
)
def test_bad_input_is_one_line_and_2(headway: Any, arguments: list[str], words: str) -> None:
    said = headway("mock-vllm", *arguments)
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert words in said.err
    assert said.out == ""


def test_a_port_that_is_taken_is_one_line_and_2(headway: Any, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = headway("mock-vllm", "--port", port)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert f"127.0.0.1:{port}: in use" in said.err
