"""Whatever is sent, the client is told what is wrong with it: no request is an error of the server's own."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from control.adapters.mock.request import ApiError, Wanted, read
from control.adapters.mock.settings import MockSettings

SETTINGS = MockSettings()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 40_000) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
MESSAGE = st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "tool"])}, optional={"content": JSON})
FUNCTION = st.fixed_dictionaries({}, optional={"name": JSON, "parameters": JSON})
TOOL = st.fixed_dictionaries({}, optional={"type": JSON, "function": FUNCTION | JSON})
NUMBERS = ("max_tokens", "max_completion_tokens", "min_tokens", "n", "seed", "priority")
OTHERS = ("model", "stream", "stream_options", "session_id", "cache_salt", "kv_transfer_params", "ignore_eos")
BODY = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE, max_size=3) | JSON, "prompt": st.text(min_size=1) | JSON},
    optional={
        **dict.fromkeys(NUMBERS + OTHERS, JSON),
        "tools": st.lists(TOOL, max_size=2) | JSON,
        "tool_choice": TOOL | JSON,
    },
)


def outcome(body: bytes, chat: bool) -> Wanted | ApiError:
    """The request as it was read, or the refusal."""
    try:
        return read(body, {}, chat, SETTINGS)
    except ApiError as error:
        return error


@given(BODY | JSON, st.booleans())
def test_any_json_is_read_or_refused(body: Any, chat: bool) -> None:
    found = outcome(orjson.dumps(body), chat)
    if isinstance(found, ApiError):
        assert found.status in (400, 404)
        assert orjson.loads(found.body)["error"]["message"]
    else:
        assert 1 <= found.max_tokens <= SETTINGS.sizes[1] - found.prompt_tokens


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    assert isinstance(outcome(body, True), ApiError)
