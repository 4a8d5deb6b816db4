"""Shadow policies: choose some, and see what they would have made of the same arrivals."""

from typing import Any

import streamlit as st

from control.present import shadows
from pages._ui import edits, forks, tables
from pages._ui.look import look


def panel(snapshot: dict[str, Any]) -> None:
    """The choice, and the live table of what runs."""
    with st.container(key="split-shadows"):
        left, right = st.columns([1, 2.2], gap="medium")
    with left:
        _choice(snapshot)
    with right:
        _live()


@st.fragment
def _choice(snapshot: dict[str, Any]) -> None:
    now = shadows.running(snapshot)
    names = st.multiselect(
        "Policies", shadows.offered(snapshot), default=now, max_selections=shadows.MOST, key=f"shadows-{'-'.join(now)}",
        label_visibility="collapsed", placeholder=f"Up to {shadows.MOST} policies",
    )  # fmt: skip
    verb = "Run in the shadow" if names or not now else "Run none"
    unchanged = shadows.chosen(names, snapshot)
    if st.button(verb, key="shadow", disabled=unchanged):
        edits.submit("shadows", names)
        st.rerun()


@st.fragment(run_every=2)
def _live() -> None:
    """The figures; a change of what runs draws the choice anew."""
    snapshot = look().snapshot
    if snapshot is None:
        return
    now = shadows.running(snapshot)
    if st.session_state.setdefault("shadows_shown", now) != now:
        st.session_state["shadows_shown"] = now
        st.rerun()
    newest = forks.newest_command(("shadows",))
    if not now:
        waiting = newest is not None and newest["state"] == "pending"
        st.html(
            tables.note("… asked for" if waiting else "None runs. A shadow costs a little CPU and decides nothing.")
        )
        return
    with st.container(key="scroll-shadows"):
        st.html(tables.table(shadows.table(snapshot), "shadows"))
    st.html(tables.note(shadows.note(snapshot)))
