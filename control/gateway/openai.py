"""Bodies of the OpenAI wire: reading requests, shaping legs and errors, watching streams go by."""

import re
from typing import Any, NamedTuple

import orjson

from control.errors import InputError

USAGE_OPTION = b'"stream_options":{"include_usage":true}'
DONE = b"[DONE]"
END_OF_EVENT = re.compile(rb"\n\r?\n")
FINISH_TIGHT, FINISH_LOOSE = b'"finish_reason":"', b'"finish_reason": "'
DATA_LINE = re.compile(rb"^data:[ ]?(.*?)\r?$", re.MULTILINE)
USAGE_TIGHT, USAGE_LOOSE, ERROR = b'"usage":{', b'"usage": {', b'"error"'  # such events are looked into
MOST_COUNT = 2**22  # tokens that are believed
MOST_EVENT = 4 * 2**20  # bytes of one event of a stream
ASK_REMOTE_DECODE: dict[str, Any] = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


class TooLongError(Exception):
    """A server sends more at once than anybody can want."""


class BadRequestError(InputError):
    """The request cannot be used; the message says what was accepted."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Ask(NamedTuple):
    """What the gateway needs to know of a request's body."""

    raw: bytes
    body: dict[str, Any]
    model: str
    stream: bool
    wants_usage: bool  # of a stream

    @property
    def max_tokens(self) -> int | None:
        """Most tokens that may be generated; None: not said."""
        for name in ("max_completion_tokens", "max_tokens"):
            if isinstance(self.body.get(name), int):
                return int(self.body[name])
        return None


def read_ask(raw: bytes, content: str) -> Ask:
    """A request's body, checked as far as the gateway reads it; `content` is "messages" or "prompt".

    Raises:
        BadRequestError: not a JSON object, or a field that is missing or of the wrong type.
    """
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("the body is not a JSON object")
    if content not in body:
        raise BadRequestError(f"{content} is missing")
    model, stream, options = body.get("model"), body.get("stream"), body.get("stream_options")
    model = "" if model is None else model
    if not isinstance(model, str):
        raise BadRequestError(f"model = {model!r:.80}: a name is accepted")
    if not isinstance(stream, bool | None):
        raise BadRequestError(f"stream = {stream!r:.80}: true or false is accepted")
    wants = isinstance(options, dict) and bool(options.get("include_usage"))
    return Ask(raw, body, model, bool(stream), wants)


def answer_leg(ask: Ask, model: str, kv_transfer_params: Any = None) -> bytes:
    """The body that is sent for the whole answer: as it came, but for the model's name there, and asking for usage."""
    as_is = kv_transfer_params is None and model == ask.model
    if as_is and (not ask.stream or ask.wants_usage):
        return ask.raw
    if as_is and ask.body.get("stream_options") is None and "stream_options" not in ask.body:
        return ask.raw.rstrip()[:-1] + b"," + USAGE_OPTION + b"}"
    body = ask.body | {"model": model}
    if kv_transfer_params is not None:
        body["kv_transfer_params"] = kv_transfer_params
    options = body.get("stream_options") or {}
    if ask.stream and isinstance(options, dict):  # what is wrong with others the server says
        body["stream_options"] = options | {"include_usage": True}
    return written(body)


def prefill_leg(ask: Ask, model: str) -> bytes:
    """The body of the prefill leg: one token, not streamed, its KV kept for another server."""
    body = {key: value for key, value in ask.body.items() if key not in ("stream_options", "min_tokens")}
    if "max_completion_tokens" in body:
        body["max_completion_tokens"] = 1
    body |= {"model": model, "max_tokens": 1, "stream": False, "kv_transfer_params": ASK_REMOTE_DECODE}
    return written(body)


def written(body: dict[str, Any]) -> bytes:
    """A body as JSON.

    Raises:
        BadRequestError: it is nested too deeply to be written.
    """
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise BadRequestError("the body is nested too deeply: at most 250 levels are accepted") from error


def collect_leg(ask: Ask, model: str, kv_transfer_params: Any) -> bytes:
    """The body of a decode leg that only fetches KV nobody wants any more, so that the prefiller may let go of it."""
    body = orjson.loads(prefill_leg(ask, model))
    return orjson.dumps(body | {"kv_transfer_params": kv_transfer_params})


def error_body(message: str, kind: str, status: int) -> dict[str, Any]:
    """An error in the shape that OpenAI's clients read."""
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


