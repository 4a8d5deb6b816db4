"""Sections of a Markdown document, and the text of its tables, figures and lists."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

DASH = "–"  # what was not measured


class Section(NamedTuple):
    """A heading and what stands under it."""

    level: int  # 1 is the document's title
    title: str
    blocks: tuple[str, ...] = ()  # paragraphs, lists and tables

    def text(self) -> str:
        """The section as Markdown, blocks apart by an empty line."""
        return "\n\n".join([self.heading, *self.blocks])

    @property
    def heading(self) -> str:
        """The line that opens the section."""
        return f"{'#' * self.level} {self.title}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1) -> str:
    """A table: the first `names` columns read from the left, the figures after them stand at the right."""
    rules = ["---" if k < names else "---:" for k in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rules, *rows])


def bullets(lines: Iterable[str]) -> str:
    """A list, one line an entry."""
    return "\n".join(f"- {line}" for line in lines)


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"; "none" of nothing."""
    if len(names) < 2:
        return names[0] if names else "none"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def plural(n: int, noun: str) -> str:
    """A count and its noun: "1 point", "2 points"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def fixed(value: float | None, digits: int) -> str:
    """A figure with `digits` decimals; a dash for what was not measured."""
    return DASH if value is None else f"{value:,.{digits}f}"


def share(value: float | None, digits: int = 1) -> str:
    """A share (0 to 1) in percent, without the sign."""
    return fixed(None if value is None else 100.0 * value, digits)


def signed_percent(value: float | None, digits: int = 2) -> str:
    """A relative difference in percent with its sign; one that rounds to zero has none."""
    if value is None:
        return DASH
    rounded = round(100.0 * value, digits)
    return f"{rounded:+.{digits}f} %" if rounded else f"{0.0:.{digits}f} %"


def times(value: float | None) -> str:
    """A gain as a factor."""
    return DASH if value is None else f"{value:.2f}x"


def span(values: Sequence[float]) -> str:
    """The range of some gains, as factors, and their median; a dash of none."""
    if not values:
        return DASH
    ordered = sorted(values)
    middle = len(ordered) // 2
    median = (ordered[middle] + ordered[~middle]) / 2.0
    return f"{ordered[0]:.2f}–{ordered[-1]:.2f}x (median {median:.2f}x)"
