"""The speed command prints what other tools read; how fast it is depends on the machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import environment, object_of


@pytest.mark.bench
def test_shape_of_the_twin_benchmark(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "control.cli", "bench", "twin", "--json"]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=True)
    speed = object_of(done.stdout)
    assert (speed["instances"], speed["requests"]) == (4, 10_000)
    for name in ("requests_per_cpu_s", "events_per_cpu_s", "reload_s"):
        assert speed[name] > 0.0
    assert speed["jit_compile_s"] is None or speed["jit_compile_s"] > 0.0


@pytest.mark.bench
def test_shape_of_the_tuning_benchmark(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "control.cli", "bench", "tune", "--runs", "1", "--ticks", "60", "--json"]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=True)
    speed = object_of(done.stdout)
    assert speed["calls"] > 1000
    assert speed["tuning_runs"] >= 1
    for name in ("tick_ms", "tick_while_tuning_ms"):
        assert 0.0 < speed[name]["median"] <= speed[name]["most"]
