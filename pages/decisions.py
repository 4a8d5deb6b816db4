"""Decisions: where calls were placed, what each was compared with, and what the runner-up would have cost."""

from pathlib import Path
from typing import Any

import streamlit as st

from control.present import decisions
from pages._ui import filters, frame, tables
from pages._ui.receipt import of_run, selected
from storage import readers

STYLE = Path(__file__).parent / "_ui" / "static" / "decisions.css"
FIELDS = decisions.Filter._fields
LISTED, LOOKED_AT = 60, 400


def choices(snapshot: dict[str, Any]) -> filters.Choices:
    """The values of each filter among the newest placements."""
    newest = frame.read(readers.decisions, LOOKED_AT)
    names = [row["name"] for row in snapshot["instances"]]
    return lambda field: decisions.choices(newest, names, field)


@st.fragment(run_every=3)
def placements(wanted: decisions.Filter) -> None:
    """The newest placements that the filters leave."""
    rows = frame.read(readers.decisions, LISTED, **decisions.asked(wanted))
    if not rows:
        st.html(tables.note(decisions.nothing(wanted), "empty"))
        return
    st.html(tables.table(decisions.table(rows), "placements"))


if seen := frame.opened("decisions", "Decisions", "Why there, and what would the other have cost?"):
    st.html(STYLE)
    snapshot, clicked = seen
    if clicked.workflow is not None:
        st.switch_page("workflows.py", query_params={"workflow": str(clicked.workflow)})
    if clicked.decision is not None:
        st.query_params["decision"] = str(clicked.decision)
    wanted = decisions.Filter(*filters.chosen(FIELDS, choices(snapshot)))
    if asked := st.query_params.get("decision"):
        selected(asked)
    elif asked := st.query_params.get("run"):
        of_run(asked)
    with frame.panel("placements", "Placements", "newest first"), st.container(key="scroll-placements"):
        placements(wanted)
