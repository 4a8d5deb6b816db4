"""Tokens and the words of answers: one rule, used wherever tokens are counted."""

import re
import zlib
from collections.abc import Callable, Mapping
from math import log
from typing import Any

PIECE = re.compile(r"\s*\S{1,5}")  # a token: up to five letters of a word, with the space before it
LONGEST = 5
#: Answers are made of these, one token each; a prime number of them, so that every stride visits all.
WORDS = tuple(first + vowel + last for first in "bdfgklmnprstvz" for vowel in "aeiou" for last in "nrs")[:199]
SPACED = tuple(f" {word}" for word in WORDS)

Text = Callable[[int, int], str]  # the text of tokens [first, last) of an answer


def count_tokens(text: str) -> int:
    """Tokens of a text: each word is cut into pieces of five letters; about four characters a token in English."""
    return sum((len(word) + LONGEST - 1) // LONGEST for word in text.split())


def digest(text: str, seed: int) -> int:
    """A number from 0 to 2^32 - 1 that depends on both."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"), seed & 0xFFFFFFFF)


def words(number: int) -> Text:
    """The answer that belongs to a number, without an end: one word a token."""
    n = len(WORDS)
    start, stride = number % n, 1 + number // n % (n - 1)

    def text(first: int, last: int) -> str:
        if last - first == 1 and first > 0:
            return SPACED[(start + first * stride) % n]  # the usual case, once for every token of every stream
        return "".join([SPACED[(start + k * stride) % n] for k in range(first, last)])[first == 0 :]

    return text


def pieces(whole: str) -> tuple[Text, int]:
    """A given text by tokens, and their number."""
    parts = PIECE.findall(whole)
    return (lambda first, last: "".join(parts[first:last])), len(parts)


def drawn_length(number: int, mean: float) -> int:
    """A length of geometric distribution with this mean, tokens; the same for the same number."""
    if mean <= 1.0:
        return 1
    u = (zlib.crc32(number.to_bytes(8, "little")) + 0.5) / 2**32
    return 1 + int(log(u) / log(1.0 - 1.0 / mean))


def arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that fit the parameters of a tool, as its JSON schema declares them."""
    declared = schema.get("properties")
    properties = declared if isinstance(declared, Mapping) else {}
    return {name: example(value if isinstance(value, Mapping) else {}) for name, value in properties.items()}


def example(schema: Mapping[str, Any]) -> Any:
    """A value that fits a JSON schema."""
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return arguments(schema)
    return {"integer": 1, "number": 1.5, "boolean": True, "array": [], "null": None}.get(
        str(schema.get("type")), "some"
    )
