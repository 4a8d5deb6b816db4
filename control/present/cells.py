"""Cells of the pages' tables: text with a kind that names its look; no markup, no colours."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from control.present.units import MINUS, NOTHING, number, quantity


class Cell(NamedTuple):
    """One cell: text, look, link (to a workflow, stored run, conversation, fork, placement, page), a hint, a bar.

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
    page: str = ""


class Table(NamedTuple):
    """Column heads and rows of equal length; a head's kind goes for its column."""

    heads: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]


def duration(value: float | None, kind: str = "num") -> Cell:
    """A time in s."""
    return Cell(NOTHING if value is None else in_seconds(value), kind)


def signed(value: float) -> str:
    """A time in s, always with its sign, a true minus where it is below 0."""
    return f"+{in_seconds(value)}" if tidy(value) > 0 else in_seconds(value)


def in_seconds(value: float) -> str:
    """A time as columns show it: always in s, so that one column has one unit; digits as `tidy` leaves them."""
    shown = tidy(value) if abs(value) < 1000 else round(value)
    size = abs(shown)
    digits = 0 if shown == int(shown) else 3 if size < 1 else 2 if size < 10 else 1
    return f"{shown:,.{digits}f} s".replace("-", MINUS)


def tidy(value: float) -> float:
    """`value` in s without digits nobody reads: to 1 ms below 1 s, to 10 ms below 10 s, to 100 ms above; never −0."""
    return round(value, 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1) + 0.0


def instance(row: Mapping[str, Any]) -> Cell:
    """An instance's name as a link to its queue, with sign and word where it is down or drains.

    Reports of earlier versions do not tell the state.
    """
    name, state = str(row["instance"]), row.get("state", "up")
    sign, kind = {"down": ("✕", "id late"), "draining": ("▲", "id amber")}.get(state, ("", "id"))
    return Cell(f"{sign} {name} {state}" if sign else name, kind, page=filtered("queues", "instance", name))


def filtered(page: str, field: str, value: str) -> str:
    """The address of `page` with one filter set."""
    return f"{page}?{field}={quote(value)}"


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
    """A share in [0, 1] as % to a tenth; a share that is not 0 never reads as 0, nor one that is not 1 as 100."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if 0 < value < 0.0005:
        return "<0.1 %"
    if 0.9995 <= value < 1:
        return ">99.9 %"
    return f"{100 * value:.{0 if value in (0, 1) else 1}f} %".replace("-", MINUS)


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
