"""What a workload holds, as one object for `headway trace describe --json`."""

from typing import Any

import numpy as np

from control.model.workload import Workload
from control.workload.arrivals import has_times


def describe(workload: Workload) -> dict[str, Any]:
    """Counts, token sums, span_s (s; None for a trace without times), and counts and means per name."""
    calls = workload.calls
    return {
        "name": workload.name,
        "format": workload.format,
        "workflows": len(workload.workflows),
        "calls": len(calls),
        "input_tokens": int(calls["input_tokens"].sum(dtype=np.int64)),
        "output_tokens": int(calls["output_tokens"].sum(dtype=np.int64)),
        "shared_tokens": int(calls["shared_tokens"].sum(dtype=np.int64)),
        "history_tokens": int(calls["history_tokens"].sum(dtype=np.int64)),
        "span_s": workload.span_s if has_times(workload) else None,
        "streams": workload.n_streams,
        "kinds": _counts(workload, "kind", workload.kinds),
        "tenants": _counts(workload, "tenant", workload.tenants),
        "steps": [_step(workload, number) for number in range(len(workload.steps))],
        "problems": list(workload.problems),
    }


def _counts(workload: Workload, field: str, names: tuple[str, ...]) -> dict[str, int]:
    counts = np.bincount(workload.workflows[field], minlength=len(names))
    return {name: int(count) for name, count in zip(names, counts, strict=True)}


def _step(workload: Workload, number: int) -> dict[str, Any]:
    calls = workload.calls[workload.calls["step"] == number]
    means = {
        f"mean_{field}": round(float(calls[field].mean()), 3) if len(calls) else None
        for field in ("input_tokens", "output_tokens", "history_tokens", "tool_s")
    }
    return {"step": workload.steps[number], "calls": len(calls), **means}
