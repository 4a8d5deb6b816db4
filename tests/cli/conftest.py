"""The command line inside the test's process, in an empty folder."""

from collections.abc import Callable
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
def headway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Headway:
    """Runs `headway ARGUMENTS` in `tmp_path`; nothing of the user's is touched."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWAY_DB", str(tmp_path / "default.db"))

    def run(*arguments: object) -> Said:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return Said(code, *capfd.readouterr())

    return run
