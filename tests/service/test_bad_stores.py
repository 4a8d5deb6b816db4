"""A store that cannot be used ends the engine with one clear line, whenever that happens."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import readers
from storage.open import Store, open_store
from tests.service.conftest import wait_for_snapshot
from tests.support.running import Running, Start, until


def one_line(start: Start, code: int, says: str, *arguments: object) -> None:
    """The engine ends with that code and one line."""
    engine = start("engine", *arguments)
    assert engine.wait(30.0) == code
    (line,) = engine.complaints
    assert says in line
    assert engine.stdout == ""


def test_settings_that_cannot_be_make_no_store(start: Start, db: Path) -> None:
    one_line(start, 2, "scenario = 'nope': expected one of demo-mixed", "--db", db, "--demo", "nope")
    assert not db.exists()


def test_stores_that_cannot_be(start: Start, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(os.urandom(9000))
    one_line(start, 4, "garbage.db: file is not a database", "--db", garbage)
    one_line(start, 4, "its folder must exist and be writable", "--db", tmp_path / "no" / "such" / "folder.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_may_not_be_written(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    one_line(start, 4, "its folder must exist and be writable", "--db", folder / "x.db")


@pytest.fixture
def running(start: Start, db: Path) -> Running:
    """An engine that writes `db`."""
    opened = open_store(str(db))
    engine = start("engine", "--db", db, "--speed", 20)
    wait_for_snapshot(opened)
    opened.close()
    return engine


@pytest.mark.parametrize("put_back", [False, True], ids=["deleted", "replaced"])
def test_file_that_goes_away_underneath(running: Running, db: Path, put_back: bool) -> None:
    for name in (db, *db.parent.glob("headway.db-*")):
        name.unlink()
    if put_back:
        db.touch()
    assert running.wait(15.0) == 4
    (line,) = running.complaints
    assert ("was replaced" if put_back else "is gone") in line


def test_file_that_is_overwritten_underneath(running: Running, db: Path) -> None:
    """Pages of the file are destroyed: the engine may notice late, but it never ends with a traceback."""
    for name in (db, db.with_name("headway.db-wal")):
        name.write_bytes(b"\xff" * 200_000)
    assert running.wait(30.0) == 4
    (line,) = running.complaints
    assert str(db) in line


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_an_engine_waits_while_the_disk_is_full_and_goes_on_when_there_is_room(start: Start, small_disk: Path) -> None:
    opened: Store = open_store(str(small_disk / "x.db"))
    engine = start("engine", "--db", small_disk / "x.db", "--speed", 60)
    wait_for_snapshot(opened)
    with contextlib.suppress(OSError):
        (small_disk / "filler").write_bytes(bytes(2**22))
    until(lambda: "disk is full; the record waits" in engine.stderr, "the warning", 60.0)
    assert engine.is_alive()
    before = readers.latest_snapshot(opened)["seq"]
    (small_disk / "filler").unlink()
    until(lambda: readers.latest_snapshot(opened)["seq"] > before, "a record after there is room", 30.0)
    opened.close()
