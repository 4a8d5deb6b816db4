"""Workflows: which one is late, and why."""

from typing import Any

import streamlit as st

from control.present import workflows
from pages._ui import filters, frame, more, tables
from pages._ui.look import look
from pages._ui.story import selected
from storage import finders

FIELDS = ("tenant", "kind", "stage", "status")


def choices(detail: dict[str, Any] | None, stored: dict[str, list[str]]) -> filters.Choices:
    """The values of each filter that the engine's report and the store hold."""
    return lambda field: workflows.choices(detail, stored, field)


def chosen() -> workflows.Filter:
    """The filters and the search, all of them in the URL."""
    stored = frame.read(finders.workflow_values)
    with filters.row():
        text = st.text_input("Number", key="search", bind="query-params", width=150, placeholder="e.g. 12") or ""
        tenant, kind, stage, status = filters.boxes(FIELDS, choices(frame.detail(), stored))
        late = more.switch("late", "Late only")
    number = workflows.searched(text)
    if number is None:
        st.html(tables.note(workflows.no_number(text), "problem"))
    return workflows.Filter(tenant, kind, stage, status, late, number or "")


@st.fragment(run_every=2)
def totals() -> None:
    """The figures on top; a new tenant, kind or stage draws the filters anew."""
    detail, snapshot = frame.detail(), look().snapshot
    if detail is None or snapshot is None:
        st.html(frame.waiting("its workflows"))
        return
    if filters.is_new(FIELDS, choices(detail, {})):
        st.rerun()
    st.html(frame.age_note(detail) + tables.tiles(workflows.summary(detail, snapshot["fleet"])))


@st.fragment(run_every=2)
def listing(wanted: workflows.Filter, limit: int) -> None:
    """Active workflows, then those that ended."""
    detail, snapshot = frame.detail(), look().snapshot
    if detail is None or snapshot is None:
        return
    going, ended, count = workflows.active(detail, wanted), list[finders.Row](), 0
    if workflows.asks_ended(wanted):
        tenant, kind, state = (more.closed(choice) for choice in (wanted.tenant, wanted.kind, wanted.status))
        asked = finders.Workflows(tenant, kind, state, wanted.number, wanted.late)
        ended, count = frame.read(finders.ended, asked, limit)
        gone = {row["id"] for row in ended}  # read after the detail: some may have ended since
        going = [row for row in going if row["id"] not in gone]
    shown = workflows.table(going, ended, detail["ledger"]["causes"], wanted, limit)
    if not shown.rows:
        st.html(tables.note(workflows.nobody(wanted), "empty"))
        return
    words = workflows.extent(len(shown.rows), len(going), count, detail, snapshot["fleet"])
    st.html(tables.note(words) + tables.table(shown, "listed"))
    more.button(len(shown.rows), len(going) + count, workflows.PAGE, workflows.MOST)


if seen := frame.opened("workflows", "Workflows", "Which one is late, and why?"):
    if seen[1].workflow is not None:
        st.query_params["workflow"] = str(seen[1].workflow)
    if seen[1].decision is not None:
        st.switch_page("decisions.py", query_params={"decision": str(seen[1].decision)})
    totals()
    wanted = chosen()
    if asked := st.query_params.get("workflow"):
        selected(asked)
    remark = "furthest past their deadline first: active ones, then those that ended"
    with frame.panel("listed", "Workflows", remark), st.container(key="scroll-listed"):
        listing(wanted, more.rows(workflows.PAGE, workflows.MOST))
