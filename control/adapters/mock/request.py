"""A request read and checked the way vLLM's server does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from control.adapters.mock import text
from control.adapters.mock.settings import MockSettings

DEFAULT_MAX_TOKENS = 16  # of /v1/completions, as OpenAI documents it
SYSTEM = ("system", "developer")


class ApiError(Exception):
    """A refusal in OpenAI's shape."""

    def __init__(self, status: int, message: str, kind: str = "BadRequestError", param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.kind, self.param = status, message, kind, param

    @property
    def body(self) -> bytes:
        """The JSON that tells it."""
        told = {"message": self.message, "type": self.kind, "param": self.param, "code": self.status}
        return orjson.dumps({"error": told})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asks for."""

    model: str
    messages: tuple[str, ...]  # the prompt as written for the model
    static: int  # leading messages that are instructions, the same for many conversations
    prompt_tokens: int
    max_tokens: int  # tokens it may generate, the context limit observed
    min_tokens: int
    exact: bool  # generates max_tokens, no matter what
    stream: bool
    include_usage: bool
    seed: int
    priority: int
    session: str | None
    salt: str
    tool: tuple[str, str] | None  # name and arguments of the tool it will call
    tool_finish: str  # finish_reason of such an answer
    transfer: Mapping[str, Any]  # kv_transfer_params


def read(body: bytes, headers: Mapping[str, str], chat: bool, settings: MockSettings) -> Wanted:
    """The request in `body`.

    Raises:
        ApiError: 400 for what cannot be read or served, 404 for another model.
    """
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"Request body is not valid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ApiError(400, f"Request body is {type(fields).__name__}: expected a JSON object")
    check_stream_options(fields)
    model = fields.get("model") or settings.served[0]
    if model not in settings.served:
        raise ApiError(404, f"The model `{model}` does not exist.", "NotFoundError", "model")
    if whole(fields, "n", 1, 1) > 1:
        raise ApiError(400, f"n = {fields['n']}: this server generates one answer a request", param="n")
    messages, static, tokens = chat_prompt(fields) if chat else plain_prompt(fields)
    limit, asked = token_limit(fields, tokens, chat, settings)
    least = whole(fields, "min_tokens", 0, 0)
    if least > limit:
        raise ApiError(400, f"min_tokens must be less than or equal to max_tokens={limit}, got {least}.")
    tool, finish = chosen_tool(fields) if chat else (None, "")
    options = fields.get("stream_options") or {}
    transfer = fields.get("kv_transfer_params") or {}
    return Wanted(
        model=model,
        messages=messages,
        static=static,
        prompt_tokens=tokens,
        max_tokens=limit,
        min_tokens=least,
        exact=bool(fields.get("ignore_eos")) or (asked and "min_tokens" in fields),
        stream=bool(fields.get("stream")),
        include_usage=bool(options.get("include_usage")),
        seed=settings.seed + whole(fields, "seed", 0),
        priority=priority_of(fields, headers),
        session=headers.get("X-Session-ID") or named(fields, "session_id"),
        salt=named(fields, "cache_salt") or "",
        tool=tool,
        tool_finish=finish,
        transfer=transfer if isinstance(transfer, dict) else {},
    )


def check_stream_options(fields: Mapping[str, Any]) -> None:
    """ApiError where stream_options come without a stream, or are none."""
    options = fields.get("stream_options")
    if options is not None and not fields.get("stream"):
        raise ApiError(400, "Stream options can only be defined when `stream=True`.", param="stream_options")
    if options is not None and not isinstance(options, dict):
        raise ApiError(400, f"stream_options = {options!r}: expected an object", param="stream_options")


def whole(fields: Mapping[str, Any], name: str, default: int, least: int | None = None) -> int:
    """A field that is a whole number.

    Raises:
        ApiError: it is something else, or too small.
    """
    value = fields.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise ApiError(400, f"{name} must be a whole number, got {value!r}.", param=name)
    if least is not None and value < least:
        raise ApiError(400, f"{name} must be at least {least}, got {value}.", param=name)
    return value


def named(fields: Mapping[str, Any], name: str) -> str | None:
    """A field that is a text; None where it is not there."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise ApiError(400, f"{name} must be a string, got {value!r}.", param=name)
    return value


def priority_of(fields: Mapping[str, Any], headers: Mapping[str, str]) -> int:
    """The priority asked for; that of the header wins."""
    told = headers.get("X-Vllm-Priority")
    if told is None:
        return whole(fields, "priority", 0)
    try:
        return int(told)
    except ValueError:
        raise ApiError(400, f"X-Vllm-Priority must be a whole number, got {told!r}.", param="priority") from None


def token_limit(fields: Mapping[str, Any], tokens: int, chat: bool, settings: MockSettings) -> tuple[int, bool]:
    """Tokens the answer may have, and whether the client said so.

    Raises:
        ApiError: prompt or answer do not fit the context.
    """
    longest = settings.sizes[1]
    if tokens >= longest:
        raise ApiError(
            400,
            f"This model's maximum context length is {longest} tokens. However, your request has {tokens} input "
            "tokens. Please reduce the length of the input messages.",
            param="input_tokens",
        )
    name = "max_completion_tokens" if fields.get("max_completion_tokens") is not None and chat else "max_tokens"
    room = longest - tokens
    asked = whole(fields, name, room if chat else min(room, DEFAULT_MAX_TOKENS), 1)
    if asked > room:
        raise ApiError(
            400,
            f"'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context length is "
            f"{longest} tokens and your request has {tokens} input tokens ({asked} > {longest} - {tokens}).",
            param="max_tokens",
        )
    return asked, fields.get(name) is not None


def plain_prompt(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], int, int]:
    """The prompt of /v1/completions: one text or one list of tokens."""
    prompt = fields.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
        return (" ".join(map(str, prompt)),), 0, len(prompt)
    if not isinstance(prompt, str) or not prompt:
        raise ApiError(400, "prompt must be one text or one list of tokens that is not empty.", param="prompt")
    return (prompt,), 0, max(1, text.count_tokens(prompt))


