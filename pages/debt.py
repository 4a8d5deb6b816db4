"""SLO debt: where the time goes, who pays, and one workflow's whole story."""

from typing import Any

import streamlit as st

from control.present import ledger
from pages._ui import frame, tables
from storage import readers

LISTED = 40
#: Part of the ledger, head of its table and what its numbers are.
PARTS = (
    ("by_tenant", "Tenant", "Time less the plan, of the workflows that ended in the window"),
    ("by_stage", "Stage", "Time less the plan of that stage"),
    ("by_instance", "Instance", "Time spent there; no plan is subtracted"),
)


@st.fragment(run_every=3)
def causes(fleet: dict[str, Any]) -> None:
    """The fleet's debt by cause."""
    if (detail := frame.detail()) is None:
        st.html(frame.waiting("where the time went"))
        return
    book, count = detail["ledger"], ledger.ended(detail, fleet)
    st.html(frame.age_note(detail) + tables.note(ledger.window(book, count)))
    st.html(tables.table(ledger.by_cause(book["causes"], book["fleet"], count), "causes"))


@st.fragment(run_every=3)
def payers() -> None:
    """The same by tenant, stage and instance."""
    if detail := frame.detail():
        book = detail["ledger"]
        strips = [ledger.strips(book["causes"], book[key], *names) for key, *names in PARTS if book[key]]
        shown = "".join(tables.table(strip, "heat") for strip in strips)
        st.html(shown or tables.note("No workflow has ended in the window yet.", "empty"))


@st.fragment(run_every=3)
def workflows() -> None:
    """Active workflows behind their deadline, then those that ended last."""
    if detail := frame.detail():
        listed = ledger.listed(detail, frame.read(readers.workflows, LISTED), LISTED)
        empty = tables.note("No workflow is late and none has ended yet.", "empty")
        more = '<p class="note"><a href="workflows">All workflows, with search and filters</a></p>'
        st.html(tables.table(listed, "workflows") + more if listed.rows else empty)


if asked := st.query_params.get("workflow"):  # links of before there was a page of workflows
    st.switch_page("workflows.py", query_params={"workflow": asked})
if seen := frame.opened("debt", "SLO debt", "Where does time go, and who pays?"):
    if seen[1].workflow is not None:
        st.switch_page("workflows.py", query_params={"workflow": str(seen[1].workflow)})
    if seen[1].decision is not None:
        st.switch_page("decisions.py", query_params={"decision": str(seen[1].decision)})
    with st.container(key="split-debt"):
        left, right = st.columns([1, 1.25], gap="small")
    with left, frame.panel("causes", "Debt by cause", "time less the plan"):
        causes(seen[0]["fleet"])
    with right, frame.panel("payers", "Who pays", "s by cause"), st.container(key="scroll-heat"):
        payers()
    remark = f"late ones on their way first, then the newest that ended; {LISTED} at most"
    with frame.panel("workflows", "Workflows", remark), st.container(key="scroll-workflows"):
        workflows()
