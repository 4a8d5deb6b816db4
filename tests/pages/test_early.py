"""Documents go out with links to what the page needs first, and whole; all else goes out as it is."""

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from pages._ui.early import STATIC, EarlyLinks, modules

DOCUMENT = "<html><head><title>é</title></head><body></body></html>"
BROWSER = {"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip"}


def page(_: Request) -> Response:
    return HTMLResponse(DOCUMENT)


def parts(_: Request) -> Response:
    return StreamingResponse(iter([DOCUMENT[:20], DOCUMENT[20:]]), media_type="text/html")


def gone(_: Request) -> Response:
    return HTMLResponse(DOCUMENT, 404)


def other(_: Request) -> Response:
    return JSONResponse({"text": DOCUMENT})


@pytest.fixture
def client() -> Iterator[TestClient]:
    routes = [Route("/parts", parts), Route("/gone", gone), Route("/api", other), Route("/{name:path}", page)]
    app = Starlette(
        routes=[Mount("/deep", routes=routes), *routes],
        middleware=[Middleware(EarlyLinks), Middleware(GZipMiddleware, minimum_size=1)],
    )
    with TestClient(app) as made:
        yield made


@pytest.mark.parametrize("path", ["/", "/fleet", "/tuning", "/deep/tuning", "/parts"])
def test_a_document_goes_out_whole_with_its_links(client: TestClient, path: str) -> None:
    answer = client.get(path, headers=BROWSER)
    head, _, body = answer.text.partition("</head>")
    assert head.startswith("<html><head><title>é</title>")
    assert '<link rel="modulepreload" href="ui/live.js">' in head
    assert body == "<body></body></html>"
    assert ("api/plotly.js" in head) == path.endswith("tuning")
    assert int(answer.headers.get("content-length", len(answer.content))) == len(answer.content)


@pytest.mark.parametrize("page", ["workflows", "fleet"])
def test_a_page_whose_first_view_needs_no_plotly_does_not_wait_for_it(client: TestClient, page: str) -> None:
    assert "plotly.js" not in client.get(f"/{page}", headers=BROWSER).text.replace("ui/plotly.js", "")


@pytest.mark.parametrize(("path", "accept"), [("/gone", BROWSER["Accept"]), ("/api", BROWSER["Accept"]), ("/", "*/*")])
def test_all_else_goes_out_as_it_is(client: TestClient, path: str, accept: str) -> None:
    assert "modulepreload" not in client.get(path, headers={"Accept": accept}).text


def test_every_link_leads_to_a_file() -> None:
    assert len(modules()) > 10
    assert all((STATIC / name).is_file() for name in (*modules(), "live.css"))
