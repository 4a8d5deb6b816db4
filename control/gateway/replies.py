"""Responses that are made here: errors in the shape that OpenAI's clients read, and plain JSON."""

from typing import Any

import orjson
from aiohttp import web

from control.gateway.openai import error_body


def problem(status: int, message: str, kind: str, retry_after_s: int | None = None) -> web.Response:
    """An error response that OpenAI's clients read."""
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    body = orjson.dumps(error_body(message, kind, status))
    return web.Response(status=status, body=body, headers=headers | {"content-type": "application/json"})


def as_json(body: Any, status: int = 200) -> web.Response:
    """A JSON response."""
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")
