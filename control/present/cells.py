"""Cells of the pages' tables: text with a kind that names its look; no markup, no colours."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from control.present.units import NOTHING, number, quantity, seconds


class Cell(NamedTuple):
    """One cell: text, look, what it links to (workflow, stored run, conversation, fork or placement), a hint, a bar.

    `kind` is "" or words of: num (right, tabular digits), id (monospaced), muted, late, amber, good.
    `bar` is a share in [-1, 1] drawn from the middle, or from the left where every bar of a column is positive.
    `heat` is a share in [-1, 1]: how strongly the ground is coloured, blue below 0 (time saved), red above.
    """

    text: str
    kind: str = ""
    workflow: int | None = None
    hint: str = ""
    bar: float | None = None
    heat: float | None = None
    run: int | None = None
    conversation: int | None = None
    fork: int | None = None
    decision: int | None = None


class Table(NamedTuple):
    """Column heads and rows of equal length; a head's kind goes for its column."""

    heads: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]


def duration(value: float | None, kind: str = "num") -> Cell:
    """A time in s with its unit."""
    return Cell(NOTHING if value is None else seconds(tidy(value)), kind)


def signed(value: float) -> str:
    """A time in s with its unit and always a sign, a true minus where it is below 0."""
    value = tidy(value)
    return f"+{seconds(value)}" if value > 0 else seconds(value)


def tidy(value: float) -> float:
    """`value` in s without digits nobody reads: to 1 ms below 1 s, to 10 ms below 10 s, to 100 ms above; never −0."""
    return round(value, 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1) + 0.0


def workflow(number_: int) -> Cell:
    """A workflow's number as a link to its timeline."""
    return Cell(f"#{number_}", "id", number_)


def conversation(number_: int) -> Cell:
    """A workflow's number as a link to its conversation."""
    return Cell(f"#{number_}", "id", conversation=number_)


def share(value: float | None, kind: str = "num") -> Cell:
    """A share in [0, 1] as %."""
    return Cell(percent(value), kind)


def percent(value: float | None) -> str:
    """A share in [0, 1] as % with three significant digits but for 0."""
    return measured(None if value is None else 100.0 * value, "%")


def amount(value: float | None, unit: str, kind: str = "num") -> Cell:
    """A measured quantity, see `measured`."""
    return Cell(measured(value, unit), kind)


def measured(value: float | None, unit: str) -> str:
    """A quantity with its unit, an SI prefix from 1,000 on, three significant digits but for 0."""
    if value is None or not math.isfinite(value):
        return NOTHING
    figure, _, rest = quantity(float(f"{value:.3g}"), unit if unit != "%" else "").partition(" ")
    if "." not in figure and len(figure) < 3 and value:
        figure = f"{figure}.{'0' * (3 - len(figure))}"
    return f"{figure} {'%' if unit == '%' else rest}".strip()


def count(value: float | None) -> Cell:
    """A whole number."""
    return Cell(number(value), "num")
