"""What a browser gets from one poll to the next: everything once, nothing twice."""

import time
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
