"""Prompts, answers and caches count tokens alike, and the same question has the same answer."""

from hypothesis import given
from hypothesis import strategies as st

from control.adapters.mock.contexts import Contexts
from control.adapters.mock.text import count_tokens, digest, drawn_length, pieces, words


@given(st.integers(0, 2**32 - 1), st.integers(1, 400))
def test_an_answer_of_n_tokens_counts_n_tokens_however_it_is_cut(number: int, n: int) -> None:
    text = words(number)
    assert count_tokens(text(0, n)) == n
    assert "".join(text(k, k + 1) for k in range(n)) == text(0, n)
    assert text(0, n // 2) + text(n // 2, n) == text(0, n)


@given(st.text(st.characters(codec="ascii")).filter(lambda text: text == text.strip() != ""))
def test_pieces_of_a_text_make_it_up(whole: str) -> None:
    text, n = pieces(whole)
    assert text(0, n) == whole
    assert n == count_tokens(whole)


def test_english_has_about_four_characters_a_token() -> None:
    text = "The gateway keeps every conversation on the server that already holds its context in memory. " * 20
    assert 3.0 < len(text) / count_tokens(text) < 5.0


def test_lengths_are_drawn_with_the_mean_that_was_asked_for() -> None:
    lengths = [drawn_length(digest(f"question {k}", 0), 100.0) for k in range(5000)]
    assert min(lengths) >= 1
    assert 95 < sum(lengths) / len(lengths) < 105


def test_a_conversation_is_known_by_its_beginning_or_by_its_name() -> None:
    contexts = Contexts(10_000)
    first = contexts.find(["rules", " ask"], 1, None, "")
    contexts.note(first, " told")
    second = contexts.find(["rules", " ask", " told", " again"], 1, None, "")
    assert (second.stream, second.history_tokens) == (first.stream, 3)
    stranger = contexts.find(["rules", " other"], 1, None, "")
    assert stranger.stream != first.stream
    assert stranger.shared_key == first.shared_key
    assert contexts.find(["rules", " ask"], 1, None, "salt").stream != first.stream
    contexts.note(contexts.find(["hello"], 0, "mine", ""), " dear")
    assert contexts.find(["hello", " dear", " friend"], 0, "mine", "").history_tokens == 2


def test_the_oldest_contexts_are_forgotten_when_the_cache_is_full() -> None:
    contexts = Contexts(100)
    for k in range(5):
        contexts.note(contexts.find([f"{k} " * 40], 0, f"s{k}", ""), "")
    assert contexts.tokens <= 100
    assert contexts.find(["0 " * 40], 0, "s0", "").history_tokens == 0
    assert contexts.find(["4 " * 40], 0, "s4", "").history_tokens == 40
