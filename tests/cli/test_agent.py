"""`headway agent` as a process: it serves, it is limited by a token, and it refuses to be open to everybody."""

import asyncio
import signal
import socket
import urllib.request

import pytest

from control.adapters.faults import NotPermittedError
from control.adapters.power import power_source
from tests.cli.conftest import Headway
from tests.support.running import Running, Start, free_port, object_of, until

TOKEN = "let-me-in"


def agent_at(start: Start, *options: object, **environment: str) -> tuple[str, Running]:
    """The URL of a new agent over two made-up GPUs, once it answers."""
    port = free_port()
    process = start("agent", "--port", port, "--simulate", 2, *options, **environment)
    url = f"http://127.0.0.1:{port}"
    until(lambda: not process.is_alive() or health(url), "the agent answers")
    return url, process


def health(url: str) -> dict[str, object] | None:
    """What the agent says of itself; None while it does not answer."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return object_of(answer.read().decode())
    except OSError:
        return None


async def limit(url: str, token: str | None, watts: float) -> float | None:
    """The limit of the second GPU after it was set."""
    source = power_source(url, token)
    try:
        await source.set_limit(1, watts)
        return (await source.read())[1].power_limit_w
    finally:
        await source.close()


def test_agent_serves_takes_a_limit_with_its_token_and_ends_on_sigterm(start: Start) -> None:
    url, process = agent_at(start, HEADWAY_AGENT_TOKEN=TOKEN)
    assert health(url) == {"status": "ok", "gpus": 2, "caps": True, "reason": None}
    assert asyncio.run(limit(url, TOKEN, 300)) == 300
    with pytest.raises(NotPermittedError, match="token is wrong"):
        asyncio.run(limit(url, "other", 400))
    assert TOKEN not in process.stderr
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert "Traceback" not in process.stderr


def test_own_machine_needs_no_token_and_read_only_takes_no_limit(start: Start) -> None:
    url, _ = agent_at(start, "--host", "127.0.0.1")
    assert asyncio.run(limit(url, None, 300)) == 300
    url, _ = agent_at(start, "--read-only")
    with pytest.raises(NotPermittedError, match="read only"):
        asyncio.run(limit(url, TOKEN, 300))


def test_scrape_reads_an_agent(start: Start, headway: Headway) -> None:
    url, _ = agent_at(start, "--read-only")
    told = object_of(headway("scrape", url, "--json").out)
    assert (told["source"], [gpu["name"] for gpu in told["gpus"]]) == ("headway-agent", ["Simulated H100"] * 2)
    assert told["power_w"] == pytest.approx(sum(gpu["power_w"] for gpu in told["gpus"]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--token is missing for --host 0.0.0.0"),
        (("--token", ""), "--token is missing"),
        (("--token", TOKEN, "--port", 0), "--port = 0: expected a number from 1 to 65535"),
        (("--token", TOKEN, "--simulate", 0), "--simulate = 0: expected a number from 1 to 64"),
    ],
)
def test_agent_that_must_not_start(
    headway: Headway, monkeypatch: pytest.MonkeyPatch, options: tuple[object, ...], words: str
) -> None:
    monkeypatch.delenv("HEADWAY_AGENT_TOKEN", raising=False)
    said = headway("agent", *options)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert words in said.err


def test_port_that_is_taken_is_named(headway: Headway) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = headway("agent", "--host", "127.0.0.1", "--port", port, "--simulate", 1)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert f"--port {port}: cannot be listened on" in said.err
