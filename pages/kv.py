"""KV: what fills each cache, how many more conversations fit, and who holds most."""

import streamlit as st

from control.present import occupancy
from control.present.groups import types_of
from pages._ui import frame, tables
from pages._ui.component import multiples


@st.fragment(run_every=3)
def totals() -> None:
    """The figures on top."""
    if (detail := frame.detail()) is None:
        st.html(frame.waiting("its KV caches"))
        return
    st.html(frame.age_note(detail) + tables.tiles(occupancy.summary(detail["kv"])))


@st.fragment(run_every=3)
def instances() -> None:
    """One row an instance."""
    if detail := frame.detail():
        shown = detail["kv"]
        st.html(frame.remark(occupancy.left_out(shown)) + tables.table(occupancy.instances(shown), "caches"))


@st.fragment(run_every=3)
def holders() -> None:
    """The conversations that hold most."""
    if detail := frame.detail():
        empty = tables.note("No conversation holds KV now.", "empty")
        shown = occupancy.holders(detail["kv"])
        st.html(tables.table(shown, "holders") if shown.rows else empty)


if seen := frame.opened("kv", "KV", "What fills the caches, and does more fit?"):
    if seen[1].conversation is not None:
        st.switch_page("conversations.py", query_params={"conversation": str(seen[1].conversation)})
    totals()
    rows = seen[0]["instances"]
    multiples(len(types_of(rows) or rows))
    with st.container(key="split-kv"):
        left, right = st.columns([2.4, 1], gap="small")
    with left, frame.panel("caches", "Instances", "share of each cache"), st.container(key="scroll-caches"):
        instances()
    with right, frame.panel("holders", "Who holds most"), st.container(key="scroll-holders"):
        holders()
