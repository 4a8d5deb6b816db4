"""How fast the twin is, on the workload its peers were measured on.

4 x A100 with Llama-3.1-8B, exponential lengths of mean 1,450 in and 199 out, least-loaded dispatch, FCFS,
Poisson arrivals at 12/s, 10,000 requests.
"""

import os
import subprocess
import sys
import time
from statistics import median
from typing import Any

import numpy as np

from control.config import within
from control.jit import is_warm
from control.model.fleet import Fleet, InstanceSpec
from control.model.workload import Workload, empty_calls, empty_workflows
from control.twin.kernel import advance
from control.twin.pack import build_world

RATE_PER_INSTANCE = 3.0  # requests/s
MEAN_INPUT, MEAN_OUTPUT = 1450.0, 199.0  # tokens


def peer_workload(n: int, rate: float, seed: int = 0) -> Workload:
    """`n` lone requests, Poisson at `rate` a second, exponential lengths."""
    rng = np.random.default_rng(seed)
    workflows, calls = empty_workflows(n), empty_calls(n)
    workflows["arrival_s"] = np.cumsum(rng.exponential(1.0 / rate, n))
    workflows["first_call"] = calls["workflow"] = np.arange(n)
    workflows["n_calls"] = 1
    calls["input_tokens"] = np.maximum(1, rng.exponential(MEAN_INPUT, n))
    calls["output_tokens"] = np.maximum(1, rng.exponential(MEAN_OUTPUT, n))
    calls["draw_a"], calls["draw_b"] = rng.random(n), rng.random(n)
    return Workload("peer", "generated", workflows, calls, ("chat",), ("default",), ("chat",), 0, 0)


def peer_fleet(n: int) -> Fleet:
    """`n` A100 with the small model, engine defaults."""
    return Fleet("peer", tuple(InstanceSpec(f"a100-{i}", "A100", "Llama-3.1-8B") for i in range(n)))


def measure_twin(instances: int, requests: int, runs: int) -> dict[str, Any]:
    """Medians over `runs` of requests and events per CPU second; build and compile are not in them.

    Raises:
        SettingError: a count out of bounds.
    """
    for name, value, most in (("instances", instances, 1024), ("requests", requests, 10_000_000), ("runs", runs, 1000)):
        within(f"--{name}", value, 1, most)
    was_warm = is_warm()
    fleet, work = peer_fleet(instances), peer_workload(requests, RATE_PER_INSTANCE * instances)
    start = time.perf_counter()
    advance(build_world(peer_workload(1, 1.0), fleet, "least-loaded"), np.inf)
    first_s = time.perf_counter() - start
    seconds, events = [], 0
    for _ in range(runs):
        world = build_world(work, fleet, "least-loaded")
        start = time.process_time()
        advance(world, np.inf)
        seconds.append(time.process_time() - start)
        events = int(world.clock[0]["events"])
    cpu_s = median(seconds)
    return {
        "requests_per_cpu_s": requests / cpu_s,
        "events_per_cpu_s": events / cpu_s,
        "instances": instances,
        "requests": requests,
        "runs": runs,
        "cpu_s": cpu_s,
        "jit_compile_s": None if was_warm else first_s,
        "reload_s": first_s if was_warm else reload_s(),
    }


def reload_s() -> float:
    """Time for a new process to load the compiled kernels, its interpreter's start not counted, s."""
    code = "import time; from control.tuning.warmup import warm_up; t = time.perf_counter(); warm_up(); "
    code += "print(time.perf_counter() - t)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True, check=True
    )
    return float(done.stdout)
