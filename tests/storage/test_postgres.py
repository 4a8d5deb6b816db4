"""The same store on a real PostgreSQL server: a temporary cluster, made and removed by this module."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from control.errors import LeaseHeldError, StoreError
from storage import commands, facts, finders, lease, readers, retention, runs
from storage.journal import Batch, Journal
from storage.open import Store, open_store
from storage.tables import METADATA

pytestmark = pytest.mark.postgres
ROOT = Path(__file__).resolve().parents[2]
NOW = 1_800_000_000.0


def server_binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def as_server_user(*command: str | Path) -> None:
    """PostgreSQL refuses to run as root, so root runs it as the user its package made."""
    drop = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    subprocess.run([*drop, *map(str, command)], check=True, capture_output=True, timeout=60, cwd="/")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    binaries = server_binaries()
    pytest.importorskip("psycopg", reason="the driver psycopg is not installed")
    if binaries is None:
        pytest.skip("no PostgreSQL server binaries on this machine")
    folder = Path(tempfile.mkdtemp(prefix="headway-postgres-"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    data = folder / "data"
    try:
        as_server_user(binaries / "initdb", "-D", data, "-U", "headway", "-A", "trust", "-N")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
        as_server_user(binaries / "pg_ctl", "-D", data, "-l", folder / "log", "-w", "-o", options, "start")
        try:
            yield f"postgresql://headway:unused@127.0.0.1:{port}/postgres"
        finally:
            as_server_user(binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def store(server: str) -> Iterator[Store]:
    opened = open_store(server)
    yield opened
    with opened.writing() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    opened.close()


def test_the_schema_is_the_one_the_code_uses_and_no_password_is_shown(store: Store) -> None:
    assert "unused" not in store.url
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_processes_that_start_at_once_all_open_a_new_database(server: str) -> None:
    code = "import sys; from storage.open import open_store; open_store(sys.argv[1]).close(); print('opened')"
    started = [
        subprocess.Popen([sys.executable, "-c", code, server], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.communicate(timeout=60)[0] for process in started] == ["opened\n"] * 4


def test_a_tick_its_commands_and_its_reads(store: Store) -> None:
    seen = commands.changed(store)
    number = commands.submit(store, "alpha", {"alpha": 0.5}, "dashboard", expected=0.2)
    assert commands.changed(store) != seen
    assert [row["expected"] for row in commands.pending(store)] == [0.2]
    lease.acquire(store, "first")
    journal = Journal(store)
    names = {"kind": "chat", "tenant": "a", "state": "completed", "arrival_sim_s": 0.0, "finished_sim_s": 4.0}
    work = {"id": 7, **names, "latency_s": 4.0, "debt_s": 1.0, "input_tokens": 2**40}
    mark = {"kind": "alpha", "text": "0.2 to 0.5", "old": 0.2, "new": 0.5, "command_id": number}
    for tick in range(3):
        rows = [{"scope": "fleet", "queued": 1.0, "p95_s": float("nan")}]
        batch = Batch(NOW + tick, float(tick), {"tick": tick}, rows, workflows=[work], checkpoint=b"\0world")
        journal.commit(batch)
    journal.commit(Batch(NOW + 3, 3.0, events=[mark], outcomes=[{"id": number, "state": "applied"}]))
    assert [payload for _, payload in readers.snapshots_since(store, 2)] == [b'{"tick":2,"seq":3}']
    assert readers.samples(store, "fleet", 0, 1)["queued"].tolist() == [1.0] * 3
    assert readers.events(store, 0, 1)[0]["new"] == 0.5
    assert readers.fleet_summary(store)["input_tokens"] == 3 * 2**40
    assert [row["id"] for row in finders.ended(store, finders.Workflows("a", number="7", late=True), 2)[0]] == [7, 7]
    assert finders.commands(store, finders.Changes("alpha", "dashboard", "applied"), 9)[1] == 1
    assert finders.caused(store, [number])[number]["old"] == 0.2
    assert finders.workflow_values(store) == {"tenant": ["a"], "kind": ["chat"]}
    assert facts.size_bytes(store) > 0
    assert {row.what: row.rows for row in facts.kept(store)}["workflows"] == 3
    assert journal.load_checkpoint() == (NOW + 2, 2.0, b"\0world")
    assert commands.pending(store) == []
    assert runs.recent(store, 5) == []


def test_samples_roll_up_and_leave(store: Store) -> None:
    lease.acquire(store, "first")
    rows = [{"at": NOW + i, "scope": "fleet", "queued": float(i), "p95_s": float(i)} for i in range(120)]
    Journal(store).commit(Batch(NOW, 0.0, samples=rows))
    retention.roll_up(store, NOW + 200)
    tens = readers.samples(store, None, 0, 10)
    assert tens["queued"].tolist() == [4.5 + 10 * i for i in range(12)]
    assert tens["p95_s"].tolist() == [9.0 + 10 * i for i in range(12)]
    assert readers.samples(store, None, 0, 60)["queued"].tolist() == [29.5, 89.5]
    assert retention.roll_up(store, NOW + 200) == 0
    retention.roll_up(store, NOW + 7200)
    assert len(readers.samples(store, None, 0, 1)["at"]) == 0


def test_an_engine_that_lost_its_lease_writes_nothing(server: str, store: Store) -> None:
    lease.acquire(store, "first", now=time.time() - 60)
    successor = open_store(server)
    lease.acquire(successor, "second")
    with pytest.raises(LeaseHeldError, match="another engine"):
        Journal(store).commit(Batch(NOW, 0.0, checkpoint=b"stale"))
    with pytest.raises(LeaseHeldError):
        lease.acquire(store, "third")
    assert Journal(successor).load_checkpoint() is None
    successor.close()


def test_a_server_that_is_not_there_is_one_line() -> None:
    pytest.importorskip("psycopg", reason="the driver psycopg is not installed")
    with pytest.raises(StoreError) as caught:
        open_store("postgresql://me:secret@127.0.0.1:1/headway")
    assert "me:***@127.0.0.1:1" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
