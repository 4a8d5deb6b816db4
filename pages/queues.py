"""The queues: who waits on which instance, and who is next."""

from typing import Any

import streamlit as st

from control.present import queues
from pages._ui import filters, frame, tables

FIELDS = ("instance", "tenant", "stage")


def choices(detail: dict[str, Any] | None) -> filters.Choices:
    """The values of each filter that the engine's report holds."""
    return lambda field: queues.choices(detail, field) if detail else ()


@st.fragment(run_every=3)
def totals(wanted: queues.Filter) -> None:
    """The figures on top; a new tenant or stage draws the filters anew."""
    detail = frame.detail()
    if detail is None:
        st.html(frame.waiting("its queues"))
        return
    if filters.is_new(FIELDS, choices(detail)):
        st.rerun()
    st.html(frame.age_note(detail) + tables.tiles(queues.summary(queues.queues_of(detail, wanted), wanted)))


@st.fragment(run_every=3)
def bars(wanted: queues.Filter) -> None:
    """Length of each instance's queue by tenant."""
    if detail := frame.detail():
        shown = queues.queues_of(detail, queues.Filter(instance=wanted.instance))
        tenants = filters.met("tenant", queues.tenants(detail), frame.run_begun())  # a colour stays whoever waits now
        st.html(tables.stacked(queues.overview(shown, tenants), tenants) + frame.remark(queues.left_out(shown)))


@st.fragment(run_every=3)
def calls(wanted: queues.Filter) -> None:
    """The waiting calls of each instance in the order they will be served."""
    detail = frame.detail()
    if detail is None:
        return
    shown = queues.queues_of(detail, wanted)
    busy = queues.busiest(shown)
    groups = [(q, queues.table(q, len(busy))) for q in busy]
    if not groups:
        st.html(tables.note(queues.nobody(wanted, sum(q["total"] for q in detail["queues"])), "empty"))
        return
    parts = [(q.instance, queues.extent(q, len(rows.rows), wanted), rows) for q, rows in groups]
    st.html(tables.grouped(parts, "queue") + frame.remark(queues.quiet(shown, len(busy))))


if seen := frame.opened("queues", "Queues", "Who waits, and who is next?"):
    if seen[1].workflow is not None:
        st.switch_page("workflows.py", query_params={"workflow": str(seen[1].workflow)})
    wanted = queues.Filter(*filters.chosen(FIELDS, choices(frame.detail())))
    totals(wanted)
    with st.container(key="split-queues"):
        left, right = st.columns([1, 3.2], gap="small")
    with left, frame.panel("lengths", "Queue length", "calls, by tenant"), st.container(key="scroll-lengths"):
        bars(wanted)
    with (
        right,
        frame.panel("calls", "Waiting calls", "in the order they will be served"),
        st.container(key="scroll-queue"),
    ):
        calls(wanted)
