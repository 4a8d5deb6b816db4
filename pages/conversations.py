"""Conversations: where each is kept, what it holds, and why it lost its KV."""

from typing import Any

import streamlit as st

from control.present import conversations
from pages._ui import changes, filters, frame, retention, tables
from pages._ui.talk import selected

FIELDS = conversations.Filter._fields
#: Changes that reach conversations.
KINDS = ("retention", "cancel", "policy", "kv_retention")


def choices(detail: dict[str, Any] | None) -> filters.Choices:
    """The values of each filter that the engine's report holds."""
    return lambda field: conversations.choices(detail["conversations"], field) if detail else ()


@st.fragment(run_every=3)
def totals() -> None:
    """The figures on top; a new tenant, decoder or state draws the filters anew."""
    detail = frame.detail()
    if detail is None:
        st.html(frame.waiting("its conversations"))
        return
    if filters.is_new(FIELDS, choices(detail)):
        st.rerun()
    st.html(frame.age_note(detail) + tables.tiles(conversations.summary(detail["conversations"])))


@st.fragment(run_every=3)
def pins(wanted: conversations.Filter, policy: str) -> None:
    """The open conversations that the filters leave."""
    if (detail := frame.detail()) is None:
        return
    shown = detail["conversations"]
    rows = conversations.matching(shown, wanted)
    if not rows:
        st.html(tables.note(conversations.nobody(shown, policy), "empty"))
        return
    st.html(tables.note(conversations.extent(shown, rows)) + tables.table(conversations.table(rows), "pins"))


if seen := frame.opened("conversations", "Conversations", "Where is each kept, and why did it break?"):
    snapshot, clicked = seen
    if clicked.workflow is not None:
        st.switch_page("workflows.py", query_params={"workflow": str(clicked.workflow)})
    if clicked.conversation is not None:
        st.query_params["conversation"] = str(clicked.conversation)
    totals()
    with st.container(key="fleet-columns"):
        board, control = st.columns([3.9, 1], gap="small")
    with board:
        wanted = conversations.Filter(*filters.chosen(FIELDS, choices(frame.detail())))
        if asked := st.query_params.get("conversation"):
            selected(asked)
        with frame.panel("pins", "Open conversations", snapshot["policy"]), st.container(key="scroll-pins"):
            pins(wanted, snapshot["policy"])
    with control:
        with frame.panel("retention", "Retention"):
            if applied := snapshot.get("retention"):
                retention.form(applied)
                retention.state()
        with frame.panel("changes", "Recent changes"):
            changes.recent_changes(KINDS, "KV retention, policy and given-up workflows only.")
