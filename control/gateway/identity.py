"""Whose call a request is: workflow, stage, deadline and tenant from its headers and body.

The first source that names a workflow wins, in the order of the tables here; which one it was is recorded. The names
are those of shared conventions: our own x-headway-*, session headers of clients and frameworks, and the agentic context
that vLLM takes in `vllm_xargs`.
"""

import math
import zlib
from collections.abc import Mapping
from typing import Any

from control.engine.tickets import Identity
from control.gateway.openai import BadRequestError

#: Headers that name a workflow, first match wins; True: it is a conversation that continues its context.
WORKFLOW_HEADERS = (
    ("x-headway-workflow", False),
    ("x-session-id", True),
    ("x-dynamo-session-id", True),
    ("x-claude-code-session-id", True),
    ("session_id", True),
)
TTFT_HEADERS = ("x-headway-ttft-ms", "x-llm-d-slo-ttft-ms", "x-slo-ttft-ms")
OURS = ("x-headway-", *TTFT_HEADERS)
PROMPT_CHARS = 512  # of a system prompt that tell its stage
MOST_NAME = 128  # characters of a name that are kept
MOST_SLO_S = 1e7


def identity_of(headers: Mapping[str, str], body: Mapping[str, Any]) -> Identity:
    """The identity of one request; headers come with case-insensitive names. Unusable values count as absent."""
    key, session, matched = None, None, ""
    for name, continues in WORKFLOW_HEADERS:
        value = text(headers.get(name))
        if value:
            key, matched = value, name
            session = key if continues else text(headers.get("x-session-id")) or None
            break
    context = agentic_context(body)
    if key is None:
        key, session, matched = of_body(body, context)
    stage = text(headers.get("x-headway-stage")) or text(context.get("step_id") if context else None)
    stage = stage or learned_stage(body)
    told = any(name.lower().startswith(OURS) for name in headers)
    if key is None and context is None and not told:
        return Identity(stage=stage) if stage else LONE
    return Identity(
        key,
        text(headers.get("x-headway-kind")),
        stage,
        text(headers.get("x-headway-tenant")),
        slo_s(headers, context),
        session,
        headers.get("x-headway-final", "") in ("1", "true"),
        matched,
        ttft_s(headers),
    )


LONE = Identity()


def learned_stage(body: Mapping[str, Any]) -> str:
    """The stage of a call that declares none: calls that begin with the same system prompt are of one stage.

    The name is made of the prompt, so that it stays the same; "" where there is no system prompt.
    """
    messages = body.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    if not isinstance(first, Mapping) or first.get("role") not in ("system", "developer"):
        return ""
    prompt = first.get("content")
    if not isinstance(prompt, str) or not prompt:
        return ""
    return f"prompt-{zlib.crc32(prompt[:PROMPT_CHARS].encode('utf-8', 'replace')) & 0xFFFF:04x}"


def agentic_context(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The body's vllm_xargs.agentic_context, where there is one."""
    extra = body.get("vllm_xargs")
    context = extra.get("agentic_context") if isinstance(extra, Mapping) else None
    return context if isinstance(context, Mapping) else None


def of_body(body: Mapping[str, Any], context: Mapping[str, Any] | None) -> tuple[str | None, str | None, str]:
    """Workflow, session and the field that named them, from the body."""
    if context is not None:
        for name in ("program_id", "session_id"):
            if text(context.get(name)):
                return text(context.get(name)), text(context.get("session_id")) or None, f"agentic_context.{name}"
    key = text(body.get("session_id"))
    return (key, key, "session_id in the body") if key else (None, None, "")


def text(value: Any) -> str:
    """A short name, or "" for what is none; bytes of a header that are no text are replaced."""
    if isinstance(value, str):
        return value[:MOST_NAME].encode("utf-8", "replace").decode()
    return str(value) if isinstance(value, int) else ""


def usable(value: str | None, most: int = MOST_NAME) -> str:
    """A header's value that can be sent on, or "" where it cannot: too long, or not plain ASCII."""
    return value if value is not None and len(value) <= most and value.isascii() and value.isprintable() else ""


def ttft_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to the first token that were promised; None: not given."""
    given = next((headers[name] for name in TTFT_HEADERS if name in headers), None)
    value = seconds(given)
    return None if value is None else value / 1e3


def slo_s(headers: Mapping[str, str], context: Mapping[str, Any] | None) -> float | None:
    """Seconds from a workflow's first request to its deadline; None: not given.

    Raises:
        BadRequestError: our own header is no such number.
    """
    given = headers.get("x-headway-slo-s")
    if given is None:
        return seconds(context.get("deadline_seconds")) if context is not None else None
    value = seconds(given)
    if value is None:
        raise BadRequestError(f"x-headway-slo-s = {given!r:.40}: a number of seconds > 0 is accepted")
    return value


def seconds(given: Any) -> float | None:
    """A positive number, or None for what is none."""
    try:
        value = float(given) if given is not None else math.nan
    except (TypeError, ValueError):
        return None
    return value if 0.0 < value <= MOST_SLO_S else None
