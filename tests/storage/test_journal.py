"""A tick is recorded whole or not at all, quickly, and survives being killed."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from control.errors import SettingError, StoreError
from storage import commands, lease, readers
from storage.journal import Batch, Journal
from storage.open import Store

ROOT = Path(__file__).resolve().parents[2]
NOW = 1_800_000_000.0


def decision(call: int) -> dict[str, Any]:
    terms = {"score": 0.7, "t_comp_s": 1.25, "t_queue_s": 0.5, "budget_s": 4.0, "alpha": 0.5}
    return {
        "call": call,
        "workflow": call // 4,
        "stage": "draft",
        "instance": "h100-0",
        "policy": "hexgen",
        **terms,
    }


def finished(number: int) -> dict[str, Any]:
    names = {"id": number, "kind": "text-to-sql", "tenant": "a", "state": "completed"}
    return {
        **names,
        "arrival_sim_s": 1.0,
        "finished_sim_s": 9.0,
        "latency_s": 8.0,
        "slo_s": 5.0,
        "debt_s": 3.0,
    }


def full_batch(tick: int, instances: int = 64, placements: int = 50) -> Batch:
    scopes = ["fleet", *(f"gpu-{i}" for i in range(instances))]
    return Batch(
        at=NOW + tick,
        sim_s=10.0 * tick,
        snapshot={"tick": tick, "alpha": 0.5},
        samples=[{"scope": s, "queued": 3.0, "power_w": 310.5, "alpha": 0.5} for s in scopes],
        decisions=[decision(tick * placements + i) for i in range(placements)],
        workflows=[finished(tick)],
        events=[{"kind": "alpha", "text": "alpha 0.2 to 0.5", "old": 0.2, "new": 0.5}],
        checkpoint=b"world %d" % tick,
        meta={"fleet": "demo"},
    )


def test_everything_of_a_tick_can_be_read_back(store: Store, journal: Journal) -> None:
    journal.commit(full_batch(1, instances=2, placements=3))
    snapshot = readers.latest_snapshot(store)
    assert snapshot == {
        "seq": 1,
        "at": NOW + 1,
        "sim_s": 10.0,
        "payload": {"tick": 1, "alpha": 0.5, "seq": 1},
    }
    assert readers.samples(store, None, 0, 1)["scope"].tolist() == ["fleet", "gpu-0", "gpu-1"]
    assert [row["call"] for row in readers.decisions(store, 10)] == [5, 4, 3]
    assert readers.workflows(store, 10)[0]["debt_s"] == 3.0
    event = readers.events(store, 0, 10)[0]
    assert (event["old"], event["new"], event["at"], event["sim_s"]) == (0.2, 0.5, NOW + 1, 10.0)
    assert journal.load_checkpoint() == (NOW + 1, 10.0, b"world 1")
    assert readers.meta(store) == {"fleet": "demo"}
    held = lease.holder(store, now=NOW + 1)
    assert held is not None
    assert held["heartbeat_at"] == NOW + 1


def test_numpy_values_are_taken_and_nan_is_null(store: Store, journal: Journal) -> None:
    sample = {"scope": "fleet", "queued": np.int64(7), "p95_s": np.nan, "power_w": np.float32(2.5)}
    event = {"kind": "kill", "text": "x", "new": np.float64(0.25)}
    journal.commit(Batch(NOW, 0.0, samples=[sample], events=[event], snapshot={"kv": np.arange(3)}))
    columns = readers.samples(store, "fleet", 0, 1)
    assert columns["queued"].tolist() == [7.0]
    assert np.isnan(columns["p95_s"]).all()
    assert readers.events(store, 0, 1)[0]["new"] == 0.25
    snapshot = readers.latest_snapshot(store)
    assert snapshot is not None
    assert snapshot["payload"]["kv"] == [0, 1, 2]


def test_the_checkpoint_is_replaced_in_place(store: Store, journal: Journal) -> None:
    for tick in range(5):
        journal.commit(Batch(NOW + tick, float(tick), checkpoint=bytes([tick]) * 1000))
    assert journal.load_checkpoint() == (NOW + 4, 4.0, b"\4" * 1000)
    with store.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM checkpoint").scalar() == 1


def test_a_tick_recorded_again_counts_its_samples_once(store: Store, journal: Journal) -> None:
    for queued in (3.0, 4.0):
        journal.commit(Batch(NOW, 0.0, samples=[{"scope": "fleet", "queued": queued}]))
    assert readers.samples(store, None, 0, 1)["queued"].tolist() == [4.0]


def test_a_batch_with_one_bad_row_leaves_nothing(store: Store, journal: Journal) -> None:
    batch = full_batch(1)
    batch.events.append({"kind": "alpha", "text": "points at no command", "command_id": 99})
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        journal.commit(batch)
    assert readers.latest_snapshot(store) is None
    assert readers.decisions(store, 1) == []
    assert journal.load_checkpoint() is None


def test_a_misspelled_column_is_named_with_the_columns_there_are(journal: Journal) -> None:
    with pytest.raises(SettingError, match=r"sample: no column 'power'; columns: .*power_w"):
        journal.commit(Batch(NOW, 0.0, samples=[{"scope": "fleet", "power": 3}]))


def test_a_command_is_decided_once(store: Store, journal: Journal) -> None:
    first = commands.submit(store, "alpha", {"alpha": 0.3}, "dashboard", expected=0.5)
    second = commands.submit(store, "pause", {}, "cli")
    journal.commit(Batch(NOW, 5.0, outcomes=[{"id": first, "state": "applied"}]))
    refusal = {"state": "refused", "reason": "the fleet is paused already"}
    journal.commit(Batch(NOW + 1, 6.0, outcomes=[{"id": first, **refusal}, {"id": second, **refusal}]))
    applied, refused = commands.get(store, first), commands.get(store, second)
    assert applied is not None
    assert refused is not None
    assert [applied[k] for k in ("state", "reason", "decided_at", "sim_s")] == ["applied", None, NOW, 5.0]
    assert [refused[k] for k in ("state", "reason")] == list(refusal.values())
    assert commands.pending(store) == []
    with pytest.raises(SettingError, match="state must be applied or refused"):
        journal.commit(Batch(NOW, 0.0, outcomes=[{"id": first, "state": "done"}]))


@pytest.mark.bench
def test_how_long_a_commit_of_65_samples_and_50_decisions_takes(journal: Journal) -> None:
    times_ms = []
    for tick in range(200):
        batch = full_batch(tick)
        started = time.perf_counter()
        journal.commit(batch)
        times_ms.append((time.perf_counter() - started) * 1e3)
    print(f"\ncommit: median {np.median(times_ms):.2f} ms, p99 {np.percentile(times_ms, 99):.2f} ms")


#: A process that imports once and begins a writer, as a process of its own, for each owner it reads.
WRITERS = """
import os, sys, time
from storage import lease
from storage.journal import Batch, Journal
from storage.open import open_store

