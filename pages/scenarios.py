"""Scenarios: one click starts one from a seed, and a story of three steps says what to look at."""

from pathlib import Path

import streamlit as st

from control.present import scenarios
from pages._ui import frame, tables
from pages._ui import scenarios as parts

SHEET = Path(__file__).parent / "_ui" / "static" / "scenarios.css"

if seen := frame.opened("scenarios", "Scenarios", "What would you like to see?"):
    st.html(SHEET)
    snapshot = seen[0]
    now, why_not = scenarios.running(snapshot), scenarios.why_not(snapshot)
    with st.container(key="split-scenarios"):
        left, right = st.columns([1, 2], gap="small")
    with left:
        if now is not None:
            with frame.panel("told", now.title, f"seed {snapshot['seed']}"):
                parts.story(now.name, snapshot["seed"])
        with frame.panel("scenario-start", "Start"):
            seed = parts.seed_of(snapshot)
            parts.state()
            if why_not:
                st.html(tables.note(why_not, "problem"))
    with right:
        parts.offered(scenarios.cards(now), seed, why_not)
