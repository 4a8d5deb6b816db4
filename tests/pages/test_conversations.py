"""The conversations page: empty, live, filtered, one in full, and what its forms write."""

import time
from pathlib import Path

import pytest

from storage import commands
from tests.support import details
from tests.support.pages import at, figures, texts
from tests.support.snapshots import StandInEngine


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("conversations")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_a_broken_store_shows_a_sentence_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / 'broken.db'}")
    app = at("conversations")
    assert not app.exception
    assert "The store cannot be read" in texts(app)


def test_an_engine_that_has_reported_none_yet_is_waited_for(engine: StandInEngine) -> None:
    engine.detail = None
    engine.tick()
    app = at("conversations")
    assert not app.exception
    assert "has not reported its conversations yet" in texts(app)


def test_open_conversations_are_listed_with_links_to_each(engine: StandInEngine) -> None:
    engine.tick()
    app = at("conversations")
    assert not app.exception
    shown = texts(app)
    assert 'href="conversations?conversation=312"' in shown
    assert "▲ held" in shown
    assert "✕ 1" in shown


def test_a_fleet_without_conversations_says_where_they_come_from(engine: StandInEngine) -> None:
    assert engine.detail is not None
    engine.detail["conversations"] = details.conversations([], held=0, pinned=0)
    engine.tick()
    assert "No conversation is open under hexgen" in texts(at("conversations"))


def test_filters_are_in_the_link(engine: StandInEngine) -> None:
    engine.tick()
    app = at("conversations", state="held")
    assert app.selectbox(key="state").value == "held"
    assert "#311" in texts(app)
    assert "#312" not in texts(app)
    app.selectbox(key="state").select("all").run()
    app.selectbox(key="decoder").select("a100-0").run()
    assert "#313" in texts(app)
    assert "#311" not in texts(app)


def test_a_conversation_opens_with_its_turns_and_a_link_to_its_workflow(engine: StandInEngine) -> None:
    engine.tick()
    app = at("conversations", conversation="312")
    assert not app.exception
    assert "broke 1 time, last because others needed the blocks" in texts(app)
    assert 'href="workflows?workflow=312"' in texts(app)
    assert figures(app) == 2  # bar and turns


def test_one_that_has_ended_shows_its_recorded_turns(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(900),))
    app = at("conversations", conversation="900")
    assert not app.exception
    assert figures(app) == 2
    assert not [button for button in app.button if button.key == "give-up"]


@pytest.mark.parametrize(
    ("asked", "said"), [("abc", "is not the number of a conversation"), ("77", "#77 is not among")]
)
def test_what_is_no_conversation_is_said(engine: StandInEngine, asked: str, said: str) -> None:
    engine.tick()
    app = at("conversations", conversation=asked)
    assert not app.exception
    assert said in texts(app)


def test_giving_up_is_confirmed_once(engine: StandInEngine) -> None:
    engine.tick()
    app = at("conversations", conversation="312")
    app.button(key="give-up").click().run()
    assert commands.pending(engine.store) == []
    app.button(key="confirm-cancel").click().run()
    (row,) = commands.pending(engine.store)
    assert (row["kind"], row["payload"]) == ("cancel", {"workflow": 312})


def test_retention_waits_for_apply_and_names_what_it_replaces(engine: StandInEngine) -> None:
    engine.tick()
    app = at("conversations")
    assert app.button(key="apply-retention").disabled
    app.selectbox(key="limit-observed-None").select("60 s").run()
    assert commands.pending(engine.store) == []
    app.button(key="apply-retention").click().run()
    (row,) = commands.pending(engine.store)
    assert row["payload"] == {"retention": {"need": "observed", "idle_ttl_s": 60.0}}
    assert row["expected"] == {"retention": {"need": "observed", "idle_ttl_s": None}}
    assert "… pending (retention: observed need, idle ones kept 60 s)" in texts(app)


def test_an_engine_that_fell_silent_leaves_its_rows_with_their_age(engine: StandInEngine) -> None:
    engine.tick(time.time() - 42)
    app = at("conversations")
    assert "As the engine left it 4" in texts(app)
    assert "#312" in texts(app)


def test_names_with_markup_in_them_are_shown_as_text(engine: StandInEngine) -> None:
    assert engine.detail is not None
    engine.detail["conversations"] = details.conversations([details.conversation(1, tenant="<script>x</script>")])
    engine.tick()
    assert "<script>" not in texts(at("conversations"))
