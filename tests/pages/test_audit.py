"""The audit page: what was asked and done, by whom, with values and outcome, and what can still be taken back."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages._ui import edits
from storage import commands
from tests.support.pages import at, texts
from tests.support.snapshots import StandInEngine


def undo_keys(app: AppTest) -> list[str | None]:
    return [button.key for button in app.button if button.label == "Undo"]


def drain(engine: StandInEngine, verb: str = "drain", **more: int) -> int:
    """An instance drained (or the like) by the command line, and the engine's word for it."""
    number = commands.submit(engine.store, verb, {"instance": "l4-0"}, "cli", **more)
    states = {"drain": ("up", "draining"), "undrain": ("draining", "up")}[verb]
    event = {"kind": verb, "target": "l4-0", "text": f"{verb} l4-0", "command_id": number}
    engine.tick(events=(event | {"old": states[0], "new": states[1]},))
    return number


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("audit")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_a_broken_store_shows_a_sentence_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / 'broken.db'}")
    app = at("audit")
    assert not app.exception
    assert "The store cannot be read" in texts(app)


def test_a_store_in_which_nothing_happened_is_a_sentence(engine: StandInEngine) -> None:
    engine.tick()
    assert "Nothing has happened on this store yet." in texts(at("audit"))


def test_commands_and_events_show_values_author_and_outcome(engine: StandInEngine) -> None:
    engine.tick(events=({"kind": "engine_started", "text": "engine started: demo-mixed"},))
    drain(engine)
    commands.submit(engine.store, "alpha", {"alpha": 0.5}, "dashboard 10.0.0.7", expected=0.9)
    engine.tick()
    app = at("audit")
    assert not app.exception
    shown = texts(app)
    places = [shown.index(text) for text in ("#2 α", "#1 drain l4-0", "engine started: demo-mixed")]
    assert places == sorted(places)
    assert "up → draining" in shown
    assert "0.90 → 0.50" in shown
    assert "dashboard 10.0.0.7" in shown
    assert "✕ refused: it is 0.2 by now" in shown
    assert "3 entries" in shown


def test_an_undone_drain_is_not_offered_again(engine: StandInEngine) -> None:
    first = drain(engine)
    app = at("audit")
    app.button(key=f"undo-c{first}").click().run()
    (row,) = commands.pending(engine.store)
    assert (row["kind"], row["undo_of"]) == ("undrain", first)
    assert undo_keys(app) == []
    engine.tick()
    app.run()
    assert undo_keys(app) == []
    assert "✓ applied, undone" in texts(app)


def test_a_drain_that_was_ended_by_hand_is_not_offered_either(engine: StandInEngine) -> None:
    drain(engine)
    second = drain(engine, "undrain")
    assert undo_keys(at("audit")) == [f"undo-c{second}"]


def test_filters_are_in_the_link(engine: StandInEngine) -> None:
    drain(engine)
    commands.submit(engine.store, "pause", {}, "dashboard")
    engine.tick(events=({"kind": "server_lost", "text": "a40-0 is out"},))
    commands.submit(engine.store, "resume", {}, "cli")
    app = at("audit", author="cli")
    shown = texts(app)
    assert "drain l4-0" in shown
    assert "pause" not in shown
    assert "a40-0 is out" not in shown
    app.selectbox(key="outcome").select("pending").run()
    assert "#3 resume" in texts(app)
    assert "drain l4-0" not in texts(app)
    shown = texts(at("audit", author="engine"))
    assert "a40-0 is out" in shown
    assert "drain l4-0" not in shown
    assert "No entry fits these filters." in texts(at("audit", author="engine", outcome="applied"))
    assert "1 entries" not in texts(at("audit", change="drain", outcome="refused"))


def test_a_filtered_line_is_judged_by_all_that_happened(engine: StandInEngine) -> None:
    drain(engine)
    drain(engine, "undrain")
    assert undo_keys(at("audit", change="drain")) == []


def test_a_long_list_says_its_limit_and_shows_more_when_asked(engine: StandInEngine) -> None:
    for _ in range(70):
        commands.submit(engine.store, "tune", {}, "cli")
    engine.tick()
    app = at("audit")
    assert "The newest 50 of 70 entries" in texts(app)
    app.button(key="more").click().run()
    assert "70 entries" in texts(app)
    assert "#1 run tuning" in texts(app)


def test_an_engine_that_fell_silent_leaves_its_entries(engine: StandInEngine) -> None:
    engine.tick(time.time() - 42, events=({"kind": "engine_started", "text": "engine started"},))
    assert "engine started" in texts(at("audit"))


def test_texts_with_markup_in_them_are_shown_as_text(engine: StandInEngine) -> None:
    commands.submit(engine.store, "pause", {}, "<script>x</script>")
    engine.tick(events=({"kind": "odd", "text": "<b>odd</b>"},))
    shown = texts(at("audit"))
    assert "<script>" not in shown
    assert "&lt;b&gt;odd" in shown


@pytest.mark.parametrize(("page", "said"), [("power", "Power caps only."), ("conversations", "KV retention, policy")])
def test_a_filtered_list_of_changes_says_so_and_leads_to_all(engine: StandInEngine, page: str, said: str) -> None:
    engine.tick()
    shown = texts(at(page))
    assert said in shown
    assert '<a href="audit">All changes</a>' in shown


@pytest.mark.parametrize(("address", "author"), [("10.0.0.7", "dashboard 10.0.0.7"), (None, "dashboard")])
def test_a_command_says_from_where_it_came(monkeypatch: pytest.MonkeyPatch, address: str | None, author: str) -> None:
    monkeypatch.setattr(st, "context", SimpleNamespace(ip_address=address))
    assert edits.author() == author
