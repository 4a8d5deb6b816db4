"""Engines as real processes on a store of the test's own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import readers
from storage.open import Store, open_store
from tests.support.running import until


@pytest.fixture
def store(db: Path) -> Iterator[Store]:
    """The dashboard's view of the store; it must be sound to the end."""
    opened = open_store(str(db))
    yield opened
    with opened.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
    opened.close()


def newest(store: Store) -> dict[str, Any]:
    """The newest snapshot, {} in a new store."""
    return readers.latest_snapshot(store) or {}


def wait_for_snapshot(store: Store, above: int = 0) -> dict[str, Any]:
    """The newest snapshot once its number exceeds `above`."""
    until(lambda: newest(store).get("seq", 0) > above, f"snapshot {above + 1}")
    return newest(store)


def event_kinds(store: Store) -> list[str]:
    """Kinds of all events, oldest first."""
    return [row["kind"] for row in readers.events(store, 0.0, 10_000)][::-1]
