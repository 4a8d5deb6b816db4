"""Drafts of settings beside their applied values: what the viewer is changing, and what it was based on.

A draft follows the applied value until the viewer touches it; then its base stays, goes with the command as
the expected old value, and a change by somebody else meanwhile becomes visible.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

from control.errors import HeadwayError
from control.present.wording import order
from pages._ui.source import store
from storage import commands

#: The settings an operator edits, by command kind.
FIELDS = ("alpha", "policy", "speed", "load_scale")
AUTHOR = "dashboard"


def author() -> str:
    """Who writes: "dashboard", with the viewer's address behind it where it is another machine's."""
    address = st.context.ip_address
    return f"{AUTHOR} {address}" if isinstance(address, str) and address else AUTHOR


def key(field: str) -> str:
    """Widget key of a field; a new one after each reset, so that the widget takes its value anew."""
    return f"{field}-{st.session_state.setdefault(f'{field}_round', 0)}"


def base(field: str, applied: Any) -> Any:
    """The value a draft started from; the applied one at first."""
    return st.session_state.setdefault(f"{field}_base", applied)


def draft(field: str) -> Any:
    """The viewer's value, its base where nothing was touched."""
    return st.session_state.get(key(field), st.session_state.get(f"{field}_base"))


def own(field: str) -> Any:
    """The value this viewer submitted last and that has not settled yet, None without one."""
    return st.session_state.get(f"{field}_own")


def reset(field: str, applied: Any) -> None:
    """Forget the draft and show `applied`."""
    st.session_state[f"{field}_own"] = None
    st.session_state[f"{field}_base"] = applied
    st.session_state[f"{field}_round"] = st.session_state.get(f"{field}_round", 0) + 1


def follow(field: str, applied: Any, wanted: bool) -> bool:
    """Bring an untouched or settled draft to `applied`; True if its widget must be drawn again.

    `wanted`: the draft is still being edited or its command is pending, so it is kept.
    """
    started, current = base(field, applied), draft(field)
    if own(field) == applied and current != applied:
        st.session_state[f"{field}_base"] = started = applied  # our own command came through meanwhile
        st.session_state[f"{field}_own"] = None
    if current == applied:
        st.session_state[f"{field}_own"] = None
        st.session_state[f"{field}_base"] = applied
        return bool(started != applied)
    if current != started and wanted:
        return False
    reset(field, applied)
    return True


def submit(kind: str, value: Any = None, old: Any = None, undo_of: int | None = None) -> None:
    """Write one command row; the engine decides. What cannot be written is kept as `problem()`."""
    asked = order(kind, value, old)
    st.session_state["problem"] = ""
    try:
        commands.submit(store(), asked.kind, asked.payload, author(), expected=asked.expected, undo_of=undo_of)
    except HeadwayError as error:
        st.session_state["problem"] = str(error)


def ask(title: str, body: Callable[..., None], *about: Any) -> None:
    """Ask in a dialog; `body` draws it, given the question's number (for `submit_once`) and `about`."""
    number = int(st.session_state.get("questions", 0)) + 1
    st.session_state["questions"] = st.session_state["unanswered"] = number
    st.session_state["asking"] = True
    st.dialog(title, on_dismiss=close_question)(body)(number, *about)


def close_question() -> None:
    """No question stands open: it was answered or left, or the page was drawn anew and its dialog is gone."""
    st.session_state["asking"] = False


def is_asking() -> bool:
    """Whether a question stands open. A page that is drawn anew closes it."""
    return bool(st.session_state.get("asking"))


def redraw() -> None:
    """Draw the page anew, once no question stands open: until then every refresh comes here again."""
    if not is_asking():
        st.rerun()


def submit_once(number: int, kind: str, value: Any, old: Any = None) -> None:
    """`submit`, unless this question was answered before: a run that is broken off may call back a click twice."""
    if st.session_state.get("unanswered") == number:
        st.session_state["unanswered"] = None
        submit(kind, value, old)


def problem() -> str:
    """Why the viewer's last command could not be written, "" if it was."""
    return str(st.session_state.get("problem", ""))


def submit_draft(field: str) -> None:
    """Submit a field's draft where it differs from its base.

    The expected old value is the viewer's own command before, if that is still on its way, else the base.
    """
    started, current = st.session_state[f"{field}_base"], draft(field)
    waiting = own(field)
    if current != (started if waiting is None else waiting):
        submit(field, current, started if waiting is None else waiting)
        st.session_state[f"{field}_own"] = current
