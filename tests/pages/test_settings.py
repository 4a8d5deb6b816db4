"""The settings page: what the engine runs with, what the store keeps, and the commands that change it."""

import time
from pathlib import Path

import pytest

from tests.support.pages import at, texts
from tests.support.snapshots import StandInEngine, instance


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("settings")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_a_broken_store_shows_a_sentence_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / 'broken.db'}")
    app = at("settings")
    assert not app.exception
    assert "The store cannot be read" in texts(app)


def test_engine_fleet_store_and_colours_are_told(engine: StandInEngine, tmp_path: Path) -> None:
    engine.tick()
    app = at("settings")
    assert not app.exception
    shown = texts(app)
    for said in ("4711 on ", "0.1.0", "demo-mixed", "×10", "0.20", "h100-0", "400,000", "estimated", "simulated"):
        assert said in shown
    assert "headway.db" in shown
    assert "24 h, the newest 200,000" in shown
    assert "below 90 %" in shown
    assert "from 3 s" in shown


def test_commands_of_a_start_can_be_copied(engine: StandInEngine, tmp_path: Path) -> None:
    engine.tick()
    shown = [block.value for block in at("settings").code]
    file = tmp_path / "headway.db"
    assert f"headway up --db {file} --demo demo-mixed --fresh" in shown
    assert f"headway up --db {file} --seed 1 --fresh" in shown


def test_rows_that_were_only_counted_are_admitted(engine: StandInEngine) -> None:
    engine.tick(unstored={"decisions": 1200, "workflows": 3})
    assert "1,200 placements and 3 ended workflows since the start have no row" in texts(at("settings"))
    engine.tick(unstored={"decisions": 0, "workflows": 0})
    assert "has its row" in texts(at("settings"))


def test_a_real_server_is_named_by_its_address(engine: StandInEngine) -> None:
    rows = [instance("h100-0", "H100", 700.0, simulated=False, observed={"url": "http://10.0.0.9:8000"})]
    rows.append(instance("h100-1", "H100", 700.0, simulated=False, observed=None))
    engine.tick(instances=rows, gateway_url="http://127.0.0.1:8080")
    shown = texts(at("settings"))
    assert "http://10.0.0.9:8000" in shown
    assert "not seen yet" in shown
    assert "http://127.0.0.1:8080/v1" in shown
    assert "Speed" not in shown


def test_a_time_range_is_a_link_to_keep(engine: StandInEngine) -> None:
    engine.tick()
    assert '<a href="./?window=900">15 min</a>' in texts(at("settings"))


def test_an_engine_that_fell_silent_leaves_its_facts_with_their_age(engine: StandInEngine) -> None:
    engine.tick(time.time() - 42)
    app = at("settings")
    assert "As the engine left it 4" in texts(app)
    assert "4711" in texts(app)
