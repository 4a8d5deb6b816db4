"""The same comparison, laws and rules with the compiler off (real exceptions); the laws with index checks compiled in.

The flags are read when control.jit is imported, so each takes a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = (
    *("tests/parity/test_naive.py", "tests/parity/test_conversations.py", "tests/parity/test_disturbed.py"),
    *("tests/laws/test_failures.py", "tests/policy", "tests/twin"),
)
#: Of those, what the default suite has time for.
SOME = ("tests/parity/test_naive.py", "tests/parity/test_conversations.py", "tests/policy")
#: The replay goes through idle time in ticks of .1 ms: interpreted, only its crowd takes no minutes.
LONG = tuple(
    f"--deselect=tests/twin/test_artifact.py::{name}"
    for name in (
        "test_every_call_runs_once_and_all_kv_comes_back[generated",
        "test_budget_of_the_first_call_is_its_share_of_the_base_slo",
        "test_alpha_one_sends_everything_to_the_cheapest_gpu",
        "test_figures_of_the_authors_simulator_are_met",
    )
)
#: Compiling everything once more takes minutes, so that one test must do: scenes of every feature and policy.
LAWS = ("tests/laws/test_failures.py::test_laws_hold_through_kills_drains_and_returns",)


@pytest.mark.timeout(900)  # the first bounds-checked run compiles for minutes on a busy machine
@pytest.mark.parametrize(
    ("flags", "tests", "examples"),
    [
        pytest.param({"HEADWAY_JIT": "0"}, SOME, 2, id="interpreted"),
        pytest.param({"HEADWAY_JIT": "0"}, (*RULES, *LONG), 4, id="interpreted-whole", marks=pytest.mark.slow),
        pytest.param(
            {"HEADWAY_JIT": "1", "HEADWAY_BOUNDSCHECK": "1"}, LAWS, 100, id="bounds-checked", marks=pytest.mark.slow
        ),
    ],
)
def test_twin_runs_alike_under(flags: dict[str, str], tests: tuple[str, ...], examples: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *tests, "-p", "no:cacheprovider"],
        cwd=ROOT,
        env={**os.environ, **flags, "HEADWAY_EXAMPLES": str(examples)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
