"""What a run of the load driver found: latencies, failures, throughput, and how punctual the driver itself was."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from control.adapters.completions import Answer
from control.adapters.driver import NEVER, Drive, Flow

PERCENTILES = (50, 95, 99)


def report(drive: Drive) -> dict[str, Any]:
    """The figures of a run, finished or not. Times in s; None where nothing was measured."""
    answers = [answer for _, answer in drive.answers]
    good = [answer for answer in answers if not answer.failure]
    duration_s = max((answer.ended_s for answer in answers), default=drive.begun_s) - drive.begun_s
    output = sum(answer.tokens for answer in good)
    return {
        "url": drive.root,
        "model": drive.model,
        "trace": drive.workload.name,
        "seed": drive.seed,
        "interrupted": drive.interrupted,
        "duration_s": duration_s,
        "workflows": of_flows(drive),
        "calls": {"done": len(good), "failed": len(answers) - len(good), "tokens": tokens(drive)},
        "failures": failures(answers),
        "workflow_latency_s": spread(flow.latency_s for flow in drive.flows if flow.done),
        "slo_attainment": attainment(drive.flows),
        "ttft_s": spread(answer.ttft_s for answer in good),
        "tpot_s": spread(answer.tpot_s for answer in good),
        "itl_s": spread(gaps_s(good)),
        "e2e_s": spread(answer.e2e_s for answer in good),
        "output_tokens_per_s": output / duration_s if duration_s > 0.0 else None,
        "lateness_s": spread(flow.started_s - flow.planned_s for flow in drive.flows) | most(drive.flows),
    }


def of_flows(drive: Drive) -> dict[str, Any]:
    """Workflows by what became of them, and those done per s."""
    done, failed = (sum(getattr(flow, name) for flow in drive.flows) for name in ("done", "failed"))
    ends = [flow.ended_s for flow in drive.flows if flow.done]
    return {
        "planned": len(drive.workload.workflows),
        "started": len(drive.flows),
        "done": done,
        "failed": failed,
        "unfinished": len(drive.flows) - done - failed,
        "per_s": done / max(ends) if ends else None,
    }


def tokens(drive: Drive) -> dict[str, Any]:
    """Tokens sent, found in a cache and generated; how far prompts are from their recorded lengths, as a share."""
    good = [(int(drive.workload.calls["input_tokens"][c]), answer) for c, answer in drive.answers if not answer.failure]
    apart = [abs(answer.prompt_tokens / wanted - 1.0) for wanted, answer in good if answer.prompt_tokens]
    return {
        "input": sum(answer.prompt_tokens for _, answer in good),
        "cached": sum(answer.cached_tokens for _, answer in good),
        "output": sum(answer.tokens for _, answer in good),
        "prompt_length_error": float(np.mean(apart)) if apart else None,
    }


def failures(answers: Iterable[Answer]) -> dict[str, dict[str, Any]]:
    """By class: how many, and what the first one said."""
    found: dict[str, dict[str, Any]] = {}
    for answer in answers:
        if answer.failure:
            found.setdefault(answer.failure, {"count": 0, "first": answer.message})["count"] += 1
    return found


def gaps_s(answers: Iterable[Answer]) -> Iterable[float]:
    """Times between pieces of the streams."""
    for answer in answers:
        yield from np.diff(answer.pieces_s)


def spread(values: Iterable[float]) -> dict[str, float | None]:
    """Mean and percentiles of those that are numbers."""
    known = np.array([value for value in values if math.isfinite(value)])
    found: dict[str, float | None] = {"mean": float(known.mean()) if len(known) else None}
    for p in PERCENTILES:
        found[f"p{p}"] = float(np.percentile(known, p)) if len(known) else None
    return found


def most(flows: list[Flow]) -> dict[str, float | None]:
    """The largest lateness."""
    return {"most": max((flow.started_s - flow.planned_s for flow in flows), default=None)}


def attainment(flows: list[Flow]) -> float | None:
    """Share of the workflows with an SLO that ended in time, of those that ended; failed ones did not."""
    judged = [flow for flow in flows if math.isfinite(flow.slo_s) and flow.slo_s < NEVER and (flow.done or flow.failed)]
    met = sum(flow.done and flow.latency_s <= flow.slo_s for flow in judged)
    return met / len(judged) if judged else None
