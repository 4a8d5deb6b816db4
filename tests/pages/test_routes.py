"""The HTTP routes answer with data or with one clear line, never with a traceback."""

import gzip
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.requests import Request
from starlette.responses import Response

from pages._ui import feed, routes
from storage.open import open_store
from tests.support.snapshots import StandInEngine


def request(query: str = "", **headers: str) -> Request:
    pairs = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": pairs}
    return Request(scope)


def body(response: Response) -> Any:
    return orjson.loads(bytes(response.body))


def test_live_answers_with_the_age_of_the_data(engine: StandInEngine) -> None:
    engine.tick(time.time() - 2)
    response = routes.live(request("since=0&window=300"))
    assert response.status_code == 200
    assert 2 <= float(response.headers["X-Data-Age"]) < 10
    assert body(response)["seq"] == 1


@pytest.mark.parametrize("query", ["since=x", "since=-1", "window=0", "window=1801", "window=1.5"])
def test_live_says_what_it_would_have_accepted(url: str, query: str) -> None:
    response = routes.live(request(query))
    assert response.status_code == 400
    assert "since" in body(response)["error"]


def test_health_tells_a_live_engine_from_none(engine: StandInEngine) -> None:
    assert body(routes.health(request())) == {"store": "ok", "engine": "up", "age_s": None, "state": None}
    engine.tick(time.time() - 30)
    seen = body(routes.health(request()))
    assert seen["engine"] == "down"
    assert seen["age_s"] >= 30


def test_an_unreadable_store_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / 'broken.db'}")
    for response in (routes.live(request()), routes.health(request())):
        assert response.status_code == 503
        assert "broken.db" in str(body(response))


def test_plotly_comes_from_the_wheel_compressed_and_cached_for_good() -> None:
    response = routes.plotly_js(request(accept_encoding="gzip, br"))
    assert response.headers["Content-Encoding"] == "gzip"
    assert "immutable" in response.headers["Cache-Control"]
    assert gzip.decompress(bytes(response.body)) == bytes(routes.plotly_js(request()).body)


def test_every_route_only_reads() -> None:
    assert all(getattr(r, "methods", None) in (None, {"GET", "HEAD"}) for r in routes.routes())


def test_the_component_imports_only_files_that_are_there() -> None:
    names = {p.name for p in routes.STATIC.iterdir()}
    for script in routes.STATIC.glob("*.js"):
        for line in script.read_text().splitlines():
            if line.startswith("import "):
                assert line.split('"./')[1].rstrip('";') in names


def test_a_store_that_was_deleted_is_opened_anew(
    engine: StandInEngine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "LOOK_EVERY_S", 0.0)
    engine.tick()
    assert body(routes.live(request("since=0")))["seq"] == 1
    for file in Path(url.removeprefix("sqlite:///")).parent.glob("headway.db*"):
        file.unlink()
    anew = open_store(url)  # as the engine would, started again
    try:
        assert body(routes.live(request("since=0"))) == {"seq": 0}
        again = StandInEngine(anew)
        for _ in range(2):
            again.tick()
        assert body(routes.live(request("since=0")))["seq"] == 2
        assert body(routes.health(request()))["engine"] == "up"
    finally:
        anew.close()