def write(owner):
    store = open_store(sys.argv[1])
    lease.acquire(store, owner, ttl_s=0.0)
    journal = Journal(store)
    last = journal.load_checkpoint()
    tick = int(last[2]) if last else 0
    while True:
        tick += 1
        samples = [{"scope": f"gpu-{i}", "queued": tick} for i in range(20)]
        event = {"kind": "tick", "text": str(tick)}
        batch = Batch(time.time(), tick, {"tick": tick}, samples, events=[event], checkpoint=b"%d" % tick)
        journal.commit(batch)
        print(tick, flush=True)

for owner in sys.stdin:
    pid = os.fork()
    if pid == 0:
        write(owner.strip())
    print("writer", pid, flush=True)
    os.waitpid(pid, 0)
    print("gone", flush=True)
"""


@pytest.fixture
def writers(url: str, store: Store) -> Iterator[subprocess.Popen[str]]:
    """Begins writers of the store, one after another."""
    command = [sys.executable, "-c", WRITERS, url]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def told(writers: subprocess.Popen[str]) -> str:
    """The next line that the writers or their parent say."""
    assert writers.stdout is not None
    line = writers.stdout.readline().strip()
    assert line, "the writers have ended"
    return line


def acknowledged_before_kill(writers: subprocess.Popen[str], owner: str, after_s: float) -> int:
    """Kill -9 a writing process `after_s` after its first commit; the last tick it was told is stored."""
    assert writers.stdin is not None
    writers.stdin.write(f"{owner}\n")
    writers.stdin.flush()
    lines = [told(writers), told(writers)]
    while not any(line.startswith("writer") for line in lines):
        lines.append(told(writers))
    (pid,) = (int(line.split()[1]) for line in lines if line.startswith("writer"))
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)
    while not lines[-1].endswith("gone"):  # its last word may stand right behind what the killed one said
        lines.append(told(writers))
    return max(int(line) for line in lines if line.isdigit())


def test_killed_twenty_times_it_never_loses_an_acknowledged_tick(
    url: str, store: Store, writers: subprocess.Popen[str]
) -> None:
    chance = random.Random(7)
    for kill in range(20):
        acknowledged = acknowledged_before_kill(writers, f"engine-{kill}", chance.uniform(0.0, 0.12))
        file = sqlite3.connect(url.removeprefix("sqlite:///"))
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        file.close()
        checkpoint = Journal(store).load_checkpoint()
        snapshot = readers.latest_snapshot(store)
        assert checkpoint is not None
        assert snapshot is not None
        ticks = {int(checkpoint[2]), snapshot["payload"]["tick"], snapshot["seq"]}
        ticks.add(int(readers.events(store, 0, 1)[0]["text"]))
        assert len(ticks) == 1, "a transaction was torn"
        assert ticks.pop() in (acknowledged, acknowledged + 1)
