"""Settings: what this engine is running with, and how that is changed."""

import streamlit as st

from control.present import settings
from control.present.live import Limits
from pages._ui import changes, frame, tables
from pages._ui.look import look
from pages._ui.source import store
from storage import facts, lease


@st.fragment(run_every=3)
def engine() -> None:
    """The process and what it was started with."""
    if snapshot := look().snapshot:
        shown = settings.engine(snapshot, frame.read(lease.holder), changes.moment)
        st.html(frame.age_note(snapshot) + tables.table(shown, "facts"))


@st.fragment(run_every=3)
def fleet() -> None:
    """The instances, and what is counted but not stored."""
    if snapshot := look().snapshot:
        st.html(tables.table(settings.fleet(snapshot), "fleet"))


@st.fragment(run_every=30)
def stored() -> None:
    """The store, how large it is and how long its rows are kept."""
    shown = tables.table(settings.store(frame.read(facts.kept)), "stored")
    place = f"{store().url}, {settings.size(frame.read(facts.size_bytes))}"
    missing = settings.unstored((look().snapshot or {}).get("unstored") or {})
    st.html(tables.note(place) + shown + tables.note(missing))


def starts() -> None:
    """The commands that change what only a start changes."""
    snapshot = look().snapshot or {}
    st.html(tables.note("Stop the running one first. --fresh starts from nothing instead of the stored state."))
    for name, command in settings.commands(snapshot, settings.file_of(store().url)):
        st.html(tables.note(name))
        st.code(command, language=None, wrap_lines=True)


def mine() -> None:
    """What a viewer sets for himself."""
    links = " · ".join(
        f'<a href="./?window={range_s}">{settings.range_words(range_s)}</a>' for range_s in settings.RANGES_S
    )
    st.html(
        f'<p class="note">Time range of the charts: {links}</p>'
        + tables.note("It is part of the address, so a bookmark keeps it. Everything else is the same for all viewers.")
    )


if opened := frame.opened("settings", "Settings", "What is this engine running with?"):
    with st.container(key="split-settings"):
        left, right = st.columns([1, 1.6], gap="small")
    with left:
        with frame.panel("engine", "Engine"):
            engine()
        with frame.panel("starts", "Changed at a start", "edit the value, then run it"):
            starts()
        with frame.panel("mine", "Yours alone"):
            mine()
    with right:
        with frame.panel("fleet", "Fleet"), st.container(key="scroll-fleet"):
            fleet()
        with frame.panel("stored", "Store"):
            stored()
        with frame.panel("thresholds", "When a figure turns amber or red"):
            st.html(tables.table(settings.thresholds(Limits()), "thresholds") + tables.note(settings.faces()))
