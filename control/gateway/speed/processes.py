"""Processes under measurement: started, awaited, their CPU time read, ended."""

import os
import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from control.errors import HeadwayError

PATIENCE_S = 600.0  # an engine may have to compile first
LOOK_S = 0.05
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01  # unit of /proc/PID/stat, s


class MeasureError(HeadwayError):
    """A process that was to be measured did not do its work."""


class Process(AbstractContextManager["Process"]):
    """A process for the length of a block; what it says goes to a file."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        self.name, self.log = name, folder / f"{name.replace(' ', '-')}.log"
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )

    def __enter__(self) -> Self:
        """The process, under way."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, and wait until it is gone."""
        self.popen.terminate()
        try:
            self.popen.wait(20.0)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()

    def said(self, pattern: str) -> str:
        """The first group of `pattern` in what it says, once it says that.

        Raises:
            MeasureError: it ended, or did not say it within PATIENCE_S.
        """
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            found = re.search(pattern, self.log.read_text(errors="replace"))
            if found is not None:
                return found.group(1)
            self.check()
            time.sleep(LOOK_S)
        raise MeasureError(f"{self.name} did not begin to serve within {PATIENCE_S:.0f} s")

    def check(self) -> None:
        """MeasureError where it has ended."""
        if self.popen.poll() is not None:
            lines = self.log.read_text(errors="replace").strip().splitlines() or ["no word"]
            raise MeasureError(f"{self.name} ended with exit code {self.popen.returncode}: {lines[-1][:300]}")

    def cpu_s(self) -> float:
        """CPU time that it and its descendants have used, s."""
        return tree_cpu_s(self.popen.pid)


def tree_cpu_s(pid: int) -> float:
    """CPU time of a process, its threads and its descendants, those that ended included, s.

    Raises:
        MeasureError: the system has no /proc, or the process is gone.
    """
    stats = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            stats[int(entry.name)] = (entry / "stat").read_text()
    if pid not in stats:
        raise MeasureError(f"CPU time of process {pid} cannot be read from /proc/{pid}/stat")
    parents = {one: int(fields_of(stat)[1]) for one, stat in stats.items()}
    family, grown = {pid}, True
    while grown:
        more = {one for one, parent in parents.items() if parent in family} - family
        family, grown = family | more, bool(more)
    return sum(own_cpu_s(stats[one]) for one in family)


def fields_of(stat: str) -> list[str]:
    """Fields of a /proc/PID/stat from the third, the state, on; the second, a name, may hold blanks."""
    return stat[stat.rindex(")") + 2 :].split()


def own_cpu_s(stat: str) -> float:
    """User and system time in the text of a /proc/PID/stat, with that of children waited for, s."""
    return sum(int(value) for value in fields_of(stat)[11:15]) * TICK_S
