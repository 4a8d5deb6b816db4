"""Real servers for the tests of this folder, one set of them at a time: the cores are few, and idle servers take some.

pair      small on core 0 and med on core 1, of unequal speed: what a gateway spreads calls over
handover  a prefiller on core 0 and a decoder on core 1, both small
crowded   small with one seat and room for four that wait

The tests are sorted by the set they want, so each is started once.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.vllm.servers import Server, serving
from tests.vllm.setup_env import python_of, venv_folder

QUEUE = 4
PATIENCE_S = 900.0


SETS = ("pair", "crowded", "handover")


class Pair(NamedTuple):
    """Two servers that differ in speed."""

    small: Server
    med: Server


class Handover(NamedTuple):
    """Two servers that share the work of a call."""

    prefill: Server
    decode: Server


class Sets:
    """The set of servers that runs."""

    def __init__(self, logs: Path) -> None:
        self.logs, self.name, self.ends = logs, "", ExitStack()
        self.servers: Any = None

    def want(self, name: str, make: Callable[[], Any]) -> Any:
        """The servers of that set, all up; another set that runs is ended, one that has lost a server started anew."""
        if self.name != name or not all(server.is_alive() for server in self.servers):
            self.end()
            servers = make()
            self.ends.enter_context(serving(self.logs, *servers))
            self.name, self.servers = name, servers
        return self.servers

    def end(self) -> None:
        """End the set that runs."""
        self.name = ""
        self.ends.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that want the same servers one after the other, those that start their own first.

    A test may wait for servers to start, which takes minutes on a busy machine.
    """
    mine = [k for k, item in enumerate(items) if item.path.is_relative_to(Path(__file__).parent)]
    ordered = sorted((items[k] for k in mine), key=lambda item: wanted(getattr(item, "fixturenames", ())))
    for k, item in zip(mine, ordered, strict=True):
        items[k] = item
        item.add_marker(pytest.mark.timeout(PATIENCE_S))


def wanted(fixtures: Sequence[str]) -> int:
    """The place of the set that a test with these fixtures wants."""
    return max((SETS.index(name) + 1 for name in SETS if name in fixtures), default=0)


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
def sets(logs: Path) -> Iterator[Sets]:
    """What starts and ends the sets."""
    found = Sets(logs)
    try:
        yield found
    finally:
        found.end()


@pytest.fixture
def pair(sets: Sets) -> Pair:
    """A quick server and a slow one."""
    found: Pair = sets.want("pair", lambda: Pair(Server("small", on=0), Server("med", on=1)))
    return found


@pytest.fixture
def small(pair: Pair) -> Server:
    """The quick one of the pair."""
    return pair.small


@pytest.fixture(params=["small", "med"])
def either(request: pytest.FixtureRequest, pair: Pair) -> Server:
    """Each of the pair in turn."""
    return pair.small if request.param == "small" else pair.med


@pytest.fixture
def handover(sets: Sets) -> Handover:
    """A prefiller and a decoder."""
    roles = ("prefill", 0), ("decode", 1)
    found: Handover = sets.want("handover", lambda: Handover(*(Server("small", role, on) for role, on in roles)))
    return found


@pytest.fixture
def crowded(sets: Sets) -> Server:
    """A server with one seat and room for QUEUE calls that wait; more it turns away."""
    flags = ("--max-num-seqs", 1, "--max-num-queued-reqs", 1 + QUEUE)  # running ones count
    (found,) = sets.want("crowded", lambda: (Server("small", "both", 0, 0, *flags),))
    assert isinstance(found, Server)
    return found
