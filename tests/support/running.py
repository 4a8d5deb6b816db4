"""Real processes of the command, each in a group of its own that a test never leaves behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a test's processes: the default store lies in `folder`, never with the user."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    mine = {**os.environ, "PYTHONPATH": path, "HEADWAY_DB": str(folder / "default.db"), **more}
    mine.pop("DISPLAY", None)
    return mine


def heed_interrupts() -> None:
    """Let ctrl-C reach a process though the suite itself may run where it is ignored, as background jobs do."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Running:
    """One command under way; what it writes goes to files beside the store."""

    def __init__(self, folder: Path, command: list[str], **more: str) -> None:
        self.out, self.err = (folder / f"{time.monotonic_ns()}.{name}" for name in ("out", "err"))
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment(folder, **more),
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=heed_interrupts,
            )

    @property
    def pid(self) -> int:
        """Its process number, and that of its group."""
        return self.process.pid

    @property
    def stdout(self) -> str:
        """All it has written to standard output."""
        return self.out.read_text()

    @property
    def stderr(self) -> str:
        """All it has written to standard error."""
        return self.err.read_text()

    @property
    def complaints(self) -> list[str]:
        """The lines on standard error that are no log lines."""
        return [line for line in self.stderr.splitlines() if " INFO " not in line]

    def signal(self, number: int) -> None:
        """Send a signal to the process alone, as ctrl-C or a service manager would."""
        self.process.send_signal(number)

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """Its exit code."""
        return self.process.wait(timeout_s)

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def end(self) -> None:
        """Kill whatever is left of its session."""
        for pid in session_members(self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def headway(folder: Path, *arguments: object, **more: str) -> Running:
    """`headway ARGUMENTS` under way."""
    return Running(folder, [sys.executable, "-m", "control.cli", *map(str, arguments)], **more)


Start = Callable[..., Running]


@contextmanager
def starter(folder: Path) -> Iterator[Start]:
    """Starts `headway ...` in `folder`; all it started and everything below ends with the block."""
    running: list[Running] = []

    def begin(*arguments: object, **more: str) -> Running:
        running.append(headway(folder, *arguments, **more))
        return running[-1]

    try:
        yield begin
    finally:
        end_all(running)


def end_all(running: list[Running]) -> None:
    """Kill these and every process below them, in whatever session."""
    below = [pid for process in running for pid in descendants(process.pid)]
    for process in running:
        process.end()
    for pid in below:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def until(condition: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> Any:
    """The first truth `condition` gives; AssertionError names `what` did not come in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {timeout_s:g} s: {what}")


def stat_of(pid: int) -> tuple[str, int, int] | None:
    """State letter, parent and session of a process; None where it is gone."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return after_name[0], int(after_name[1]), int(after_name[3])


def all_pids() -> list[int]:
    """Every process there is."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def session_members(session: int) -> list[int]:
    """Living processes of a session."""
    found = [(pid, stat_of(pid)) for pid in all_pids()]
    return [pid for pid, stat in found if stat is not None and stat[2] == session and stat[0] != "Z"]


def descendants(pid: int) -> list[int]:
    """Living processes below `pid`, in whatever session."""
    parents = {child: stat[1] for child in all_pids() if (stat := stat_of(child)) is not None and stat[0] != "Z"}
    below, more = set[int](), {pid}
    while more:
        more = {child for child, parent in parents.items() if parent in more} - below
        below |= more
    return sorted(below)


def living(pids: list[int]) -> list[int]:
    """Those of `pids` that have not ended."""
    return [pid for pid in pids if (stat := stat_of(pid)) is not None and stat[0] != "Z"]


def command_line(pid: int) -> str:
    """How a process was started."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def object_of(text: str) -> dict[str, Any]:
    """The one JSON object that `text` is."""
    value: dict[str, Any] = orjson.loads(text)
    assert isinstance(value, dict)
    return value
