"""Markup of the pages' tables, figures in words and bars; every text is escaped here and nowhere else.

Cells and rows have no end tags, which HTML lets one leave out: the tables travel every few seconds.
"""

from collections.abc import Sequence
from html import escape

from control.present.cells import Cell, Table


def table(shown: Table, name: str) -> str:
    """A table; `name` becomes its class, columns hide on narrow screens by it (page.css). It may go without heads."""
    head = "".join(_cell(cell, "th") for cell in shown.heads)
    above = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<table class="tbl tbl-{name}">{above}<tbody>{rows(shown)}</tbody></table>'


def rows(shown: Table) -> str:
    """The body rows alone."""
    return "".join("<tr>" + "".join(_cell(cell, "td") for cell in row) for row in shown.rows)


def grouped(groups: Sequence[tuple[str, str, Table]], name: str) -> str:
    """One table of several groups: (title, muted remark, rows); all have the heads of the first."""
    heads = groups[0][2].heads
    width = len(heads)
    body = "".join(_group(name, remark, rows(shown), width) for name, remark, shown in groups)
    head = "".join(_cell(cell, "th") for cell in heads)
    return f'<table class="tbl tbl-{name}"><thead><tr>{head}</tr></thead>{body}</table>'


def tiles(figures: Sequence[tuple[str, str, str, str]]) -> str:
    """The figures on top of a page: (label, value, line below, "", "late" or "amber")."""
    return '<div class="tiles">' + "".join(_tile(*figure) for figure in figures) + "</div>"


def stacked(lines: Sequence[tuple[Cell, Sequence[tuple[str, float]], Cell]], groups: Sequence[str]) -> str:
    """Bars of shares by group, one a line, with a legend of `groups` in order of colour."""
    colours = {group: k % 5 for k, group in enumerate(groups)}
    legend = "".join(f'<span><i class="c{k}"></i>{escape(group)}</span>' for group, k in colours.items())
    drawn = "".join(_line(name, parts, total, colours) for name, parts, total in lines)
    return f'<div class="legend">{legend}</div><div class="bars">{drawn}</div>'


def phases(names: Sequence[str]) -> str:
    """The legend of a timeline; the look of each phase is in tables.css."""
    entries = "".join(
        f'<span><i class="phase-{escape(name.replace(" ", "-"))}"></i>{escape(name)}</span>' for name in names
    )
    return f'<div class="legend">{entries}</div>'


def progress(share: float | None) -> str:
    """A thin bar: `share` done in [0, 1]; None moves without an end in sight."""
    kind = "" if share is not None else " endless"
    width = 100 if share is None else round(100 * share)
    now = "" if share is None else f' aria-valuenow="{width}"'
    bar = f'<i style="width:{width}%"></i>'
    return f'<div class="progress{kind}" role="progressbar" aria-label="Progress"{now}>{bar}</div>'


def note(text: str, kind: str = "") -> str:
    """A line of small muted text."""
    return f'<p class="note {kind}">{escape(text)}</p>'


def state(text: str, kind: str) -> str:
    """What became of a command: `kind` is pending, applied, refused, conflict or none."""
    return f'<p class="state state-{kind}">{escape(text)}</p>'


def title(text: str, small: str = "") -> str:
    """A panel's title with a muted remark behind it."""
    remark = f" <small>{escape(small)}</small>" if small else ""
    return f'<h2 class="panel-title">{escape(text)}{remark}</h2>'


def _group(name: str, remark: str, body: str, width: int) -> str:
    head = f'<tr class="group"><th colspan="{width}">{escape(name)} <small>{escape(remark)}</small>'
    return f"<tbody>{head}{body}</tbody>"


def _tile(label: str, value: str, below: str, state: str) -> str:
    figure, _, unit = value.rpartition(" ") if value[-1:].isalpha() or value.endswith("%") else (value, "", "")
    shown = f"<b>{escape(figure)}</b> <span>{escape(unit)}</span>"
    kind = f' class="{state}"' if state else ""
    return f"<div{kind}><small>{escape(label)}</small><p>{shown}</p><small>{escape(below)}</small></div>"


def _line(name: Cell, parts: Sequence[tuple[str, float]], total: Cell, colours: dict[str, int]) -> str:
    spans = "".join(f'<i class="c{colours[g]}" style="width:{100 * share:.1f}%"></i>' for g, share in parts)
    return f'<code>{escape(name.text)}</code><div class="track">{spans}</div><b>{escape(total.text)}</b>'


def _cell(cell: Cell, tag: str) -> str:
    kind = "" if not cell.kind else f' class="{cell.kind}"' if " " in cell.kind else f" class={cell.kind}"
    hint = f' title="{escape(cell.hint)}"' if cell.hint else ""
    style = f' style="--heat:{cell.heat:.2f}"' if cell.heat is not None and abs(cell.heat) >= 0.01 else ""
    return f"<{tag}{kind}{hint}{style}>{_inside(cell)}"


def _inside(cell: Cell) -> str:
    if cell.workflow is not None:
        return f'<a href="workflows?workflow={cell.workflow}">{escape(cell.text)}</a>'
    if cell.conversation is not None:
        return f'<a href="conversations?conversation={cell.conversation}">{escape(cell.text)}</a>'
    if cell.decision is not None:
        return f'<a href="decisions?decision={cell.decision}">{escape(cell.text)}</a>'
    if cell.run is not None:
        return f'<a href="tuning?run={cell.run}">{escape(cell.text)}</a>'
    if cell.fork is not None:
        return f'<a href="whatif?fork={cell.fork}">{escape(cell.text)}</a>'
    if cell.page:
        return f'<a href="{escape(cell.page)}">{escape(cell.text)}</a>'
    if cell.bar is None:
        return escape(cell.text)
    side = "over" if cell.bar > 0 else "under"
    return f'<div class="axis"><i class="{side}" style="width:{50 * abs(cell.bar):.1f}%"></i></div>'
