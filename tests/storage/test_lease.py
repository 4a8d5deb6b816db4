"""At most one engine drives a store, and the loser learns who does."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from control.errors import LeaseHeldError
from storage import lease
from storage.journal import Batch, Journal
from storage.open import Store, open_store

ROOT = Path(__file__).resolve().parents[2]
NOW = 1_800_000_000.0


def test_nobody_holds_a_new_store(store: Store) -> None:
    assert lease.holder(store) is None


def test_the_holder_is_told_by_pid_host_and_age(store: Store) -> None:
    lease.acquire(store, "first", now=NOW)
    held = lease.holder(store, now=NOW + 1.5)
    assert held is not None
    assert (held["owner"], held["pid"], held["host"]) == ("first", os.getpid(), socket.gethostname())
    assert held["age_s"] == pytest.approx(1.5)
    message = f"pid {os.getpid()} on {socket.gethostname()}, last heard 4.9 s ago"
    with pytest.raises(LeaseHeldError, match=message):
        lease.acquire(store, "second", now=NOW + 4.9)


def test_a_silent_holder_is_replaced_after_its_time_to_live(store: Store) -> None:
    lease.acquire(store, "first", now=NOW)
    lease.acquire(store, "second", now=NOW + 5.1)
    held = lease.holder(store, now=NOW + 5.1)
    assert held is not None
    assert held["owner"] == "second"
    with pytest.raises(LeaseHeldError):
        lease.heartbeat(store, "first", now=NOW + 5.2)


def test_a_heartbeat_keeps_the_lease(store: Store) -> None:
    lease.acquire(store, "first", now=NOW)
    lease.heartbeat(store, "first", now=NOW + 4)
    with pytest.raises(LeaseHeldError):
        lease.acquire(store, "second", now=NOW + 8)


def test_a_released_lease_is_free_at_once(store: Store) -> None:
    lease.acquire(store, "first", now=NOW)
    lease.release(store, "someone else")
    assert lease.holder(store) is not None
    lease.release(store, "first")
    assert lease.holder(store) is None
    lease.acquire(store, "second", now=NOW + 0.1)


def test_a_heartbeat_from_a_clock_set_back_does_not_block_for_hours(store: Store) -> None:
    lease.acquire(store, "first", now=NOW + 3600)
    lease.acquire(store, "second", now=NOW)


def test_an_engine_that_lost_its_lease_writes_nothing(url: str, store: Store) -> None:
    lease.acquire(store, "first", now=NOW)
    successor = open_store(url)
    lease.acquire(successor, "second", now=NOW + 10)
    with pytest.raises(LeaseHeldError, match="another engine drives this store"):
        Journal(store).commit(Batch(at=NOW + 10.1, sim_s=0.0, checkpoint=b"stale"))
    assert Journal(successor).load_checkpoint() is None
    successor.close()


def test_an_engine_without_a_lease_writes_nothing(store: Store) -> None:
    with pytest.raises(LeaseHeldError, match="holds no lease"):
        Journal(store).commit(Batch(at=NOW, sim_s=0.0, checkpoint=b"x"))
    assert Journal(store).load_checkpoint() is None


def test_of_engines_that_start_at_once_one_wins(url: str, store: Store) -> None:
    code = """
import sys
from control.errors import LeaseHeldError
from storage import lease
from storage.open import open_store
store = open_store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    lease.acquire(store, sys.argv[2])
    print("won")
except LeaseHeldError:
    print("lost")
"""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code, url, f"racer-{i}"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    assert sorted(racer.communicate(timeout=60)[0] for racer in racers) == ["lost\n"] * 3 + ["won\n"]
