"""Which conversation a request continues, and how much of its prompt the conversation's last call has left cached."""

import zlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from control.adapters.mock.core import SHARED
from control.adapters.mock.text import count_tokens

MOST_STREAMS = 4096


class Context(NamedTuple):
    """What is known of a request's prompt."""

    text: str
    ends: tuple[int, ...]  # digests of the prompt up to the end of each message
    session: tuple[str, str] | None  # the client's own name for the conversation, and whose cache it is
    stream: int
    history_tokens: int
    shared_key: int
    shared_tokens: int


class Contexts:
    """Conversations by the client's name for them, else by the messages they begin with; the latest ones are kept."""

    def __init__(self, most_tokens: int) -> None:
        self.most_tokens, self.tokens = most_tokens, 0
        self.kept: OrderedDict[int, tuple[str, int, list[int | tuple[str, str]]]] = OrderedDict()
        self.streams: dict[int | tuple[str, str], int] = {}
        self.shared: dict[int, int] = {}
        self.n_streams = 0

    def find(self, messages: Sequence[str], static: int, session: str | None, salt: str) -> Context:
        """The context of a prompt.

        Args:
            messages: the prompt as written for the model, message by message.
            static: leading messages that other conversations begin with too.
            session: the client's name for the conversation.
            salt: prompts of different salt share nothing.
        """
        ends = digests(messages, salt)
        name = None if session is None else (session, salt)
        known = [self.streams[key] for key in (name, *reversed(ends)) if key in self.streams]
        text = "".join(messages)
        stream = known[0] if known else self.new_stream()
        past = self.kept[stream][0] if stream in self.kept else ""
        history = text[: common_length(past, text)]
        shared_key = -1
        if static:
            shared_key = self.shared.setdefault(ends[static - 1], len(self.shared))
        shared = count_tokens("".join(messages[:static]))
        if shared_key >= SHARED:
            shared_key, shared = -1, 0
        return Context(text, ends, name, stream, count_tokens(history), shared_key, shared)

    def new_stream(self) -> int:
        """A number no conversation has had."""
        self.n_streams += 1
        return self.n_streams - 1

    def note(self, context: Context, answer: str) -> None:
        """A call has ended: its prompt and answer are what its conversation's next call finds."""
        self.forget(context.stream)
        whole = context.text + answer
        keys: list[int | tuple[str, str]] = [*context.ends[-1:], *([context.session] if context.session else [])]
        for key in keys:
            self.streams[key] = context.stream
        self.kept[context.stream] = (whole, count_tokens(whole), keys)
        self.tokens += self.kept[context.stream][1]
        while len(self.kept) > 1 and (self.tokens > self.most_tokens or len(self.kept) > MOST_STREAMS):
            self.forget(next(iter(self.kept)))

    def forget(self, stream: int) -> None:
        """Drop what is kept of a conversation."""
        if stream not in self.kept:
            return
        _, tokens, keys = self.kept.pop(stream)
        self.tokens -= tokens
        for key in keys:
            if self.streams.get(key) == stream:
                del self.streams[key]


def digests(messages: Sequence[str], salt: str) -> tuple[int, ...]:
    """A number for each of the prompt's beginnings, one message longer each time."""
    ends, at, length = [], zlib.crc32(salt.encode("utf-8", "surrogatepass")), 0
    for message in messages:
        data = message.encode("utf-8", "surrogatepass")
        at, length = zlib.crc32(data, at), length + len(data)
        ends.append(at << 32 | length)
    return tuple(ends)


def common_length(one: str, other: str) -> int:
    """Characters that two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
