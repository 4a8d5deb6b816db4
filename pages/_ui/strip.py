"""The story of the running scenario in a line at the foot of the other pages, until it is told or closed."""

from pathlib import Path

import streamlit as st

from control.present import scenarios
from pages._ui import tables
from pages._ui.look import look

SHEET = Path(__file__).parent / "static" / "scenarios.css"


@st.fragment(run_every=5)
def strip(here: str) -> None:
    """The current step with a link to its page, unless that is `here`, the page in view (its file's name).

    A strip that was closed stays so for this run of the scenario.
    """
    snapshot = look().snapshot
    known = None if snapshot is None else scenarios.running(snapshot)
    if snapshot is None or known is None or snapshot["sim_s"] > known.length_s:
        return
    run = f"{known.name} {snapshot['seed']}"
    if st.session_state.get("strip_closed") == run:
        return
    now = known.story[known.step_at(snapshot["sim_s"])]
    st.html(SHEET)
    with st.container(key="story-strip", horizontal=True, gap="small"):
        st.html(tables.note(scenarios.strip(scenarios.story(known, snapshot["sim_s"]))))
        there = scenarios.PAGES[now.page]
        if now.page != here and st.button(f"Open {there}", key="strip-open", type="tertiary"):
            st.switch_page(f"{now.page}.py")
        st.button("Hide", key="strip-close", type="tertiary", on_click=_close, args=(run,))


def _close(run: str) -> None:
    st.session_state["strip_closed"] = run
