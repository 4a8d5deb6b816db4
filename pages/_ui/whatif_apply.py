"""Applying the setting in view: its commands and promise before the click, the guard after it."""

from html import escape

import streamlit as st

from control.present import whatif, whatif_apply
from pages._ui import edits, forks, tables
from pages._ui.look import look


def panel(run: forks.Row, index: int, watched: list[int]) -> None:
    """The promise of the setting, what would be sent, the button, what the guard found here and in `watched` forks."""
    _form(run, index)
    _guard(run["id"], [number for number in watched if number != run["id"]])


@st.fragment
def _form(run: forks.Row, index: int) -> None:
    found = whatif.setting_of(run, index)
    name = str(found["name"]) if found else "it"
    snapshot = look().snapshot
    reason = whatif_apply.blocked(run, index) or whatif_apply.elsewhere(run, snapshot)
    told = f"<b>{escape(name)}</b>: {escape(whatif_apply.promise(run, index))}" if found else "…"
    st.html(f'<p class="promise">{told}</p>')
    lines = whatif_apply.preview(run, index) or ["no command"]
    st.html('<ul class="commands">' + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>")
    for line in whatif_apply.warnings(run, index, snapshot) if not reason else ():
        st.html(tables.state(f"⚠ {line}", "conflict"))
    minutes = st.slider(
        "Watch for, simulated min", *whatif_apply.GUARD_MINUTES, value=whatif_apply.DEFAULT_GUARD, key="guard",
        format="%d min", disabled=bool(reason),
    )  # fmt: skip
    st.html(tables.note(reason or whatif_apply.guard_note(minutes), "guarded"))
    if st.button(f"Apply {name}", key="apply-fork", type="primary", disabled=bool(reason)):
        edits.submit("apply_whatif", {"run": run["id"], "setting": index, "guard_minutes": minutes})
        st.rerun()


@st.fragment(run_every=2)
def _guard(number: int, watched: list[int]) -> None:
    """What the guard of the fork in view found, and of another that is watched; a way to the undo of each command."""
    found = [forks.fork(k) for k in (number, *watched)]
    shown = [run for run in found if run is not None and whatif_apply.guard_of(run) is not None]
    for row in shown:
        kind, text = whatif_apply.guard_words(row)
        st.html(tables.state(text if row["id"] == number else f"Fork #{row['id']}: {text}", kind))
    if any(map(whatif_apply.watching, shown)) and st.button("Stop watching", key="end-guard"):
        edits.submit("end_guard")
        st.rerun()
    if shown and st.button("Undo in the audit", key="to-audit", type="tertiary"):
        st.switch_page("audit.py")
