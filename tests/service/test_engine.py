"""`headway engine` as a user meets it: it starts, records each second, ends, is killed, and goes on."""

import os
import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from storage import commands, lease, readers
from storage.open import Store
from tests.service.conftest import event_kinds, newest, wait_for_snapshot
from tests.support.running import Start, until


def test_a_life_from_hello_to_goodbye(start: Start, db: Path, store: Store) -> None:
    engine = start("engine", "--db", db, "--speed", 20)
    first = wait_for_snapshot(store)
    last = wait_for_snapshot(store, first["seq"] + 2)
    elapsed_s = last["at"] - first["at"]
    assert elapsed_s == pytest.approx(last["seq"] - first["seq"], abs=0.6)
    assert last["sim_s"] - first["sim_s"] == pytest.approx(20.0 * elapsed_s, rel=0.15)
    assert last["payload"]["engine"]["pid"] == engine.pid
    assert last["payload"]["tick_ms"] < 500.0
    assert readers.decisions(store, 10)
    until(lambda: readers.workflows(store, 10), "a workflow that ended")
    holder = lease.holder(store) or {}
    assert (holder["pid"], holder["host"]) == (engine.pid, socket.gethostname())
    engine.signal(signal.SIGTERM)
    assert engine.wait(10.0) == 0
    assert engine.complaints == []
    assert engine.stdout == ""
    assert lease.holder(store) is None
    assert event_kinds(store) == ["engine_started", "engine_stopped"]


def test_ctrl_c_ends_it_as_well(start: Start, db: Path, store: Store) -> None:
    engine = start("engine", "--db", db)
    wait_for_snapshot(store)
    engine.signal(signal.SIGINT)
    assert engine.wait(10.0) == 0
    assert engine.complaints == []


def test_a_second_engine_is_turned_away_in_one_line(start: Start, db: Path, store: Store) -> None:
    engine = start("engine", "--db", db)
    wait_for_snapshot(store)
    second = start("engine", "--db", db)
    assert second.wait(15.0) == 3
    (line,) = second.complaints
    assert f"another engine drives this store: pid {engine.pid}" in line
    seen = newest(store)["seq"]
    wait_for_snapshot(store, seen + 1)
    assert newest(store)["payload"]["engine"]["pid"] == engine.pid


def test_a_killed_engine_is_succeeded_at_once_and_nothing_is_lost(start: Start, db: Path, store: Store) -> None:
    engine = start("engine", "--db", db, "--speed", 20)
    before = wait_for_snapshot(store, 2)
    engine.signal(signal.SIGKILL)
    engine.wait()
    before = newest(store)
    waiting = before["payload"]["fleet"]["active_workflows"]
    assert waiting > 0
    began = time.time()
    start("engine", "--db", db)
    until(lambda: newest(store)["seq"] > before["seq"], "the first snapshot of the successor", 10.0)
    after = newest(store)
    assert after["at"] - began < 6.0
    assert after["payload"]["speed"] == 20.0
    assert before["sim_s"] <= after["sim_s"] < before["sim_s"] + 20.0 * (after["at"] - before["at"])
    assert event_kinds(store) == ["engine_started", "engine_recovered"]
    wait_for_snapshot(store, after["seq"] + 2)
    at = readers.samples(store, "fleet", 0.0, 1)["at"]
    down_s = after["at"] - before["at"]
    assert np.diff(at).max() <= down_s + 2.0
    until(lambda: newest(store)["sim_s"] > before["sim_s"] + 60.0, "a minute more", 30.0)
    ended = readers.workflows(store, 10_000)
    assert {row["state"] for row in ended} <= {"completed"}
    assert len({row["id"] for row in ended}) == len(ended)
    through = [row for row in ended if row["arrival_sim_s"] < before["sim_s"] < row["finished_sim_s"]]
    assert len(through) > 0.3 * waiting


def test_fresh_start_tells_what_became_of_work_under_way(start: Start, db: Path, store: Store) -> None:
    engine = start("engine", "--db", db, "--speed", 10)
    wait_for_snapshot(store, 1)
    engine.signal(signal.SIGKILL)
    engine.wait()
    before = newest(store)
    active = before["payload"]["fleet"]["active_workflows"]
    start("engine", "--db", db, "--fresh")
    after = wait_for_snapshot(store, before["seq"])
    assert after["sim_s"] < before["sim_s"]
    lost = readers.workflows(store, 10_000, state="failed")
    assert len(lost) == active > 0
    assert {row["cause"] for row in lost} == {"engine_replaced"}
    assert event_kinds(store)[-2:] == ["engine_started", "engine_fresh"]


@pytest.mark.slow
def test_another_fleet_on_the_same_store_starts_afresh(start: Start, db: Path, store: Store) -> None:
    engine = start("engine", "--db", db, "--speed", 10)
    wait_for_snapshot(store, 1)
    engine.signal(signal.SIGTERM)
    assert engine.wait(10.0) == 0
    seen = newest(store)["seq"]
    start("engine", "--db", db, "--demo", "agents-a40")
    after = wait_for_snapshot(store, seen)
    assert after["payload"]["fleet_name"] == "conserve-a40"
    assert readers.workflows(store, 9, state="failed")


def test_commands_given_while_no_engine_runs_act_on_start(start: Start, db: Path, store: Store) -> None:
    asked = commands.submit(store, "alpha", {"alpha": 0.77}, "test")
    start("engine", "--db", db)
    until(lambda: (commands.get(store, asked) or {})["state"] == "applied", "the command applied")
    until(lambda: newest(store).get("payload", {}).get("alpha") == 0.77, "the new alpha shown")


def test_it_obeys_within_a_moment(start: Start, db: Path, store: Store) -> None:
    start("engine", "--db", db)
    wait_for_snapshot(store, 1)
    began = time.monotonic()
    asked = commands.submit(store, "pause", {}, "test")
    until(lambda: (commands.get(store, asked) or {})["state"] == "applied", "the command applied", 5.0)
    assert time.monotonic() - began < 1.0


def test_a_replayed_trace_ends_finished(start: Start, db: Path, store: Store, tmp_path: Path) -> None:
    trace = tmp_path / "small.jsonl"
    assert start("trace", "generate", "text2sql", "--n", 10, "--rate", 2, "--out", trace).wait() == 0
    start("engine", "--db", db, "--trace", trace, "--speed", 60)
    until(lambda: newest(store).get("payload", {}).get("engine", {}).get("state") == "finished", "the end")
    assert len(readers.workflows(store, 99, state="completed")) == 10


def test_it_ends_with_the_parent_it_was_given(start: Start, db: Path, store: Store) -> None:
    orphan = start("engine", "--db", db, "--parent", os.getpid() + 1)
    assert orphan.wait(30.0) == 0
    child = start("engine", "--db", db, "--parent", os.getpid())
    wait_for_snapshot(store)
    assert child.is_alive()
