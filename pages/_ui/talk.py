"""One conversation: its turns with what each waited for, where it lost its KV, and giving it up."""

from typing import Any

import streamlit as st

from control.present import conversations, gantt, ledger
from control.present.wording import giving_up
from pages._ui import edits, frame, tables
from pages._ui.component import figure
from storage import readers


def selected(asked: str) -> None:
    """The panel of the conversation that the URL names as `asked`."""
    number = frame.number_of(asked)
    with frame.panel("selected", "Conversation" if number is None else f"Conversation #{number}"):
        st.button("Close", key="close-conversation", type="tertiary", on_click=_close)
        if number is None:
            st.html(tables.note(ledger.no_number(asked, "conversation"), "empty"))
            return
        st.session_state.pop("talk_open", None)
        _story(number)
        if _open(number) and st.button(f"Give up #{number}", key="give-up"):
            edits.ask(f"Give up workflow #{number}?", _confirm, number)


def _close() -> None:
    st.query_params.pop("conversation", None)


@st.fragment(run_every=3)
def _story(number: int) -> None:
    row = _open(number)
    if st.session_state.setdefault("talk_open", row is not None) != (row is not None):
        edits.redraw()
    link = f'<p class="note"><a href="workflows?workflow={number}">Workflow #{number} with its debt</a></p>'
    if row is not None:
        st.html(tables.note(conversations.facts(row)) + link)
        _drawn(number, conversations.timeline(row), row["elapsed_s"])
        return
    ended = frame.read(readers.workflow, number)
    if ended is None:
        st.html(tables.note(conversations.unlisted(number), "empty"))
    elif ended["timeline"]:
        st.html(tables.note(ledger.facts(ended)) + link)
        _drawn(number, [call for call in ended["timeline"] if call["ready_s"] is not None])
    else:
        st.html(
            tables.note(ledger.facts(ended))
            + link
            + tables.note("Its timeline is kept no more: the store has those of the newest 5,000.", "empty")
        )


def _drawn(number: int, timeline: list[dict[str, Any]], now_s: float | None = None) -> None:
    if timeline:
        st.html(tables.phases(gantt.legend(timeline)))
        figure(f"turns_{number}", gantt.figure(timeline, None, None, now_s), f"Turns of conversation {number}")


def _open(number: int) -> dict[str, Any] | None:
    detail = frame.detail()
    rows = detail["conversations"]["rows"] if detail else []
    return next((row for row in rows if row["workflow"] == number), None)


def _confirm(question: int, number: int) -> None:
    st.write(giving_up(number))
    with st.container(horizontal=True, gap="small"):
        sent = (question, "cancel", number)
        if st.button(f"Give up #{number}", key="confirm-cancel", type="primary", on_click=edits.submit_once, args=sent):
            st.rerun()
        if st.button("Keep it", key="keep"):
            st.rerun()
