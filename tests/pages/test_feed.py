"""What a browser gets from one poll to the next: everything once, nothing twice."""

import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from pages._ui import feed as feed_module
from pages._ui.feed import Feed
from pages._ui.source import store
from tests.support.snapshots import StandInEngine, instance


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "LOOK_EVERY_S", 0.0)


def poll(feed: Feed, since: int = 0, window_s: float = 300.0) -> dict[str, Any]:
    answer: dict[str, Any] = orjson.loads(feed.answer(since, window_s)[0])
    return answer


def test_an_empty_store_has_no_rows_and_no_age(url: str) -> None:
    assert Feed(store()).answer(0, 300.0) == (b'{"seq":0}', -1.0)


def test_a_browser_gets_each_second_once(engine: StandInEngine) -> None:
    now = time.time()
    for second in range(3):
        engine.tick(now - 3 + second)
    feed = Feed(store())
    first = poll(feed)
    engine.tick(now)
    second_answer = poll(feed, first["seq"])
    assert len(first["rows"]["at"]) == 3
    assert second_answer["rows"]["at"] == [pytest.approx(now, abs=0.1)]
    assert poll(feed, second_answer["seq"])["rows"]["at"] == []


def test_the_age_is_that_of_the_newest_snapshot(engine: StandInEngine) -> None:
    engine.tick(time.time() - 42)
    assert Feed(store()).answer(0, 300.0)[1] == pytest.approx(42, abs=2)


def test_a_mark_reaches_a_browser_that_watches_and_one_that_comes_later(engine: StandInEngine) -> None:
    now = time.time()
    engine.tick(now - 2)
    feed = Feed(store())
    seen = poll(feed)["seq"]
    engine.tick(now - 1, events=({"kind": "drain", "target": "l4-0", "text": "drained"},))
    assert [m[3] for m in poll(feed, seen)["marks"]] == ["drain l4-0"]
    assert [m[3] for m in poll(feed)["marks"]] == ["drain l4-0"]


def test_the_window_reaches_back_to_samples_whose_snapshots_are_gone(engine: StandInEngine) -> None:
    now = time.time()
    for second in range(5):
        engine.tick(now - 5 + second)
    with engine.store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM snapshot WHERE seq < 5")
    assert len(poll(Feed(store()))["rows"]["at"]) == 5


def test_viewers_share_one_serialisation(engine: StandInEngine) -> None:
    engine.tick()
    feed = Feed(store())
    assert feed.answer(0, 300.0)[0] is feed.answer(0, 300.0)[0]


def test_another_fleet_changes_the_key_so_that_browsers_ask_for_all(engine: StandInEngine) -> None:
    engine.tick()
    feed = Feed(store())
    first = poll(feed)
    engine.tick(instances=[instance("h200-0", "H200", 700.0)])
    later = poll(feed, first["seq"])
    assert later["key"] != first["key"]
    assert poll(feed)["static"]["instances"]["name"] == ["h200-0"]


def test_a_store_that_was_started_anew_is_sent_in_full(engine: StandInEngine) -> None:
    engine.tick()
    feed = Feed(store())
    assert poll(feed, since=500)["full"] is True


def marks(answer: dict[str, Any]) -> list[str]:
    return [mark[3] for mark in answer["marks"]]


def begin_another_run(engine: StandInEngine, now: float) -> None:
    """A run of 400 simulated s with a mark, and another that begins at 0 s on instances of the same names."""
    for second in range(4):
        engine.tick(now - 8 + second, sim_s=400.0 + 10.0 * second)
    engine.tick(now - 4, events=({"kind": "drain", "target": "l4-0", "text": "drained"},), sim_s=440.0)
    event = {"kind": "scenario", "text": "begun", "new": "burst", "sim_s": 440.0}
    engine.tick(now - 3, events=(event,), sim_s=0.0)
    engine.tick(now - 2, sim_s=10.0)


def test_a_run_that_begins_leaves_no_line_and_no_mark_of_the_one_before(engine: StandInEngine) -> None:
    now = time.time()
    engine.tick(now - 9, sim_s=390.0)
    feed = Feed(store())
    before = poll(feed)
    begin_another_run(engine, now)
    asked = poll(feed, before["seq"])
    assert asked["key"] != before["key"]
    seen = poll(feed)
    assert [round(at - now) for at in seen["rows"]["at"]] == [-3, -2]
    assert marks(seen) == marks(asked) == ["burst"]
    engine.tick(now - 1, sim_s=20.0)
    assert poll(feed, seen["seq"])["key"] == seen["key"]
    assert feed.begun() == pytest.approx(now - 3, abs=0.1)


def test_a_dashboard_started_later_shows_the_present_run_alone(engine: StandInEngine) -> None:
    now = time.time()
    begin_another_run(engine, now)
    with engine.store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM snapshot WHERE seq < 7")
    seen = poll(Feed(store()))
    assert [round(at - now) for at in seen["rows"]["at"]] == [-3, -2]
    assert marks(seen) == ["burst"]


def test_an_engine_that_goes_on_after_an_outage_keeps_its_lines_with_a_hole(engine: StandInEngine) -> None:
    now = time.time()
    engine.tick(now - 20, sim_s=400.0)
    feed = Feed(store())
    first = poll(feed)
    engine.tick(now - 1, sim_s=402.0)
    later = poll(feed, first["seq"])
    assert later["key"] == first["key"]
    assert [round(at - now, 1) for at in later["rows"]["at"]] == [-19.9, -1.1, -1.0]
    assert later["rows"]["fleet"]["queued"] == [None, None, 6]
    assert poll(feed)["rows"]["fleet"]["queued"] == [6, None, None, 6]


def test_a_browser_is_told_where_the_store_is_so_that_it_can_say_how_to_start_an_engine(
    engine: StandInEngine, tmp_path: Path
) -> None:
    engine.tick()
    assert poll(Feed(store()))["static"]["db"] == str(tmp_path / "headway.db")
