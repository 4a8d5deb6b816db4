"""`headway warm` on two cores: what a second process does is found, what it does not do is done, both end together."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from control.cli import precompile
from tests.cli.conftest import Headway
from tests.support.running import Running, Start, command_line, descendants, living, until


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores, and kernels that seem to be missing."""
    monkeypatch.setattr("control.tuning.warmup.is_all_warm", lambda: False)
    monkeypatch.setattr("control.cli.precompile.cores", lambda: 2)


@pytest.mark.usefixtures("cold")
def test_both_processes_find_what_is_compiled(headway: Headway, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    usual = precompile.heard
    monkeypatch.setattr("control.cli.precompile.heard", lambda other: said.append(usual(other)) or said[-1])
    code, out, _ = headway("warm")
    assert (code, said) == (0, [precompile.DONE])
    assert out.startswith("compiled in ")


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize("ends", ["sys.exit(1)", "print('no such line')", "import no_such_module"])
def test_a_second_process_that_fails_is_done_without(
    headway: Headway, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    monkeypatch.setattr("control.cli.precompile.ASSISTANT", (sys.executable, "-c", f"import sys; {ends}"))
    code, out, _ = headway("warm")
    assert (code, out[:12]) == (0, "compiled in ")


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_with_both_processes(start: Start, tmp_path: Path, end: int) -> None:
    if precompile.cores() < 2:
        pytest.skip("one core")
    warm = start("warm", HEADWAY_CACHE=str(tmp_path / "cache"))
    until(assistant_of(warm), "the second process")
    below = descendants(warm.pid)
    until(lambda: any((tmp_path / "cache").rglob("*.nbc")), "the first kernel")
    warm.signal(end)
    assert warm.wait(30.0) == (130 if end == signal.SIGINT else -signal.SIGKILL)
    until(lambda: living(below) == [], "the end of the second process", 5.0)
    expected = "compiling the simulator (once; a minute or two) ...\n" + "interrupted\n" * (end == signal.SIGINT)
    assert warm.stderr == expected


def assistant_of(warm: Running) -> Callable[[], bool]:
    """Whether the second process is there."""
    return lambda: any("precompile" in command_line(pid) for pid in descendants(warm.pid))
