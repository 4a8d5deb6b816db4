"""A pipe that closes, a key that interrupts, a disk that is full: no traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.running import environment, headway, heed_interrupts

COMMAND = f"{sys.executable} -m control.cli"


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash."""
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("what", ["sim --trace text2sql --workflows 20", "--help", "doctor"])
def test_a_reader_that_leaves(tmp_path: Path, what: str) -> None:
    done = shell(tmp_path, f"{COMMAND} {what} | head -1")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    done = shell(tmp_path, f"{COMMAND} {what} | true")
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    done = shell(tmp_path, f"{COMMAND} sim --json --trace text2sql --workflows 20 > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "cannot write the output: No space left on device\n"


@pytest.mark.parametrize("after_s", [0.8, 3.0])
def test_ctrl_c_in_a_long_comparison(tmp_path: Path, after_s: float) -> None:
    long = headway(tmp_path, "compare", "--json", "--trace", "text2sql", "--seeds", 100_000)
    try:
        time.sleep(after_s)
        long.signal(signal.SIGINT)
        assert long.wait(10.0) == 130
        assert long.stderr == "interrupted\n"
        assert long.stdout == ""
    finally:
        long.end()


IN_AN_IMPORT = """
import os, signal
try:
    os.kill(os.getpid(), signal.SIGINT)
    import json.decoder
except BaseException:  # as libraries do about a part that they can do without
    LOST = True
"""

IN_A_CALLBACK = """
import ctypes, os, signal

@ctypes.CFUNCTYPE(None)
def from_c():
    os.kill(os.getpid(), signal.SIGINT)
    sum(range(100))

from_c()
"""


SERVER = "import lossy; signal.signal(signal.SIGINT, lambda *_: (print('ended'), sys.exit(0)))"


@pytest.mark.parametrize(
    ("lost_in", "told"),
    [
        pytest.param(f"exec({IN_A_CALLBACK!r})", "heard\n", id="callback"),
        pytest.param("import lossy", "heard\n", id="import"),
        pytest.param(SERVER, "ended\n", id="handled since"),
    ],
)
def test_an_interrupt_that_a_library_would_lose(tmp_path: Path, lost_in: str, told: str) -> None:
    (tmp_path / "lossy.py").write_text(IN_AN_IMPORT)
    code = f"""
import signal, sys, time
from control.cli.entry import heeded_interrupts
try:
    with heeded_interrupts():
        {lost_in}
        time.sleep(30.0)
except KeyboardInterrupt:
    print("heard")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(tmp_path),
        preexec_fn=heed_interrupts,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.stdout, done.stderr) == (told, "")
