"""The same comparison with the compiler off (real exceptions) and with index checks compiled in.

The flags are read when control.jit is imported, so each takes a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("flags", "examples"),
    [({"HEADWAY_JIT": "0"}, 15), ({"HEADWAY_JIT": "1", "HEADWAY_BOUNDSCHECK": "1"}, 40)],
    ids=["interpreted", "bounds-checked"],
)
def test_twin_runs_alike_under(flags: dict[str, str], examples: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/parity/test_naive.py", "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={**os.environ, **flags, "HEADWAY_PARITY_EXAMPLES": str(examples)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
