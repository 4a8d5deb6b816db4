"""HTTP routes beside the pages: live data, health, plotly.js and the component's own files. All read-only."""

import gzip
import time
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from control.errors import StoreError
from control.present.live import Limits
from pages._ui.feed import LONGEST_S, feed_of
from pages._ui.source import store
from storage import lease, readers

STATIC = Path(__file__).parent / "static"
_JSON = "application/json"
_FRESH = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def live(request: Request) -> Response:
    """GET /api/live?since=SEQ&window=S: rows newer than SEQ (0: the whole window of S s); X-Data-Age in s."""
    try:
        since = int(request.query_params.get("since", "0"))
        window = int(request.query_params.get("window", "300"))
    except ValueError:
        return _problem(400, "since and window are whole numbers, e.g. since=0&window=300")
    if not 0 <= since < 2**62 or not 1 <= window <= LONGEST_S:
        return _problem(400, f"accepted: since from 0, window from 1 to {LONGEST_S} s")
    try:
        opened = store()
        body, age = feed_of(opened).answer(since, window)
    except StoreError as error:
        return _problem(503, str(error))
    return Response(body, media_type=_JSON, headers={**_FRESH, "X-Data-Age": f"{age:.2f}"})


def health(request: Request) -> Response:
    """GET /api/health: is the store readable, is the engine up, how old (s) is its newest snapshot."""
    try:
        newest, holder = readers.latest_snapshot(store()), lease.holder(store())
    except StoreError as error:
        return _json(
            503, {"store": "unreadable", "reason": str(error), "engine": "unknown", "age_s": None, "state": None}
        )
    age = None if newest is None else round(max(0.0, time.time() - newest["at"]), 2)
    up = holder is not None and holder["age_s"] < Limits().down_s
    state = newest["payload"]["engine"].get("state") if newest is not None and up else None
    return _json(200, {"store": "ok", "engine": "up" if up else "down", "age_s": age, "state": state})


def plotly_js(request: Request) -> Response:
    """GET /api/plotly.js: the copy inside the plotly wheel, compressed once, cached by browsers for good."""
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(_plotly(), media_type="text/javascript", headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(_plotly_gzip(), media_type="text/javascript", headers=headers)


def routes() -> list[BaseRoute]:
    """All routes, for `st.App(routes=...)`."""
    return [
        Route("/api/live", live, methods=["GET"]),
        Route("/api/health", health, methods=["GET"]),
        Route("/api/plotly.js", plotly_js, methods=["GET"]),
        Mount("/ui", _Files(directory=STATIC)),
    ]


class _Files(StaticFiles):
    """Files that browsers keep but ask about each time, so that an update shows at once."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response


@cache
def _plotly() -> bytes:
    return (files("plotly") / "package_data" / "plotly.min.js").read_bytes()


@cache
def _plotly_gzip() -> bytes:
    return gzip.compress(_plotly(), 6, mtime=0)


def _json(status: int, body: dict[str, object]) -> Response:
    return Response(orjson.dumps(body), status, media_type=_JSON, headers=_FRESH)


def _problem(status: int, message: str) -> Response:
    return _json(status, {"error": message})
