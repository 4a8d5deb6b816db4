"""One object that says how a run went: what `headway sim --json` prints."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from control.metrics.energy import energy_j, tokens_per_joule
from control.metrics.latency import mean, percentile, tbts_s, ttfets_s, ttfts_s, workflow_latencies_s
from control.metrics.slo import attainment, finished_debt_s
from control.policy.codes import CANCELLED, CAUSES, COMPLETED, DONE, REFUSED
from control.policy.tables import Record, Table


def summary(workflows: Table, calls: Table, instances: Table, names: Sequence[str]) -> dict[str, Any]:
    """Counts, latencies (s), SLO, energy (J) and one entry per instance of a finished run.

    `names` are the instances' names in table order. A figure nothing was measured for is None.
    """
    return {
        **counts(workflows, calls),
        **latencies(workflows, calls),
        "slo_attainment": attainment(workflows),
        "slo_debt_s": finished_debt_s(workflows),
        "tokens_per_joule": tokens_per_joule(calls, instances, idle_billed=False),
        "tokens_per_joule_idle_billed": tokens_per_joule(calls, instances, idle_billed=True),
        "energy_j": energy_j(instances),
        "preemptions": int(instances["preemptions"].sum()),
        "kv_transfers": int(instances["sent"].sum()),
        "kv_transfer_tokens": int(instances["sent_tokens"].sum()),
        "kv_evicted_tokens": int((instances["evicted_blocks"] * instances["block_size"]).sum()),
        "kv_peak_fraction": float((instances["kv_peak"] / instances["blocks"]).max()),
        "per_instance": [one_instance(row, name) for row, name in zip(instances, names, strict=True)],
    }


def counts(workflows: Table, calls: Table) -> dict[str, Any]:
    """How many workflows and calls there were and how they ended."""
    refused = calls[calls["state"] == REFUSED]
    causes = np.bincount(refused["cause"], minlength=len(CAUSES))
    return {
        "workflows": len(workflows),
        "workflows_done": int((workflows["state"] == DONE).sum()),
        "calls": len(calls),
        "completed": int((calls["state"] == COMPLETED).sum()),
        "refused": len(refused),
        "refused_by_cause": {name: int(n) for name, n in zip(CAUSES, causes, strict=True) if n},
        "cancelled": int((calls["state"] == CANCELLED).sum()),
        "truncated": int((calls["emitted"] < calls["output_tokens"])[calls["state"] == COMPLETED].sum()),
    }


def latencies(workflows: Table, calls: Table) -> dict[str, Any]:
    """End-to-end percentiles, throughput and token latencies."""
    e2e = workflow_latencies_s(workflows)
    span_s = makespan_s(workflows)
    return {
        "p50_s": percentile(e2e, 50),
        "p95_s": percentile(e2e, 95),
        "p99_s": percentile(e2e, 99),
        "mean_s": mean(e2e),
        "makespan_s": span_s,
        "throughput_wps": len(e2e) / span_s if span_s > 0.0 else None,
        "ttft_p95_s": percentile(ttfts_s(calls), 95),
        "ttfet_p95_s": percentile(ttfets_s(workflows, calls), 95),
        "tbt_p95_s": percentile(tbts_s(workflows, calls), 95),
    }


def makespan_s(workflows: Table) -> float:
    """Time from the first arrival to the last end, s."""
    if len(workflows) == 0:
        return 0.0
    return float(workflows["finished_s"].max() - workflows["arrival_s"].min())


def one_instance(row: Record, name: str) -> dict[str, Any]:
    """What one instance did."""
    return {
        "name": name,
        "finished": int(row["finished"]),
        "busy_s": float(row["busy_s"]),
        "iterations": int(row["iterations"]),
        "prefill_tokens": int(row["prefill_tokens"]),
        "cached_tokens": int(row["cached_tokens"]),
        "decode_tokens": int(row["decode_tokens"]),
        "preemptions": int(row["preemptions"]),
        "kv_peak_fraction": float(row["kv_peak"] / row["blocks"]),
        "energy_j": float(row["energy_j"]),
    }
