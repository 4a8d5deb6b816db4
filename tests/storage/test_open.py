"""A store opens for everyone at once, or says in one line why it does not."""

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from control.errors import StoreError
from storage import readers
from storage.migrate import known_version
from storage.open import Store, default_url, open_store, redact_url
from storage.tables import METADATA

ROOT = Path(__file__).resolve().parents[2]


def test_a_new_store_is_set_up_for_one_writer_and_many_readers(store: Store) -> None:
    with store.reading() as connection:
        pragmas = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
    assert values == ["wal", 1, 5000, 1]


def test_the_migrations_build_exactly_the_tables_the_code_uses(store: Store) -> None:
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_a_store_of_the_version_before_is_upgraded_with_its_samples(url: str, store: Store) -> None:
    fresh = ("kv_pinned_fraction", "power_limit_w")
    with store.writing() as connection:
        for name in fresh:
            connection.exec_driver_sql(f"ALTER TABLE sample DROP COLUMN {name}")
        for name in ("candidates", "filtered"):
            connection.exec_driver_sql(f"ALTER TABLE decision DROP COLUMN {name}")
        connection.exec_driver_sql("DROP TABLE fork")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0002'")
        columns = "resolution_s, at, sim_s, scope, queued, kv_used_fraction, power_w"
        connection.exec_driver_sql(f"INSERT INTO sample ({columns}) VALUES (1, 100.0, 5.0, 'h100-0', 3, 0.5, 410.0)")
    again = open_store(url)
    found = readers.samples(again, "h100-0", 0.0, 1)
    assert (found["queued"][0], found["kv_used_fraction"][0], found["power_w"][0]) == (3.0, 0.5, 410.0)
    assert all(found[name][0] != found[name][0] for name in fresh)  # not a number: not measured then
    with again.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
    again.close()


def test_a_store_from_before_receipts_is_upgraded_with_its_placements(url: str, store: Store) -> None:
    with store.writing() as connection:
        for name in ("candidates", "filtered"):
            connection.exec_driver_sql(f"ALTER TABLE decision DROP COLUMN {name}")
        connection.exec_driver_sql("DROP TABLE fork")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0003'")
        columns, values = (
            "at, sim_s, call, workflow, stage, instance, policy, score",
            "9.0, 5.0, 7, 3, 's', 'a', 'p', 1.5",
        )
        connection.exec_driver_sql(f"INSERT INTO decision ({columns}) VALUES ({values})")
    again = open_store(url)
    row = readers.decision(again, 1)
    assert row is not None
    assert (row["call"], row["score"], row["candidates"], row["filtered"]) == (7, 1.5, None, None)
    with again.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
    again.close()


def test_opening_twice_keeps_the_data(url: str, store: Store) -> None:
    with store.writing() as connection:
        connection.exec_driver_sql("INSERT INTO meta VALUES ('fleet', 'demo')")
    again = open_store(url)
    assert readers.meta(again) == {"fleet": "demo"}
    again.close()


def test_processes_that_start_at_once_all_open_a_new_store(url: str) -> None:
    code = "import sys; from storage.open import open_store; open_store(sys.argv[1]).close(); print('opened')"
    started = [
        subprocess.Popen([sys.executable, "-c", code, url], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert [process.communicate(timeout=60)[0] for process in started] == ["opened\n"] * 6


def test_a_store_of_a_newer_version_is_refused_with_both_versions(url: str, store: Store) -> None:
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9041'")
    with pytest.raises(StoreError, match=rf"version 9041.*up to {known_version()}.*upgrade Headway"):
        open_store(url)


def test_a_failed_upgrade_leaves_no_half_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE run (theirs TEXT)")
    with pytest.raises(StoreError, match="table run already exists"):
        open_store(f"sqlite:///{path}")
    assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("run",)]
    other.close()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"this is a letter, not a database. " * 100, "not a database"),
        (b"SQLite format 3\0" + b"\7" * 4000, "database"),
    ],
)
def test_a_file_that_is_no_store_is_one_line(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "letter.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=reason) as caught:
        open_store(f"sqlite:///{path}")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sqlite://", "must be a file"),
        ("oddbase://x:secret@y/z", "unknown kind of database"),
        ("sqlite:////nowhere/at/all/x.db", "folder must exist and be writable"),
        ("postgresql://me:sec@ret@host/db", "write an @ inside the user or password as %40"),
    ],
)
def test_a_url_that_cannot_work_says_what_would(url: str, reason: str) -> None:
    with pytest.raises(StoreError, match=reason) as caught:
        open_store(url)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_place_nobody_may_write_to_is_one_line(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom control.errors import StoreError\nfrom storage.open import open_store\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "try: open_store(sys.argv[1])\nexcept StoreError as error: print(error)"
    )
    tmp_path.chmod(0o555)
    try:
        url = f"sqlite:///{tmp_path / 'x.db'}"
        command = [sys.executable, "-c", code, url]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    finally:
        tmp_path.chmod(0o755)
    if "Permission denied" in shown.stderr:
        pytest.skip("an unprivileged user cannot read this checkout or its Python")
    assert "its folder must exist and be writable" in shown.stdout, shown.stderr
    assert shown.stdout.count("\n") == 1


def test_a_store_opened_read_only_refuses_writes_in_one_line(url: str, store: Store) -> None:
    path = url.removeprefix("sqlite:///")
    watching = open_store(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert readers.latest_snapshot(watching) is None
    with pytest.raises(StoreError, match="readonly"), watching.writing() as connection:
        connection.exec_driver_sql("INSERT INTO meta VALUES ('a', 'b')")
    watching.close()


def test_the_default_store_is_in_the_users_folder_unless_headway_db_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADWAY_DB", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    url = default_url()
    assert url.startswith(f"sqlite:///{tmp_path}{os.sep}")
    assert url.endswith("headway.db")
    open_store().close()
    monkeypatch.setenv("HEADWAY_DB", "postgresql://elsewhere/headway")
    assert default_url() == "postgresql://elsewhere/headway"


def test_a_data_folder_that_cannot_be_made_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.delenv("HEADWAY_DB", raising=False)
    monkeypatch.setattr("platformdirs.user_data_dir", lambda *_, **__: str(tmp_path / "file" / "headway"))
    with pytest.raises(StoreError, match="name a place to write with --db or HEADWAY_DB"):
        open_store()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:se@cr:et@host/db", "postgresql://me:***@host/db"),
        ("postgresql://host/db?user=me&password=secret&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("sqlite:////home/me/headway.db", "sqlite:////home/me/headway.db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
    ],
)
def test_no_password_is_ever_shown(url: str, shown: str) -> None:
    assert redact_url(url) == shown


def test_threads_of_one_process_may_open_a_new_store_at_once(url: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(open_store, [url] * 6))
    assert [readers.latest_snapshot(each) for each in opened] == [None] * 6
    for each in opened:
        each.close()


def test_closing_twice_is_harmless_and_leaves_no_log_behind(url: str) -> None:
    opened = open_store(url)
    opened.data_version()
    opened.close()
    opened.close()
    assert not Path(url.removeprefix("sqlite:///") + "-wal").exists()