class Usage(NamedTuple):
    """Token counts that a server reports; -1: it does not."""

    input_tokens: int = -1
    generated: int = -1
    cached: int = -1


def usage_of(body: Any) -> Usage:
    """The usage in a response or in an event of a stream."""
    usage = body.get("usage") if isinstance(body, dict) else None
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
    return Usage(*(int(n) if isinstance(n, int) and 0 <= n < MOST_COUNT else -1 for n in counts))


def end_of_events(data: bytes) -> int:
    """Where the last whole event ends; the usual case apart, which is twice as fast."""
    if b"\r" not in data and b"\n\n\n" not in data:
        return data.rfind(b"\n\n") + 2 if b"\n\n" in data else 0
    ends = [end.end() for end in END_OF_EVENT.finditer(data)]
    return ends[-1] if ends else 0


def is_telling(data: bytes) -> bool:
    """Whether events may tell more than a token."""
    return USAGE_TIGHT in data or USAGE_LOOSE in data or ERROR in data or DONE in data


class Stream:
    """Watches a stream of server-sent events: counts, usage, how it ends. Feed it what comes, send on what it gives.

    Only whole events are passed on, as they came. The event with the usage is kept back where the client did not ask
    for it. How the bytes were cut on their way makes no difference.
    """

    def __init__(self, wants_usage: bool) -> None:
        self.wants_usage = wants_usage
        self.rest = b""
        self.events = 0  # that bring a token
        self.said = False  # anything but comments was passed on
        self.usage = Usage()
        self.is_done = False
        self.is_finished = False  # the answer is whole, though its usage or its last line may be to come
        self.error: str | None = None

    def feed(self, data: bytes) -> bytes:
        """The whole events so far, to be passed on."""
        if self.rest:
            data = self.rest + data
        cut = end_of_events(data)
        if len(data) - cut > MOST_EVENT:
            raise TooLongError(f"an event of more than {MOST_EVENT:,} bytes")
        self.rest, whole = data[cut:], data[:cut]
        return self.take(whole) if whole else b""

    def rest_of_it(self) -> bytes:
        """What came after the last whole event, once nothing more will: an event whose end was left out, perhaps."""
        self.rest, last = b"", self.rest
        return self.take(last) if last else b""

    def take(self, whole: bytes) -> bytes:
        """Take in whole events; those for the client."""
        n = whole.count(b"\ndata:") + whole.startswith(b"data:")
        self.events += n
        if FINISH_TIGHT in whole or FINISH_LOOSE in whole:
            self.is_finished = True
        if n and is_telling(whole):
            return self.look(whole)
        self.said = self.said or n > 0
        return whole

    def look(self, whole: bytes) -> bytes:
        """Read events that tell more than a token."""
        if b"\r" not in whole and b"\n\n\n" not in whole and whole.endswith(b"\n\n") and ERROR not in whole:
            return self.look_quickly(whole)
        kept, at = [], 0
        for end in [*(found.end() for found in END_OF_EVENT.finditer(whole)), len(whole)]:
            event, at = whole[at:end], end
            lines = DATA_LINE.findall(event)
            if lines and is_telling(event) and self.is_held_back(lines):
                continue
            self.said = self.said or bool(lines)
            kept.append(event)
        return b"".join(kept)

    def look_quickly(self, whole: bytes) -> bytes:
        """The same for events as servers send them: one line of data each, a blank line behind it."""
        kept = []
        for event in whole[:-2].split(b"\n\n"):
            lines = [event[6:]] if event.startswith(b"data: ") and b"\n" not in event else DATA_LINE.findall(event)
            if lines and is_telling(event) and self.is_held_back(lines):
                continue
            self.said = self.said or bool(lines)
            kept.append(event + b"\n\n")
        return b"".join(kept)

    def is_held_back(self, lines: list[bytes]) -> bool:
        """Take in the data of one event; whether it is not for the client."""
        data = b"\n".join(lines)
        if data.strip() == DONE:
            self.is_done = True
            self.events -= len(lines)
            return False
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError:
            return False
        if not isinstance(body, dict):
            return False
        if body.get("error"):
            error = body["error"]
            self.error = str(error.get("message", error) if isinstance(error, dict) else error)[:300]
            self.events -= len(lines)
            return False
        found = usage_of(body)
        if found.input_tokens < 0:
            return False
        self.usage = found
        is_extra = not body.get("choices")
        self.events -= len(lines) if is_extra else 0
        return is_extra and not self.wants_usage
