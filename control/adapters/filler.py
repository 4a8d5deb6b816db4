"""Prompts of a wanted length: words that mean nothing, the same for the same key, unlike for any other."""

import hashlib
from dataclasses import dataclass
from random import Random

SYLLABLES = tuple(first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou")
SHORT, LONG = 40, 400  # words of the two requests from which tokens a word are learned


@dataclass(frozen=True)
class Rate:
    """How the server's tokenizer counts our words."""

    tokens_a_word: float = 2.0
    overhead_tokens: float = 0.0  # of a request: what a chat template or a start mark adds

    def words(self, tokens: float) -> int:
        """Words that make about `tokens` tokens, without the overhead."""
        return max(0, round(tokens / self.tokens_a_word))


def learned(short_tokens: int, long_tokens: int) -> Rate:
    """The rate from the prompt tokens that the server counted for SHORT and for LONG words."""
    a_word = (long_tokens - short_tokens) / (LONG - SHORT)
    if a_word <= 0.0:
        return Rate()
    return Rate(a_word, max(0.0, short_tokens - SHORT * a_word))


def text(n: int, key: str) -> str:
    """`n` words that belong to `key`; fewer words of the same key are its beginning."""
    chance = Random(int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest()))
    return " ".join(word(chance) for _ in range(n))


def word(chance: Random) -> str:
    """One word of two syllables."""
    return chance.choice(SYLLABLES) + chance.choice(SYLLABLES)
