"""The fork in view: from when it is, its lines, its table; drawn often only while the engine computes."""

import streamlit as st

from control.present import whatif, whatif_apply, whatif_picture
from control.present.live import Limits
from control.present.whatif_ask import alphas, spec
from pages._ui import forks, frame, tables
from pages._ui.changes import clock
from pages._ui.component import forecast
from pages._ui.look import look

#: How often (s) the store is looked at while the first curve of a fork is awaited, the others, and none.
FIRST_S, FAST_S, SLOW_S = 0.1, 0.5, 2.0
NEWS = "whatif_signature"


def board() -> forks.View:
    """Draw the fork in view; what is in view, for the panels beside it."""
    run, _ = forks.current()
    st.session_state[NEWS] = forks.signature(run)
    busy = forks.on_its_way(run)
    is_first = busy and not (whatif.computing(run) and run is not None and whatif.settings_of(run))
    st.fragment(run_every=FIRST_S if is_first else FAST_S if busy else None)(_fork)()
    if not busy:
        _watch()
    return forks.View(run, forks.picked(run), busy)


def _fork() -> None:
    """The panels of the fork; drawn anew alone while the engine computes or another setting is picked."""
    run, missing = forks.current()
    with frame.panel("forecast", "Forecast", "P95, SLO debt, queue and power of each setting"):
        if run is None:
            _nothing(missing)
        else:
            _head(run)
            if whatif.possible(run) or whatif.computing(run):
                drawn = whatif_picture.picture(run, forks.picked(run), Limits().debt_s)
                if found := forecast(drawn):
                    st.session_state["whatif_picked"] = found
    if run is not None and whatif.settings_of(run):
        with frame.panel("settings", "Settings", "means over the seeds; a click selects"):
            st.html(tables.note(whatif.verdict(run), "verdict"))
            with st.container(key="scroll-settings"):
                st.html(tables.table(whatif.table(run), "settings"))
    if forks.signature(run) != st.session_state.get(NEWS):
        st.rerun()


def _head(run: forks.Row) -> None:
    """From when the fork is, how far it is, and why it ended where it failed."""
    result = whatif.result_of(run)
    took = whatif.took(run)
    facts = f"#{run['id']}: {whatif.about(run, clock(run['created_at']))}" + (f"; {took}" if took else "")
    st.html(tables.note(facts))
    if result.get("state") == "failed":
        st.html(tables.state(f"✕ The fork failed: {result.get('reason') or 'no reason was given'}", "refused"))
    on_its_way = forks.on_its_way(run)
    if not on_its_way and (elsewhere := whatif_apply.elsewhere(run, look().snapshot)):
        st.html(tables.state(elsewhere, "pending"))
    share = result.get("progress") if whatif.computing(run) else None
    st.html(tables.progress(share) if on_its_way else '<div class="progress idle"></div>')


def _nothing(missing: str) -> None:
    """Before the first fork: what one does, and a way to make one."""
    st.html(tables.note(missing or whatif_apply.EMPTY, "empty"))
    if missing:
        return
    if forks.on_its_way(None):
        st.html(tables.progress(None))
    elif st.button("Sweep α", key="first-fork", type="primary", on_click=forks.ask, args=(spec(alphas()),)):
        st.rerun()
    forecast(None)


@st.fragment(run_every=SLOW_S)
def _watch() -> None:
    """Draw the page anew once another fork, or news of the guard, is there."""
    run, _ = forks.current()
    if forks.signature(run) != st.session_state.get(NEWS):
        st.rerun()
