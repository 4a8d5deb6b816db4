"""The form that says how long an idle conversation's KV is kept, and what a decoder must have free to take one."""

from typing import Any

import streamlit as st

from control.present.wording import asked, outcome, retention_words
from pages._ui import edits, frame, tables
from pages._ui.look import look
from storage import commands

KIND = "retention"
SHOWN = 20
NEEDS = {"observed": "what its context holds now", "oracle": "the most it will ever hold"}
#: Limits on offer, s; None keeps an idle context for good.
LIMITS_S: tuple[float | None, ...] = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, None)


@st.fragment
def form(applied: dict[str, Any]) -> None:
    """Need and idle limit, applied together; `applied` is what is in force."""
    st.session_state["retention_shown"] = applied
    limit_s, names = applied["idle_ttl_s"], list(NEEDS)
    limits = LIMITS_S if limit_s in LIMITS_S else (limit_s, *LIMITS_S)
    suffix = f"{applied['need']}-{limit_s}"
    with st.container(key="retention-need"):
        need = st.selectbox(
            "A decoder must have free", names, index=names.index(applied["need"]), key=f"need-{suffix}",
            format_func=NEEDS.__getitem__,
        )  # fmt: skip
    with st.container(key="retention-limit"):
        chosen = st.selectbox(
            "Keep an idle context", limits, index=limits.index(limit_s), key=f"limit-{suffix}",
            format_func=lambda s: "for good" if s is None else f"{s:g} s",
        )  # fmt: skip
    wanted = {"need": need, "idle_ttl_s": chosen}
    st.html(tables.note("A shorter limit frees KV sooner; a turn that comes later computes its history again."))
    sent = (KIND, wanted, {"retention": applied})
    if st.button("Apply", key="apply-retention", type="primary", disabled=wanted == applied, on_click=edits.submit,
                 args=sent):  # fmt: skip
        st.rerun()


@st.fragment(run_every=1)
def state() -> None:
    """What is in force and what became of the newest of these commands."""
    snapshot = look().snapshot
    if snapshot is None:
        return
    applied = snapshot.get("retention")
    if applied is None or st.session_state.get("retention_shown") != applied:
        st.rerun()
    rows = frame.read(commands.recent, SHOWN)
    newest = next((r for r in rows if r["kind"] in (KIND, "cancel")), None)
    kind, text = (
        (newest["state"], f"{outcome(newest)} ({asked(newest)})") if newest else ("none", "Nothing asked for yet")
    )
    if problem := edits.problem():
        kind, text = "conflict", problem
    with st.container(key="retention-state"):
        st.html(tables.note(f"In force: {retention_words(applied)}.") + tables.state(text, kind))
