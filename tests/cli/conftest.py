"""The command line inside the test's process, in an empty folder."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from control.cli.main import main


class Said(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


Headway = Callable[..., Said]


@pytest.fixture
def headway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Headway]:
    """Runs `headway ARGUMENTS` in `tmp_path`; nothing of the user's is touched, nor how this process takes signals."""
    taken = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWAY_DB", str(tmp_path / "default.db"))

    def run(*arguments: object) -> Said:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return Said(code, *capfd.readouterr())

    yield run
    for number, handler in taken.items():
        signal.signal(number, handler)
