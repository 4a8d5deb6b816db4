"""Dashboards get small, right answers from an empty store, a full one and a busy one."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from storage import commands, lease, readers
from storage.journal import Batch, Journal
from storage.open import Store
from storage.tables import MEASURES

ROOT = Path(__file__).resolve().parents[2]
NOW = 1_800_000_000.0


def finished(number: int, **changed: Any) -> dict[str, Any]:
    row = {"id": number, "kind": "chat", "tenant": "a", "state": "completed", "latency_s": 4.0, "slo_s": 5.0}
    times = {"arrival_sim_s": 1.0, "finished_sim_s": 5.0, "at": NOW + number, "debt_s": 0.0}
    return {**row, **times, "energy_j": 10.0, "input_tokens": 3_000_000_000, "output_tokens": 50, **changed}


def test_an_empty_store_gives_empty_answers(store: Store) -> None:
    assert readers.latest_snapshot(store) is None
    assert readers.snapshots_since(store, 0) == []
    assert {name: len(column) for name, column in readers.samples(store, None, 0.0, 1).items()} == dict.fromkeys(
        ("scope", "at", "sim_s", *MEASURES), 0
    )
    assert readers.events(store, 0.0, 5) == []
    assert readers.decisions(store, 5) == []
    assert readers.workflows(store, 5) == []
    assert readers.meta(store) == {}
    summary = readers.fleet_summary(store)
    assert summary.pop("mean_latency_s") is None
    assert set(summary.values()) == {0}
    assert commands.pending(store) == []
    assert commands.recent(store, 5) == []


def test_snapshots_come_as_stored_bytes_in_order(store: Store, journal: Journal) -> None:
    for tick in range(5):
        journal.commit(Batch(NOW + tick, 0.0, snapshot={"tick": tick}))
    assert readers.snapshots_since(store, 2) == [
        (3, b'{"tick":2,"seq":3}'),
        (4, b'{"tick":3,"seq":4}'),
        (5, b'{"tick":4,"seq":5}'),
    ]
    assert [seq for seq, _ in readers.snapshots_since(store, 0, limit=2)] == [1, 2]
    assert readers.snapshots_since(store, 5) == []


def test_samples_are_columns_of_one_scope_or_all(store: Store, journal: Journal) -> None:
    for tick in range(4):
        rows = [{"scope": scope, "queued": tick + offset} for scope, offset in (("fleet", 0), ("a", 10))]
        journal.commit(Batch(NOW + tick, float(tick), samples=rows))
    fleet = readers.samples(store, "fleet", NOW + 2, 1)
    assert fleet["at"].tolist() == [NOW + 2, NOW + 3]
    assert fleet["queued"].tolist() == [2.0, 3.0]
    assert np.isnan(fleet["p95_s"]).all()
    everyone = readers.samples(store, None, NOW + 3, 1)
    assert everyone["scope"].tolist() == ["a", "fleet"]
    assert everyone["queued"].tolist() == [13.0, 3.0]
    assert len(readers.samples(store, None, 0.0, 10)["at"]) == 0
    assert readers.samples(store, "a", 0.0, 1, ["queued"]).keys() == {"scope", "at", "sim_s", "queued"}


@pytest.mark.parametrize(
    ("window_s", "resolution_s"), [(60, 1), (900, 1), (901, 10), (9000, 10), (9001, 60), (30 * 86_400, 60)]
)
def test_a_longer_window_gets_coarser_samples(window_s: float, resolution_s: int) -> None:
    assert readers.pick_resolution(window_s) == resolution_s


def test_workflows_are_filtered_and_summed(store: Store, journal: Journal) -> None:
    rows = [
        finished(1),
        finished(2, debt_s=2.5, latency_s=6.0, tenant="b"),
        finished(3, debt_s=-1.0, kind="agent"),
        finished(4, state="refused", latency_s=None, debt_s=None, cause="too_long"),
        finished(5, state="failed", latency_s=100.0),
    ]
    journal.commit(Batch(NOW, 0.0, workflows=rows))
    assert [row["id"] for row in readers.workflows(store, 2)] == [5, 4]
    assert [row["id"] for row in readers.workflows(store, 9, state="completed", kind="chat")] == [2, 1]
    assert [row["id"] for row in readers.workflows(store, 9, tenant="b")] == [2]
    assert [row["id"] for row in readers.workflows(store, 9, late_only=True)] == [2]
    counts = {"workflows": 5, "completed": 3, "failed": 1, "cancelled": 0, "refused": 1, "late": 1}
    sums = {"slo_debt_s": 2.5, "energy_j": 50.0, "input_tokens": 15_000_000_000, "output_tokens": 250}
    assert readers.fleet_summary(store) == counts | sums | {"mean_latency_s": pytest.approx(14 / 3)}
    assert readers.fleet_summary(store, since_at=NOW + 4)["workflows"] == 2


def test_placements_of_one_workflow_and_events_of_a_window(store: Store, journal: Journal) -> None:
    names = {"stage": "s", "instance": "i", "policy": "hexgen"}
    placed = [{"call": call, "workflow": call % 2, **names} for call in range(4)]
    marks = [{"at": NOW + i, "kind": "speed", "text": f"x{i}"} for i in range(4)]
    journal.commit(Batch(NOW, 0.0, decisions=placed, events=marks))
    assert [row["call"] for row in readers.decisions(store, 9, workflow=1)] == [3, 1]
    assert [row["text"] for row in readers.events(store, NOW + 1, 2)] == ["x3", "x2"]
    assert [row["text"] for row in readers.events(store, NOW + 3, 9)] == ["x3"]


SUBMITTER = """
import sys, time
from storage import commands
from storage.open import open_store
store = open_store(sys.argv[1])
for i in range(60):
    commands.submit(store, "alpha", {"alpha": i / 60}, f"process-{i}")
    time.sleep(0.03)
