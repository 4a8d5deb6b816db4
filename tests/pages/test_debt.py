"""The SLO debt page: the ledger, who pays, and the workflows that carry it."""

import time

from tests.support import details
from tests.support.pages import at, figures, session, texts
from tests.support.snapshots import StandInEngine


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("debt")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_the_ledger_names_causes_payers_and_workflows(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(300),))
    app = at("debt")
    assert not app.exception
    shown = texts(app)
    assert "Queue, own tenant" in shown
    assert "+310 s" in shown
    assert "250 workflows ended in the last 300 s" in shown
    assert "57.3 s behind their plans" in shown
    assert shown.index("workflows?workflow=201") < shown.index("workflows?workflow=300")
    assert figures(app) == 1


def test_a_store_in_which_nothing_has_ended_yet_is_told_in_sentences(engine: StandInEngine) -> None:
    assert engine.detail is not None
    empty = details.ledger(0.0) | {"by_tenant": {}, "by_stage": {}, "by_instance": {}}
    engine.detail |= {"active": [], "ledger": empty}
    engine.tick()
    app = at("debt")
    assert not app.exception
    assert "No workflow has ended in the window yet." in texts(app)
    assert "No workflow is late and none has ended yet." in texts(app)


def test_an_engine_that_reports_no_ledger_is_waited_for(engine: StandInEngine) -> None:
    engine.detail = None
    engine.tick()
    assert "has not reported where the time went yet" in texts(at("debt"))


def test_an_old_link_to_a_workflow_leads_to_the_page_that_tells_its_story(engine: StandInEngine) -> None:
    engine.tick(workflows=(details.workflow(300),))
    app = session("debt", workflow="300")
    assert not app.exception
    assert "Workflow #300" in texts(app)
    assert "41.1 s elapsed − 30.9 s planned = +10.2 s" in texts(app)


def test_an_engine_that_fell_silent_leaves_its_last_ledger_with_its_age(engine: StandInEngine) -> None:
    engine.tick(time.time() - 42)
    assert "As the engine left it 4" in texts(at("debt"))
