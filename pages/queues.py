"""The queues: who waits on which instance, and who is next."""

from typing import Any

import streamlit as st

from control.present import queues
from pages._ui import frame, tables

FIELDS = ("instance", "tenant", "stage")


def known(detail: dict[str, Any] | None, field: str) -> list[str]:
    """All values of a filter this session has seen, so that a choice stays while its calls come and go."""
    seen: list[str] = st.session_state.setdefault(f"known_{field}", [queues.ALL])
    fresh = queues.choices(detail, field) if detail else []
    asked = st.query_params.get(field, queues.ALL)
    values = [*seen, *(v for v in dict.fromkeys([*fresh, asked]) if v not in seen)]
    st.session_state[f"known_{field}"] = values
    return values


def filters(detail: dict[str, Any] | None) -> queues.Filter:
    """The three filters, kept in the URL."""
    chosen = []
    with st.container(key="filters", horizontal=True, gap="small"):
        for field in FIELDS:
            options = known(detail, field)
            chosen.append(st.selectbox(field.capitalize(), options, key=field, bind="query-params", width=190))
    return queues.Filter(*(c or queues.ALL for c in chosen))


@st.fragment(run_every=3)
def totals(wanted: queues.Filter) -> None:
    """The figures on top; a new tenant or stage draws the filters anew."""
    detail = frame.detail()
    if detail is None:
        st.html(frame.waiting("its queues"))
        return
    if any(len(known(None, f)) != len(known(detail, f)) for f in FIELDS):
        st.rerun()
    st.html(frame.age_note(detail) + tables.tiles(queues.summary(queues.queues_of(detail, wanted), wanted)))


@st.fragment(run_every=5)
def bars(wanted: queues.Filter) -> None:
    """Length of each instance's queue by tenant."""
    if detail := frame.detail():
        shown = queues.queues_of(detail, queues.Filter(instance=wanted.instance))
        tenants = [t for t in known(detail, "tenant") if t != queues.ALL]
        st.html(tables.stacked(queues.overview(shown, tenants), tenants))


@st.fragment(run_every=4)
def calls(wanted: queues.Filter) -> None:
    """The waiting calls of each instance in the order they will be served."""
    detail = frame.detail()
    if detail is None:
        return
    shown = queues.queues_of(detail, wanted)
    busy = [q for q in shown if q.calls]
    groups = [(q, queues.table(q, len(busy))) for q in busy]
    if not groups:
        st.html(tables.note(queues.nobody(wanted, sum(q["total"] for q in detail["queues"])), "empty"))
        return
    parts = [(q.instance, queues.extent(q, len(rows.rows), wanted), rows) for q, rows in groups]
    idle = len(shown) - len(busy)
    quiet = tables.note(f"No such call waits on {idle} other instances.") if idle and len(shown) > 1 else ""
    st.html(tables.grouped(parts, "queue") + quiet)


if seen := frame.opened("queues", "Queues", "Who waits, and who is next?"):
    if seen[1].workflow is not None:
        st.switch_page("debt.py", query_params={"workflow": str(seen[1].workflow)})
    wanted = filters(frame.detail())
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
