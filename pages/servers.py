"""Servers: is each real server well, and does the model of it hold?"""

import streamlit as st

from control.present import servers
from pages._ui import frame, tables
from pages._ui.look import look


@st.fragment(run_every=2)
def totals() -> None:
    """The figures on top."""
    if seen := look().snapshot:
        st.html(tables.tiles(servers.summary(seen)))


@st.fragment(run_every=2)
def health() -> None:
    """One row a server."""
    if seen := look().snapshot:
        st.html(tables.table(servers.health(seen), "servers"))


@st.fragment(run_every=2)
def predictions() -> None:
    """Predicted against served."""
    if seen := look().snapshot:
        st.html(tables.table(servers.predictions(seen), "predictions"))


if opened := frame.opened("servers", "Servers", "Is every real server well, and does the model of it hold?"):
    snapshot = opened[0]
    if not servers.real(snapshot):
        with frame.panel("unconnected", "No real servers"):
            st.html(tables.note(servers.NONE, "empty"))
            st.code(servers.CONNECT, language=None, wrap_lines=True)
            st.html(tables.note(servers.GUIDE))
    else:
        st.html(tables.note(f"Requests come in at {snapshot['gateway_url']}/v1, as OpenAI's clients send them."))
        totals()
        with (
            frame.panel("health", "Health", "our books beside what each says of itself"),
            st.container(key="scroll-servers"),
        ):
            health()
        with (
            frame.panel("predictions", "Predicted and served", "medians over the newest calls"),
            st.container(key="scroll-predictions"),
        ):
            predictions()