"""


def test_one_writer_ten_readers_and_a_second_process_are_never_locked_out(
    url: str, store: Store, journal: Journal
) -> None:
    stop, failures, reads = threading.Event(), [], [0] * 10

    def read(viewer: int) -> None:
        newest = 0
        try:
            while not stop.is_set():
                snapshot = readers.latest_snapshot(store)
                assert snapshot is None or snapshot["seq"] >= newest, "time ran backwards"
                newest = snapshot["seq"] if snapshot else 0
                readers.samples(store, None, NOW, 1)
                commands.recent(store, 5)
                reads[viewer] += 1
                time.sleep(0.05)
        except BaseException as error:
            failures.append(error)

    viewers = [threading.Thread(target=read, args=(i,)) for i in range(10)]
    submitter = subprocess.Popen([sys.executable, "-c", SUBMITTER, url], cwd=ROOT)
    for viewer in viewers:
        viewer.start()
    taken = write_at_10_hz_until_done(store, journal, submitter)
    stop.set()
    for viewer in viewers:
        viewer.join(timeout=30)
    assert failures == []
    assert submitter.returncode == 0
    assert taken == 60
    assert commands.pending(store) == []
    assert min(reads) > 5


def write_at_10_hz_until_done(store: Store, journal: Journal, submitter: "subprocess.Popen[bytes]") -> int:
    """Commit ten times a second, applying commands as they come; returns how many were applied."""
    taken, tick, seen = 0, 0, -1
    while True:
        ended = submitter.poll() is not None
        token = commands.changed(store)
        outcomes = []
        if token != seen or ended:
            outcomes = [{"id": row["id"], "state": "applied"} for row in commands.pending(store)]
        seen = token
        rows = [{"scope": f"gpu-{i}", "queued": tick} for i in range(64)]
        journal.commit(Batch(NOW + tick, tick, {"tick": tick}, rows, outcomes=outcomes))
        taken, tick = taken + len(outcomes), tick + 1
        if ended:
            return taken
        time.sleep(0.1)


def test_a_lease_can_be_watched_while_the_engine_writes(store: Store, journal: Journal) -> None:
    journal.commit(Batch(NOW, 0.0))
    held = lease.holder(store, now=NOW + 2)
    assert held is not None
    assert held["age_s"] == 2.0


def test_placements_by_what_is_wanted_and_one_with_its_receipt(store: Store, journal: Journal) -> None:
    names = {"stage": "s", "instance": "i", "policy": "hexgen", "score": 10.0, "runner_up_score": 9.5, "workflow": 1}
    others = [{"stage": "t"}, {"instance": "j"}, {"policy": "edf"}, {"runner_up_score": 8.0}, {"runner_up_score": None}]
    others += [{"score": -10.0, "runner_up_score": -10.5}]
    receipt = {"candidates": [{"instance": "i", "why": None}], "filtered": {"down": 2}}
    placed = [{"call": call, **names, **other, **receipt} for call, other in enumerate(others)]
    journal.commit(Batch(NOW, 0.0, decisions=placed))

    def calls(**wanted: object) -> list[int]:
        return [row["call"] for row in readers.decisions(store, 9, **wanted)]  # type: ignore[arg-type]

    assert (calls(stage="t"), calls(instance="j"), calls(policy="edf")) == ([0], [1], [2])
    assert calls(close_only=True) == [5, 2, 1, 0]
    assert calls(stage="s", close_only=True) == [5, 2, 1]
    assert not readers.RECEIPT & readers.decisions(store, 1)[0].keys()
    row = readers.decision(store, 1)
    assert row is not None
    assert {key: row[key] for key in receipt} == receipt
