"""The KV page on an empty, a busy, a broken and a silent engine."""

import time
from pathlib import Path

import pytest

from tests.support import details
from tests.support.pages import at, figures, texts
from tests.support.snapshots import StandInEngine


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("kv")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_a_broken_store_shows_a_sentence_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / 'broken.db'}")
    app = at("kv")
    assert not app.exception
    assert "The store cannot be read" in texts(app)


def test_an_engine_that_has_reported_none_yet_is_waited_for(engine: StandInEngine) -> None:
    engine.detail = None
    engine.tick()
    app = at("kv")
    assert not app.exception
    assert "has not reported its KV caches yet" in texts(app)


def test_caches_and_holders_are_shown(engine: StandInEngine) -> None:
    engine.tick()
    app = at("kv")
    assert not app.exception
    shown = texts(app)
    assert "conversations of 15.9 k tokens, the mean now" in shown
    assert 'href="conversations?conversation=312"' in shown
    assert figures(app) == 2  # bar and caches over time


def test_without_conversations_nobody_holds_kv(engine: StandInEngine) -> None:
    assert engine.detail is not None
    engine.detail["kv"] = details.kv(holders=[], mean_context_tokens=None)
    engine.tick()
    assert "No conversation holds KV now." in texts(at("kv"))


def test_an_engine_that_fell_silent_leaves_its_caches_with_their_age(engine: StandInEngine) -> None:
    engine.tick(time.time() - 42)
    assert "As the engine left it 4" in texts(at("kv"))
