"""A store per test that the pages open by HEADWAY_DB, as a process of its own would."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pages._ui import source
from storage.open import Store, open_store
from tests.support.snapshots import StandInEngine


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"sqlite:///{tmp_path / 'headway.db'}"
    monkeypatch.setenv("HEADWAY_DB", name)
    yield name
    source.close()


@pytest.fixture
def engine_store(url: str) -> Iterator[Store]:
    """The engine's own connection to the store."""
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def engine(engine_store: Store) -> StandInEngine:
    return StandInEngine(engine_store)
