"""The queues page on an empty, a quiet and a busy fleet, with filters and an engine that fell silent."""

import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages._ui import feed
from tests.support import details
from tests.support.pages import at, texts
from tests.support.snapshots import StandInEngine


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("queues")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_a_broken_store_shows_a_sentence_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / 'broken.db'}")
    app = at("queues")
    assert not app.exception
    assert "The store cannot be read" in texts(app)


def test_an_engine_that_has_reported_no_queues_yet_is_waited_for(engine: StandInEngine) -> None:
    engine.detail = None
    engine.tick()
    app = at("queues")
    assert not app.exception
    assert "has not reported its queues yet" in texts(app)


def test_each_instance_shows_its_calls_in_order_with_links_to_their_workflows(engine: StandInEngine) -> None:
    engine.tick()
    app = at("queues")
    assert not app.exception
    shown = texts(app)
    assert shown.index(">1000<") < shown.index(">1001<") < shown.index(">1002<")
    assert 'href="workflows?workflow=100"' in shown
    assert "first 14 of 40 waiting" in shown
    assert "✕ −3.40 s" in shown


def test_a_fleet_where_nobody_waits_is_a_sentence(engine: StandInEngine) -> None:
    assert engine.detail is not None
    engine.detail["queues"] = [details.queue("h100-0", 0)]
    engine.tick()
    app = at("queues")
    assert "Nobody waits" in texts(app)


def test_a_filter_leaves_one_instance(engine: StandInEngine) -> None:
    engine.tick()
    app = at("queues")
    app.selectbox(key="instance").select("l4-0").run()
    assert "h100-0" not in texts(app)


def test_a_link_opens_the_page_filtered(engine: StandInEngine) -> None:
    engine.tick()
    app = at("queues", tenant="support")
    assert app.selectbox(key="tenant").value == "support"
    assert ">1001<" in texts(app)
    assert ">1000<" not in texts(app)


def test_a_link_to_what_no_longer_waits_says_so(engine: StandInEngine) -> None:
    engine.tick()
    app = at("queues", stage="planning")
    assert "No waiting call matches these filters; 49 wait in all." in texts(app)


def test_an_engine_that_fell_silent_leaves_its_last_queues_with_their_age(engine: StandInEngine) -> None:
    engine.tick(time.time() - 42)
    app = at("queues")
    assert "As the engine left it 4" in texts(app)
    assert ">1000<" in texts(app)


def test_a_new_stage_joins_the_choices(engine: StandInEngine) -> None:
    engine.tick()
    app: AppTest = at("queues")
    assert engine.detail is not None
    engine.detail["queues"] = [{"instance": "h100-0", "total": 1, "calls": [details.call(1, stage="review")]}]
    engine.tick()
    app.run()
    assert {"review", "candidate"} <= set(app.selectbox(key="stage").options)


def test_names_with_markup_in_them_are_shown_as_text(engine: StandInEngine) -> None:
    assert engine.detail is not None
    hostile = details.call(1, stage="<script>x</script>", tenant="<b>t</b>")
    engine.detail["queues"] = [{"instance": "h100-0", "total": 1, "calls": [hostile]}]
    engine.tick()
    assert "<script>" not in texts(at("queues"))
    assert "&lt;b&gt;t&lt;/b&gt;" in texts(at("queues"))


def test_the_legend_names_no_tenant_of_a_run_that_is_over(
    engine: StandInEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "LOOK_EVERY_S", 0.0)

    def tell(tenant: str) -> None:
        one = details.queue("h100-0", 1) | {"calls": [details.call(0, tenant=tenant)]}
        ledger = details.ledger() | {"by_tenant": {}}
        engine.detail = {"tuning": details.tuning(), "queues": [one], "active": [], "ledger": ledger}

    tell("analytics")
    engine.tick(time.time() - 2, sim_s=400.0, workflows=(details.workflow(1),))
    app = at("queues")
    assert '<i class="c0"></i>analytics</span>' in texts(app)
    tell("interactive")
    engine.tick(time.time() - 1, sim_s=410.0)
    app.run()
    assert '<i class="c0"></i>analytics</span>' in texts(app)  # who waits no more keeps the colour
    engine.tick(time.time(), sim_s=0.0)
    app.run()
    assert '<i class="c0"></i>interactive</span>' in texts(app)
    assert "</i>analytics</span>" not in texts(app)