def chat_prompt(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], int, int]:
    """The messages as written for the model, how many of the first are instructions, and tokens."""
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ApiError(400, "messages must be a list of at least one message.", param="messages")
    written = [written_message(message) for message in messages]
    static = next((k for k, m in enumerate(messages) if m["role"] not in SYSTEM), len(messages))
    if fields.get("tools"):
        if not isinstance(fields["tools"], list):
            raise ApiError(400, "tools must be a list.", param="tools")
        written.insert(0, f"<tools>\n{orjson.dumps(fields['tools']).decode()}\n")
        static += 1
    return tuple(written), static, sum(map(text.count_tokens, written))


def written_message(message: Any) -> str:
    """A message as the model reads it."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise ApiError(400, f"messages: {message!r:.60} has no role.", param="messages")
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if not isinstance(content, str):
        raise ApiError(400, f"messages: content {content!r:.60}: expected a text or parts.", param="messages")
    calls = message.get("tool_calls")
    return answer_text(message["role"], content + (orjson.dumps(calls).decode() if calls else ""))


def answer_text(role: str, content: str) -> str:
    """What stands in the context for something that `role` said."""
    return f"<|{role}|>\n{content}\n"


def chosen_tool(fields: Mapping[str, Any]) -> tuple[tuple[str, str] | None, str]:
    """The tool that the answer will call, with its arguments, and the answer's finish_reason; None: it is plain text.

    A named tool is called with finish_reason "stop", one that is required or left open with "tool_calls", as vLLM does.
    Left open, one is called unless the last message is what a tool gave back, so that agents come to an end.
    """
    known, choice = schemas(fields.get("tools")), fields.get("tool_choice") or "auto"
    if isinstance(choice, dict):
        function = choice.get("function")
        name = str(function.get("name")) if isinstance(function, dict) else "nothing"
        if name not in known:
            raise ApiError(400, f"tool_choice names {name!r}, which is not among the tools.", param="tool_choice")
        return (name, written_arguments(known[name])), "stop"
    if choice not in ("none", "auto", "required"):
        raise ApiError(400, f"tool_choice = {choice!r}: expected none, auto, required or a tool.", param="tool_choice")
    answered = choice == "auto" and fields["messages"][-1].get("role") == "tool"
    if not known or choice == "none" or answered:
        return None, ""
    name = next(iter(known))
    return (name, written_arguments(known[name])), "tool_calls"


def schemas(tools: Any) -> dict[str, Any]:
    """The tools that a request declares, by name, each with the schema of its parameters."""
    functions = [tool.get("function") for tool in tools or () if isinstance(tool, dict)]
    named = [function for function in functions if isinstance(function, dict)]
    return {str(function["name"]): function.get("parameters") for function in named if "name" in function}


def written_arguments(schema: Any) -> str:
    """Arguments of a tool as the JSON text a model writes."""
    return orjson.dumps(text.arguments(schema if isinstance(schema, dict) else {})).decode()
