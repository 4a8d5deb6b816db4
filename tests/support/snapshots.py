"""Synthetic snapshots in the engine's format, and a stand-in engine that writes them through the journal."""

import time
from typing import Any

from storage import commands, lease
from storage.journal import Batch, Journal
from storage.open import Store
from tests.support import details

GPUS = (("h100-0", "H100", 700.0), ("a100-0", "A100", 400.0), ("l4-0", "L4", 72.0))
FLEET_SAMPLE = (
    "queued",
    "running",
    "power_w",
    "power_limit_w",
    "slo_debt_s",
    "p95_s",
    "slo_attainment",
    "throughput_wps",
    "tokens_per_joule",
)
INSTANCE_SAMPLE = ("queued", "running", "kv_used_fraction", "kv_pinned_fraction", "power_w", "slo_debt_s")


def instance(name: str, gpu: str, tdp_w: float, **changed: Any) -> dict[str, Any]:
    """One instance of a snapshot, lightly loaded."""
    row = {
        "name": name,
        "gpu": gpu,
        "model": "Llama-3.1-8B",
        "provenance": "estimated" if gpu == "L4" else "measured",
        "simulated": True,
        "role": "mixed",
        "state": "up",
        "queued": 2,
        "running": 12,
        "max_num_seqs": 256,
        "kv_used_fraction": 0.4567891,
        "kv_cached_fraction": 0.1,
        "kv_pinned_fraction": 0.0712345,
        "kv_capacity_tokens": 400_000,
        "power_w": tdp_w * 0.512345,
        "power_cap_w": None,
        "power_limit_w": tdp_w,
        "tdp_w": tdp_w,
        "queued_work_s": 3.2,
        "slo_debt_s": 1.5,
        "preemptions": 0,
    }
    return row | changed


def snapshot(seq: int = 1, at: float = 1_800_000_000.0, count: int = 3, **changed: Any) -> dict[str, Any]:
    """One snapshot payload of `count` instances; keyword arguments replace top-level keys."""
    kinds = [GPUS[i % len(GPUS)] for i in range(count)]
    rows = [instance(f"{gpu.lower()}-{i // len(GPUS)}", gpu, tdp) for i, (_, gpu, tdp) in enumerate(kinds)]
    fleet = {
        "queued": sum(r["queued"] for r in rows),
        "running": sum(r["running"] for r in rows),
        "slo_debt_s": 4.5,
        "p50_s": 3.21,
        "p95_s": 12.3456,
        "slo_attainment": 0.9954,
        "throughput_wps": 0.8345,
        "tokens_per_s": 5321.4,
        "tokens_per_joule": 2.4567,
        "power_w": sum(r["power_w"] for r in rows),
        "power_limit_w": sum(r["power_limit_w"] for r in rows),
        "power_cap_w": None,
        "completed": 120,
        "failed": 0,
        "refused": 1,
        "active_workflows": 33,
        "window_s": 300.0,
    }
    payload = {
        "seq": seq,
        "at": at,
        "sim_s": seq * 10.0,
        "engine": {"pid": 4711, "started_at": at - 60, "version": "0.1.0", "state": "running"},
        "scenario": "demo-mixed",
        "fleet_name": "demo-mixed",
        "seed": 1,
        "speed": 10.0,
        "paused": False,
        "policy": "hexgen",
        "policies": ["rr-fcfs", "hexgen", "edf"],
        "alpha": 0.2,
        "load_scale": 1.0,
        "retention": {"need": "observed", "idle_ttl_s": None},
        "fleet": fleet,
        "instances": rows,
        "tick_ms": 1.2,
    }
    return payload | changed


def samples_of(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """The 1 s sample rows that belong to a snapshot."""
    fleet = {name: payload["fleet"].get(name) for name in FLEET_SAMPLE}
    rows = [{"scope": i["name"], **{c: i[c] for c in INSTANCE_SAMPLE}} for i in payload["instances"]]
    return [{"scope": "fleet", "alpha": payload["alpha"], **fleet}, *rows]


class StandInEngine:
    """Commits one snapshot and its detail a call; decides commands with compare-and-set, as an engine does.

    `detail` holds what replaces parts of the detail document, and its "tuning" what commands changed; None: the
    engine reports no detail.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.settings: dict[str, Any] = {"alpha": 0.2, "policy": "hexgen"}
        self.detail: dict[str, Any] | None = {"tuning": details.tuning()}
        lease.acquire(store, "stand-in")
        self.journal = Journal(store)

    def tick(
        self,
        at: float | None = None,
        events: tuple[dict[str, Any], ...] = (),
        workflows: tuple[dict[str, Any], ...] = (),
        **changed: Any,
    ) -> None:
        """Decide all pending commands and commit a snapshot at `at` (epoch s, now by default)."""
        at = time.time() if at is None else at
        outcomes = [self._decide(row) for row in commands.pending(self.store)]
        payload = snapshot(at=at, **(self.settings | changed))
        batch = Batch(at, payload["sim_s"], payload, samples_of(payload), outcomes=outcomes)
        batch.events.extend(events)
        batch.workflows.extend(workflows)
        if self.detail is not None:
            batch.detail = details.detail(at, payload["sim_s"], **self.detail)
        self.journal.commit(batch)

    def _decide(self, row: dict[str, Any]) -> dict[str, Any]:
        found = self.settings.get(row["kind"])
        if row["kind"] in self.settings and row["expected"] not in (None, found):
            return {"id": row["id"], "state": "refused", "reason": f"it is {found} by now"}
        if row["kind"] in self.settings and row["kind"] in row["payload"]:
            self.settings[row["kind"]] = row["payload"][row["kind"]]
        if self.detail is not None:
            self.detail["tuning"] |= self._tuned(row)
        return {"id": row["id"], "state": "applied"}

    def _tuned(self, row: dict[str, Any]) -> dict[str, Any]:
        """What a command changes of the tuner: an α set by hand is pinned until it is released."""
        changes: dict[str, dict[str, Any]] = {
            "tune": {"running": True, "progress": 0.0},
            "tuning_mode": {"mode": row["payload"].get("mode")},
            "release_alpha": {"pinned": False},
            "alpha": {"pinned": True},
        }
        return changes.get(row["kind"], {})
