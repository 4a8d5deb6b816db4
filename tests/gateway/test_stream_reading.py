"""How a stream of events is read on its way: however the bytes are cut, the client and the books get the same."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.gateway.openai import Stream, Usage

TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"data: [DONE] \\n\\n \\"usage\\": {"}}]}'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}'
BOTH = b'data: {"choices":[{"index":0}],"usage" : {"prompt_tokens":9,"completion_tokens":1}}'
EVENTS = (
    TOKEN,
    USAGE,
    BOTH,
    b": keep-alive",
    b'data: {"error": {"message": "it broke"}}',
    b'data: {"error": ',
    b"data:[DONE]",
    b"event: x\ndata: {}",
    b'data: {"usage": {\ndata: "prompt_tokens": 1}}',
    b"data: [1]",
    b"",
)
PIECES = st.sampled_from([*EVENTS, b"\n\n", b"\r\n\r\n", b"\n", b"\r", b"data:"]) | st.binary(max_size=3)


def read(parts: list[bytes], wants_usage: bool) -> tuple[bytes, Stream]:
    stream = Stream(wants_usage)
    said = b"".join(map(stream.feed, parts)) + stream.rest_of_it()
    stream.rest = b""
    return said, stream


@given(st.lists(PIECES, max_size=12).map(b"".join), st.sets(st.integers(0, 400)), st.booleans())
def test_the_cut_of_the_bytes_makes_no_difference(data: bytes, cuts: set[int], wants_usage: bool) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    said, stream = read([data[a:b] for a, b in pairwise(edges)], wants_usage)
    whole, once = read([data], wants_usage)
    assert said == whole
    assert vars(stream) == vars(once)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_usage_is_kept_back_unless_asked_for(newline: bytes) -> None:
    data = b"".join(event + 2 * newline for event in (TOKEN, TOKEN, USAGE, b"data: [DONE]"))
    said, stream = read([data], False)
    assert said == data.replace(USAGE + 2 * newline, b"")
    assert (stream.events, stream.usage, stream.is_done) == (2, Usage(3, 2, -1), True)
    assert read([data], True)[0] == data
    assert Stream(False).feed(data[: len(TOKEN + 2 * newline)]) == TOKEN + 2 * newline  # at once


def test_words_that_look_like_the_wire_are_words() -> None:
    said, stream = read([TOKEN + b"\n\n"], False)
    assert said == TOKEN + b"\n\n"
    assert (stream.events, stream.is_done, stream.usage) == (1, False, Usage())


def test_comments_are_no_tokens() -> None:
    said, stream = read([b": keep-alive\n\n" * 3], False)
    assert said == b": keep-alive\n\n" * 3
    assert (stream.events, stream.said) == (0, False)


def test_numbers_no_server_means_are_not_believed() -> None:
    _, stream = read([b'data: {"choices":[],"usage":{"prompt_tokens":18446744073709551615}}\n\n'], False)
    assert stream.usage == Usage()
