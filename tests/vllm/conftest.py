"""Real servers for the tests of this folder; each set is started once, by the first test that wants it.

pair      small on core 0 and med on core 1, of unequal speed: what a gateway spreads calls over
handover  a prefiller on core 0 and a decoder on core 1, both small
crowded   small with one seat and room for four that wait
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.vllm.servers import Server, serving
from tests.vllm.setup_env import python_of, venv_folder

QUEUE = 4


class Pair(NamedTuple):
    """Two servers that differ in speed."""

    small: Server
    med: Server


class Handover(NamedTuple):
    """Two servers that share the work of a call."""

    prefill: Server
    decode: Server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the log of every server that a failed test used."""
    report = yield
    if report.when == "call" and report.failed:
        used: dict[str, Any] = getattr(item, "funcargs", {})
        for value in used.values():
            for server in value if isinstance(value, tuple) else (value,):
                if isinstance(server, Server):
                    report.sections.append((str(server), server.tail()))
    return report


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the servers' logs go; fails where there is no vLLM to start."""
    if not python_of(venv_folder()).exists():
        pytest.fail(f"no vLLM in {venv_folder()}: run 'make test-vllm'", pytrace=False)
    return tmp_path_factory.mktemp("vllm")


@pytest.fixture(scope="session")
def pair(logs: Path) -> Iterator[Pair]:
    """A quick server and a slow one."""
    servers = Pair(Server("small", on=0), Server("med", on=1))
    with serving(logs, *servers):
        yield servers


@pytest.fixture
def small(pair: Pair) -> Server:
    """The quick one of the pair."""
    return pair.small


@pytest.fixture(params=["small", "med"])
def either(request: pytest.FixtureRequest, pair: Pair) -> Server:
    """Each of the pair in turn."""
    return pair.small if request.param == "small" else pair.med


@pytest.fixture(scope="session")
def handover(logs: Path) -> Iterator[Handover]:
    """A prefiller and a decoder."""
    servers = Handover(Server("small", "prefill", on=0), Server("small", "decode", on=1))
    with serving(logs, *servers):
        yield servers


@pytest.fixture(scope="session")
def crowded(logs: Path) -> Iterator[Server]:
    """A server with one seat and room for QUEUE calls that wait; more it turns away."""
    server = Server("small", "both", 0, 0, "--max-num-seqs", 1, "--max-num-queued-reqs", QUEUE)
    with serving(logs, server):
        yield server
