"""The page of real servers: empty where all is simulated, else their health and how predictions hold."""

from tests.support.pages import at, texts
from tests.support.seen import SEEN
from tests.support.snapshots import StandInEngine, instance


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = at("servers")
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)


def test_a_simulated_fleet_says_how_to_connect_servers(engine: StandInEngine) -> None:
    engine.tick()
    app = at("servers")
    assert not app.exception
    assert "Every instance of this fleet is simulated" in texts(app)


def test_real_servers_are_shown_with_where_requests_come_in(engine: StandInEngine) -> None:
    rows = [instance("s", "H100", 700.0, simulated=False, observed=SEEN), instance("t", "L4", 72.0)]
    engine.tick(instances=rows, gateway_url="http://127.0.0.1:8080")
    app = at("servers")
    assert not app.exception
    shown = texts(app)
    assert "http://127.0.0.1:8080/v1" in shown
    assert "+50 %" in shown
    assert "1 of 1" in shown.replace("<b>", "").replace("</b> <span></span>", "")


def test_a_real_fleet_has_no_controls_of_simulated_time(engine: StandInEngine) -> None:
    rows = [instance("s", "H100", 700.0, simulated=False, observed=SEEN)]
    engine.tick(instances=rows, gateway_url="http://127.0.0.1:8080")
    app = at("fleet")
    assert not app.exception
    assert {button.key for button in app.button} >= {"drain"}
    assert not {button.key for button in app.button} & {"pause", "kill", "step"}
