"""A new store per test on a real SQLite file, held by this process's lease where the test writes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import lease
from storage.journal import Journal
from storage.open import Store, open_store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'headway.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    with opened.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
    opened.close()


@pytest.fixture
def journal(store: Store) -> Journal:
    lease.acquire(store, "this-engine")
    return Journal(store)
