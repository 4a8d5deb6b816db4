"""What a page needs, asked for as soon as its document is there: otherwise the browser finds out one script at a time.

The document is Streamlit's; links are put into its head on the way out. A document in another form goes out as it is.
"""

import re
from functools import cache
from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

STATIC = Path(__file__).parent / "static"
FIRST = "live.js"
#: Pages whose first view is a figure of Plotly, by their name in the address. Live charts are sketched at first.
FIGURED = frozenset({"tuning"})
_IMPORT = re.compile(r'^(?:import|export) .*from "\./([\w]+\.js)";', re.MULTILINE)
_END_OF_HEAD = b"</head>"


class EarlyLinks:
    """ASGI middleware that puts the links into documents."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; its answer is changed where it is a document."""
        if scope["type"] != "http" or not _wants_document(scope):
            await self.app(scope, receive, send)
            return
        plain = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        await self.app({**scope, "headers": plain}, receive, _Document(send, scope["path"]).send)


class _Document:
    """One answer on its way out, kept back until it is whole."""

    def __init__(self, send: Send, path: str) -> None:
        self._send, self._path = send, path
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        """Take one message of the answer."""
        if message["type"] == "http.response.start" and _is_page(message):
            self._start = message
            return
        if self._start is None or message["type"] != "http.response.body":
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        body = self._body.replace(_END_OF_HEAD, links(self._path).encode() + _END_OF_HEAD, 1)
        size = str(len(body)).encode()
        headers = [(name, size if name == b"content-length" else value) for name, value in self._start["headers"]]
        await self._send({**self._start, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def links(path: str) -> str:
    """The links for the page at `path`."""
    found = [f'<link rel="modulepreload" href="ui/{name}">' for name in modules()]
    found.append('<link rel="preload" as="style" href="ui/live.css">')
    if path.rsplit("/", 1)[-1] in FIGURED:
        found.append('<script async src="api/plotly.js"></script>')
    return "".join(found)


@cache
def modules() -> tuple[str, ...]:
    """The scripts that FIRST imports, and those that they import."""
    found, left = [FIRST], [FIRST]
    while left:
        for name in _IMPORT.findall((STATIC / left.pop()).read_text(encoding="utf-8")):
            if name not in found:
                found.append(name)
                left.append(name)
    return tuple(found)


def _wants_document(scope: Scope) -> bool:
    """Whether a browser asks for a page."""
    return scope["method"] == "GET" and any(
        name == b"accept" and b"text/html" in value for name, value in scope["headers"]
    )


def _is_page(start: Message) -> bool:
    """Whether an answer that begins like that is a document that can be read."""
    headers = dict(start["headers"])
    return (
        start["status"] == 200
        and headers.get(b"content-type", b"").startswith(b"text/html")
        and b"content-encoding" not in headers
    )
