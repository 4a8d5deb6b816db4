"""How far the twin is from a recorded run: the same requests, at the same times, on the same engine settings.

Nothing is fitted to the run: costs are the catalogue's (or a calibrated profile's), host overhead is a constant of the
engine's version. TTFT = queued to first token, E2E = queued to last token, TPOT = (E2E - TTFT) / (output - 1) of a
request. Errors are relative, predicted over measured minus 1.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from control.model.fleet import Fleet, InstanceSpec
from control.model.hardware import adopt, drop
from control.policy.tables import Table
from control.tuning.accuracy_setup import Setup, set_up
from control.tuning.accuracy_work import arrive, work_of
from control.twin.simulate import simulate
from control.twin.world import World
from control.workload.runs import RecordedRun, Requests
from control.workload.table import Floats

#: Figures that are compared where a run has them, by name.
COMPARED = (
    *("ttft_mean_s", "ttft_p50_s", "ttft_p95_s", "ttft_p99_s", "tpot_mean_s", "tpot_p50_s", "itl_mean_s"),
    *("e2e_mean_s", "e2e_p50_s", "e2e_p95_s", "e2e_p99_s", "output_tokens_per_s", "duration_s", "power_w"),
)
#: Always in the answer, None where the run does not tell.
ALWAYS = ("ttft_mean_s", "tpot_mean_s", "e2e_mean_s", "e2e_p95_s")


class Times(NamedTuple):
    """Times of every request, s; nan where unknown."""

    ttft_s: Floats
    e2e_s: Floats
    outputs: Floats  # tokens


def accuracy(run: RecordedRun, profile_name: str | None) -> dict[str, Any]:
    """Replay `run` and compare; profile_name as in accuracy_setup.set_up, which says what it raises."""
    setup = set_up(run, profile_name)
    work = arrive(work_of(run))
    with costs_of(setup) as spec:
        fleet = Fleet(run.path, tuple(replace(spec, name=f"replica-{i}") for i in range(run.replicas)))
        world = simulate(work, fleet, "rr-fcfs" if run.replicas == 1 else "least-loaded")
    predicted = figures(times_of(world.calls)) | whole_run(world, run)
    measured = dict(run.measured) | (figures(recorded_times(run.requests)) if run.requests else {})
    return {
        "run": run.path,
        "format": run.format,
        "requests": len(work.calls),
        "profile": {name: getattr(setup.profile, name) for name in ("gpu", "model", "gpus", "provenance", "source")},
        "engine": engine_of(setup, run),
        "metrics": errors(predicted, measured),
        "measured": {name: measured.get(name) for name in COMPARED if name in measured},
        "predicted": {name: predicted[name] for name in COMPARED if name in measured and name in predicted},
        "refused": int(np.count_nonzero(world.calls["finished_s"] < 0.0)),
        "preemptions": int(world.instances["preemptions"].sum()),
        "notes": [*run.notes, *setup.notes],
    }


@contextmanager
def costs_of(setup: Setup) -> Iterator[InstanceSpec]:
    """An instance whose costs are the setup's, while the context lasts."""
    name = f"accuracy of {setup.spec.name}"
    adopt(setup.profile, name)
    try:
        yield replace(setup.spec, profile=name)
    finally:
        drop(setup.profile, name)


def engine_of(setup: Setup, run: RecordedRun) -> dict[str, Any]:
    """The engine settings that the twin ran with."""
    spec = setup.spec
    names = ("max_num_seqs", "max_num_batched_tokens", "block_size", "kv_tokens", "max_model_len", "prefix_caching")
    head = {"version": run.version, "replicas": run.replicas, "host_overhead_ms": setup.host.base_ms}
    return head | {"host_overhead_seq_ms": setup.host.seq_ms} | {name: getattr(spec, name) for name in names}


def recorded_times(requests: Requests) -> Times:
    """Times of the recorded requests."""
    return Times(requests.ttft_s, requests.e2e_s, requests.output_tokens.astype(np.float64))


def times_of(calls: Table) -> Times:
    """Times of the twin's calls; nan for those that it refused."""
    done = calls["finished_s"] >= 0.0
    ttft_s = np.where(done, calls["first_token_s"] - calls["ready_s"], np.nan)
    return Times(ttft_s, np.where(done, calls["finished_s"] - calls["ready_s"], np.nan), calls["emitted"] * 1.0)


def figures(times: Times) -> dict[str, float]:
    """Means and percentiles of the requests that have the times."""
    later = np.where(times.outputs > 1.0, times.outputs - 1.0, np.nan)
    decode_s = times.e2e_s - times.ttft_s
    columns = {"ttft": times.ttft_s, "tpot": decode_s / later, "e2e": times.e2e_s}
    found: dict[str, float] = {}
    for name, column in columns.items():
        known = column[np.isfinite(column)]
        if len(known):
            found[f"{name}_mean_s"] = float(known.mean())
            found |= {f"{name}_p{p}_s": float(np.percentile(known, p)) for p in (50, 95, 99)}
    spread = np.isfinite(decode_s / later)
    if spread.any():
        found["itl_mean_s"] = float(decode_s[spread].sum() / later[spread].sum())
    return found


def whole_run(world: World, run: RecordedRun) -> dict[str, float]:
    """Duration, throughput and power of the twin's run, where the recorded run tells them too."""
    ends = world.calls["finished_s"]
    duration_s = float(ends.max(initial=0.0))
    if duration_s <= 0.0:
        return {}
    tokens, joules = float(world.calls["emitted"].sum()), float(world.instances["energy_j"].sum())
    found = {"duration_s": duration_s, "output_tokens_per_s": tokens / duration_s}
    return found | {"power_w": joules / duration_s / (run.gpus * run.replicas)}


def errors(predicted: dict[str, float], measured: dict[str, float]) -> dict[str, float | None]:
    """Relative errors of what both sides have, `x_s` and the like as `x_error`."""
    found: dict[str, float | None] = {error_name(name): None for name in ALWAYS}
    for name in COMPARED:
        a, b = predicted.get(name, math.nan), measured.get(name, math.nan)
        if math.isfinite(a) and math.isfinite(b) and b > 0.0:
            found[error_name(name)] = a / b - 1.0
    return found


def error_name(name: str) -> str:
    """ "e2e_mean_s" -> "e2e_mean_error"."""
    return name.removesuffix("_per_s").removesuffix("_s").removesuffix("_w") + "_error"
