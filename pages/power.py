"""Power: watts against caps, joules by what they were drawn for, and a cap with its predicted effect."""

import streamlit as st

from control.present import power
from pages._ui import caps, changes, frame, tables
from pages._ui.component import live


@st.fragment(run_every=3)
def totals() -> None:
    """The figures on top."""
    if (detail := frame.detail()) is None:
        st.html(frame.waiting("its power"))
        return
    st.html(frame.age_note(detail) + tables.tiles(power.summary(detail["power"])))


@st.fragment(run_every=3)
def meters() -> None:
    """Energy by tier, then by instance."""
    if detail := frame.detail():
        shown = detail["power"]
        parts = (power.tiers(shown), "tiers"), (power.instances(shown), "meters")
        first, second = (tables.table(*part) for part in parts)
        st.html(first + frame.remark(power.left_out(shown)) + second)


if frame.opened("power", "Power", "Where do the joules go, and what would a cap cost?"):
    totals()
    with st.container(key="fleet-columns"):
        board, control = st.columns([3.3, 1], gap="small")
    with board:
        live("watts")
        with frame.panel("meters", "Energy", "drawn so far"), st.container(key="scroll-meters"):
            meters()
    with control:
        with frame.panel("cap", "Power cap"):
            if detail := frame.detail():
                caps.form(detail["power"]["rows"])
                caps.state()
            else:
                st.html(frame.waiting("its caps"))
        with frame.panel("changes", "Recent changes"):
            changes.recent_changes(caps.KINDS, "Power caps only.")
