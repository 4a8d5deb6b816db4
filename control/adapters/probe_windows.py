"""From times of streamed pieces to durations of iterations. Pieces are not tokens: usage says how many there were."""

from bisect import bisect_left, bisect_right
from statistics import median
from typing import NamedTuple

from control.adapters.completions import Answer

LEAST_PIECES = 4  # of a stream inside a window


class Window(NamedTuple):
    """Time of one iteration, ms, and the KV tokens its decoding sequences held."""

    ms: float
    kv: float


def decode_window(answers: list[Answer]) -> Window | None:
    """The mean iteration while all streams decode; None where they hardly do so together."""
    if not all(answer.pieces_s for answer in answers):
        return None
    begin_s = max(answer.pieces_s[0] for answer in answers)
    end_s = min(answer.pieces_s[-1] for answer in answers)
    steps = [step for answer in answers if (step := step_ms(answer, begin_s, end_s)) is not None]
    if len(steps) < len(answers):
        return None
    middle_s = 0.5 * (begin_s + end_s)
    return Window(median(steps), sum(held(answer, middle_s) for answer in answers))


def step_ms(answer: Answer, begin_s: float, end_s: float) -> float | None:
    """Time per token of a stream between two moments, ms."""
    first, last = bisect_left(answer.pieces_s, begin_s), bisect_right(answer.pieces_s, end_s) - 1
    if last - first < LEAST_PIECES:
        return None
    tokens = (last - first) * tokens_a_piece(answer)
    return 1e3 * (answer.pieces_s[last] - answer.pieces_s[first]) / tokens


def tokens_a_piece(answer: Answer) -> float:
    """Tokens that a piece of the stream brought on average, at least 1."""
    return max(1.0, answer.tokens / len(answer.pieces_s))


def held(answer: Answer, at_s: float) -> float:
    """KV tokens of a stream at a moment."""
    return answer.prompt_tokens + bisect_right(answer.pieces_s, at_s) * tokens_a_piece(answer)


def longest_gap(answers: list[Answer], beside: Answer) -> Window | None:
    """The iteration that prefilled `beside`: the longest gap of the streams from its sending to its first token.

    None where a stream had ended before.
    """
    end_s = beside.pieces_s[0] if beside.pieces_s else beside.ended_s
    gaps = [gap for answer in answers if (gap := gap_ms(answer, beside.sent_s, end_s)) is not None]
    if len(gaps) < len(answers):
        return None
    return Window(median(gaps), sum(held(answer, beside.sent_s) for answer in answers))


def gap_ms(answer: Answer, begin_s: float, end_s: float) -> float | None:
    """The longest gap of a stream that overlaps the time from `begin_s` to `end_s`, ms."""
    times = answer.pieces_s
    first, last = bisect_right(times, begin_s), bisect_left(times, end_s)
    if first == 0 or last >= len(times) - 1:
        return None
    return 1e3 * max(times[k] - times[k - 1] for k in range(first, last + 1))
