"""Audit: who changed what, when, and from where."""

import streamlit as st

from control.present import audit
from control.present.cells import Table
from control.present.changes import undo_of
from pages._ui import changes, edits, filters, frame, more, tables
from storage import finders

FIELDS = audit.Filter._fields


def choices() -> filters.Choices:
    """The values of each filter that the store holds."""
    stored = frame.read(finders.change_values)
    return lambda field: audit.choices(stored, field)


def found(wanted: audit.Filter, limit: int) -> tuple[list[audit.Entry], int]:
    """The newest entries that fit, and how many do."""
    asked = finders.Changes(*(more.closed(choice) for choice in wanted))
    told, own, total = list[finders.Row](), list[finders.Row](), 0
    if audit.asks_commands(wanted):
        told, total = frame.read(finders.commands, asked, limit)
    if audit.asks_events(wanted):
        own, count = frame.read(finders.own_events, asked, limit)
        total += count
    judged = frame.read(finders.judged, changes.JUDGED)
    caused = frame.read(finders.caused, [row["id"] for row in told])
    return audit.entries(told, caused, own, undo_of(*judged), limit), total


def lines(run: list[audit.Entry]) -> None:
    """Entries that are drawn at once; one that can be undone has its button beside it."""
    shown = tables.table(Table([], [audit.row(entry, changes.times) for entry in run]), "audit")
    if run[0].change.undo is None:
        st.html(shown)
        return
    with st.container(key=f"audit-{run[0].change.id}"):
        st.html(shown)
        changes.undo_button(run[0].change)


@st.fragment(run_every=3)
def listing(wanted: audit.Filter, limit: int) -> None:
    """The entries, newest first; a new kind or author draws the filters anew."""
    if filters.is_new(FIELDS, choices()):
        st.rerun()
    listed, total = found(wanted, limit)
    if problem := edits.problem():
        st.html(tables.state(problem, "conflict"))
    if not listed:
        st.html(tables.note(audit.nobody(wanted), "empty"))
        return
    st.html(tables.note(audit.extent(len(listed), total)))
    with st.container(key="audit-heads"):
        st.html(tables.table(audit.heads(), "audit"))
    for run in audit.segments(listed):
        lines(run)
    more.button(len(listed), total, audit.PAGE, audit.MOST)


if frame.opened("audit", "Audit", "Who changed what, when, and from where?"):
    wanted = audit.Filter(*filters.chosen(FIELDS, choices()))
    with frame.panel("audit", "Commands and events", "newest first"), st.container(key="scroll-audit", gap=None):
        listing(wanted, more.rows(audit.PAGE, audit.MOST))
