"""The tuner's controls: run it, choose what it may do, take its proposal, end the hold on a manual α."""

from typing import Any

import streamlit as st

from control.present import tuning
from control.present.wording import asked, outcome
from pages._ui import edits, frame, tables
from pages._ui.look import look
from storage import commands, runs

FIELD = "tuning_mode"
KINDS = ("tune", FIELD, "release_alpha", "alpha")
SHOWN = 20


def controls(snapshot: dict[str, Any]) -> None:
    """All controls; what they show is drawn anew by `_state` once it is no longer so."""
    detail = frame.detail()
    if detail is None:
        st.html(frame.waiting("its tuner"))
    else:
        now = detail["tuning"]
        st.session_state["tuner_shown"] = _shown(now, snapshot["alpha"])
        _mode(now["mode"])
        _run(now["running"])
        _proposal(now, snapshot["alpha"])
        _pin(now["pinned"], snapshot["alpha"])
    _state()


@st.fragment
def _mode(applied: str) -> None:
    value = edits.base(FIELD, applied)
    names = tuning.MODES
    st.segmented_control(
        "Runs by itself", list(names), default=value, required=True, format_func=names.__getitem__,
        key=edits.key(FIELD), on_change=edits.submit_draft, args=(FIELD,),
    )  # fmt: skip
    st.html(tables.note(tuning.MODE_NOTES[edits.draft(FIELD) or value]))


@st.fragment
def _run(running: bool) -> None:
    if st.button("Run tuning", key="tune", type="primary", disabled=running or _pending("tune")):
        edits.submit("tune")
        st.rerun()


@st.fragment
def _proposal(now: dict[str, Any], alpha: float) -> None:
    proposed = tuning.suggestion(now, alpha)
    if proposed is None:
        return
    run = tuning.run_of(now, frame.read(runs.recent, SHOWN, kind="tune", with_result=True))
    effect = f": {tuning.effect(run)}" if run else ""
    st.html(tables.note(f"Proposed α {alpha:.2f} → {proposed:.2f}{effect}", "proposal"))
    label, seen = f"Apply α {proposed:.2f}", ("alpha", proposed, alpha)  # expects the α the viewer saw
    if st.button(label, key="apply-proposal", disabled=_pending("alpha"), on_click=edits.submit, args=seen):
        st.rerun()


@st.fragment
def _pin(pinned: bool, alpha: float) -> None:
    if not pinned:
        return
    st.html(tables.note(f"Pinned: α {alpha:.2f} was set by hand and holds until it is released.", "pinned"))
    if st.button("Release α", key="release", disabled=_pending("release_alpha")):
        edits.submit("release_alpha")
        st.rerun()


@st.fragment(run_every=1)
def _state() -> None:
    """What the tuner does, its progress, and what became of the newest of these commands."""
    detail, snapshot = frame.detail(), look().snapshot
    if snapshot is None or detail is None:
        return
    now, rows = detail["tuning"], _rows()
    pending = any(r["state"] == "pending" and r["kind"] == FIELD for r in rows)
    if edits.follow(FIELD, now["mode"], pending) or st.session_state.get("tuner_shown") != _shown(
        now, snapshot["alpha"]
    ):
        st.rerun()
    bar = tables.progress(now["progress"]) if now["running"] else '<div class="progress idle"></div>'
    newest = next((r for r in rows if r["kind"] in KINDS), None)
    kind, text = (
        (newest["state"], f"{outcome(newest)} ({asked(newest)})") if newest else ("none", "Nothing asked for yet")
    )
    if problem := edits.problem():
        kind, text = "conflict", problem
    with st.container(key="tuner-state"):
        st.html(frame.age_note(detail) + tables.note(tuning.standing(now), "standing") + bar + tables.state(text, kind))


def _shown(now: dict[str, Any], alpha: float) -> tuple[object, ...]:
    """What the controls depend on: another value of any needs them drawn anew."""
    return (now["running"], now["pinned"], now["suggested_alpha"], alpha, *(_pending(k) for k in KINDS))


def _rows() -> list[dict[str, Any]]:
    return frame.read(commands.recent, SHOWN)


def _pending(kind: str) -> bool:
    return any(r["kind"] == kind and r["state"] == "pending" for r in _rows())
