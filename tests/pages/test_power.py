"""The power page: figures, the cap form with its effect before it is sent, and the command it writes."""

import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from storage import commands
from tests.support import details
from tests.support.pages import at, figures, texts
from tests.support.snapshots import StandInEngine


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("power")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_a_broken_store_shows_a_sentence_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / 'broken.db'}")
    app = at("power")
    assert not app.exception
    assert "The store cannot be read" in texts(app)


def test_an_engine_that_has_reported_none_yet_is_waited_for(engine: StandInEngine) -> None:
    engine.detail = None
    engine.tick()
    app = at("power")
    assert not app.exception
    assert "has not reported its power yet" in texts(app)


def test_figures_tiers_and_instances_are_shown(engine: StandInEngine) -> None:
    engine.tick()
    app = at("power")
    assert not app.exception
    assert "56.1" in texts(app)
    assert "a40-2" in texts(app)
    assert figures(app) == 2  # bar and watts over time


def drafted(engine: StandInEngine, watts: float) -> AppTest:
    """The page with the cap of the prefill tier moved and not sent."""
    engine.tick()
    app = at("power")
    assert app.selectbox(key="cap_target").value == "prefill"
    assert app.button(key="apply-cap").disabled
    return app.slider[0].set_value(watts).run()


def test_the_effect_is_shown_before_anything_is_sent(engine: StandInEngine) -> None:
    app = drafted(engine, 150.0)
    assert not app.exception
    assert " W → " in texts(app)
    assert " mJ → " in texts(app)
    assert commands.pending(engine.store) == []
    assert app.button(key="apply-cap").label == "Cap prefill at 150 W"


def test_apply_writes_the_cap_and_what_was_seen(engine: StandInEngine) -> None:
    app = drafted(engine, 150.0)
    app.button(key="apply-cap").click().run()
    (row,) = commands.pending(engine.store)
    assert (row["kind"], row["payload"]) == ("power_cap", {"tier": "prefill", "cap_w": 150.0})
    assert (row["expected"], row["author"]) == ("no cap", "dashboard")
    assert "… pending (cap prefill 150 W per GPU)" in texts(app)


def test_the_slider_at_its_end_lifts_the_cap(engine: StandInEngine) -> None:
    assert engine.detail is not None
    engine.detail["power"] = details.power([details.meter("a40-0", cap_w=200.0)])
    engine.tick()
    app = at("power")
    assert app.slider[0].value == 200.0
    app.slider[0].set_value(300.0).run()
    app.button(key="apply-cap").click().run()
    (row,) = commands.pending(engine.store)
    assert (row["payload"], row["expected"]) == ({"tier": "all", "cap_w": None}, 200.0)


def test_gpus_that_share_no_cap_ask_for_an_instance(engine: StandInEngine) -> None:
    assert engine.detail is not None
    rows = [details.meter("a40-0"), details.meter("l4-0", "L4", lowest_cap_w=25.2, tdp_w=72.0)]
    engine.detail["power"] = details.power(rows)
    engine.tick()
    app = at("power")
    assert "share no cap" in texts(app)
    app.selectbox(key="cap_target").select("l4-0").run()
    assert (app.slider[0].min, app.slider[0].max) == (26.0, 72.0)


def test_a_cap_set_elsewhere_is_taken_over(engine: StandInEngine) -> None:
    app = drafted(engine, 150.0)
    assert engine.detail is not None
    engine.detail["power"] = details.power([details.meter("a40-0", role="prefill", cap_w=250.0)])
    engine.tick()
    app.run()
    assert app.slider[0].value == 250.0
    assert "In force: 250 W per GPU" in texts(app)


def test_an_applied_cap_is_undone_cap_by_cap(engine: StandInEngine) -> None:
    app = drafted(engine, 150.0)
    app.button(key="apply-cap").click().run()
    event = {"kind": "power_cap", "text": "power cap of prefill", "command_id": 1, "old": {"caps": {"a40-0": None}}}
    engine.tick(events=(event | {"new": {"caps": {"a40-0": 150.0}}},))
    app.run()
    app.button(key="undo-c1").click().run()
    (row,) = commands.pending(engine.store)
    assert (row["kind"], row["payload"], row["undo_of"]) == ("power_caps", {"caps": {"a40-0": None}}, 1)


def test_an_engine_that_fell_silent_leaves_its_figures_with_their_age(engine: StandInEngine) -> None:
    engine.tick(time.time() - 42)
    assert "As the engine left it 4" in texts(at("power"))
