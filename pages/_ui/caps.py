"""The form that caps power: whom, how many watts, and what that would do, before anything is sent."""

from typing import Any

import streamlit as st

from control.present import caps
from control.present.wording import asked, outcome
from pages._ui import edits, frame, tables
from storage import commands

KIND = "power_cap"
KINDS = (KIND, "power_caps")
SHOWN = 20


@st.fragment
def form(rows: list[dict[str, Any]]) -> None:
    """Target, cap, predicted effect, Apply; `rows` are the engine's instances of the power report."""
    st.session_state["caps_shown"] = [row["cap_w"] for row in rows]
    with st.container(key="cap-target"):
        target = st.selectbox("Tier or instance", caps.targets(rows), key="cap_target")
    mine = caps.chosen(rows, target or caps.ALL)
    applied, limits = caps.in_force(mine), caps.bounds(mine)
    if limits is None:
        st.html(tables.note("These GPUs share no cap that all of them take: choose a tier or an instance.", "empty"))
        return
    start = applied if isinstance(applied, float) else limits.high_w
    with st.container(key="cap-watts"):
        watts = st.slider(
            "W per GPU", limits.low_w, limits.high_w, value=min(max(start, limits.low_w), limits.high_w), step=1.0,
            key=f"cap-{target}-{applied}", format="%.0f W",
        )  # fmt: skip
    cap_w = None if watts >= limits.high_w else watts
    st.html(tables.note(f"In force: {caps.cap_words(applied)}. At {limits.high_w:.0f} W, the TDP, there is no cap."))
    st.html(tables.table(caps.predicted(caps.effects(mine, cap_w)), "effect"))
    untouched = applied == (cap_w if cap_w is not None else "no cap")
    verb = "Apply" if untouched else f"Lift the cap of {target}" if cap_w is None else f"Cap {target} at {watts:.0f} W"
    sent = (KIND, {"tier": target, "cap_w": cap_w}, applied)
    if st.button(verb, key="apply-cap", type="primary", disabled=untouched, on_click=edits.submit, args=sent):
        st.rerun()


@st.fragment(run_every=1)
def state() -> None:
    """What became of the newest cap; the form is drawn anew once the caps in force are others."""
    detail = frame.detail()
    if detail is None:
        return
    if st.session_state.get("caps_shown") != [row["cap_w"] for row in detail["power"]["rows"]]:
        st.rerun()
    newest = next((r for r in frame.read(commands.recent, SHOWN) if r["kind"] in KINDS), None)
    kind, text = (
        (newest["state"], f"{outcome(newest)} ({asked(newest)})") if newest else ("none", "No cap asked for yet")
    )
    if problem := edits.problem():
        kind, text = "conflict", problem
    with st.container(key="cap-state"):
        st.html(tables.state(text, kind))
