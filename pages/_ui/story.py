"""One workflow's story: its timeline and debt once it has ended, what it does now before; and its placements."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from control.present import gantt, ledger, queues, workflows
from pages._ui import frame, tables
from pages._ui.component import figure
from storage import readers

PLACEMENTS = 50


def selected(asked: str) -> None:
    """The panel of the workflow that the URL names as `asked`."""
    number = frame.number_of(asked)
    with frame.panel("selected", "Workflow" if number is None else f"Workflow #{number}"):
        st.button("Close", key="close-workflow", type="tertiary", on_click=_close)
        if number is None:
            st.html(tables.note(ledger.no_number(asked), "empty"))
        elif (row := _row(number)) and _active(number) is None:
            _story(row)
        else:
            _on_its_way(number)


def _close() -> None:
    st.query_params.pop("workflow", None)


def _story(row: dict[str, Any]) -> None:
    st.html(tables.note(ledger.facts(row)))
    if why := ledger.why(row):
        st.html(tables.note(why, "verdict"))
    with st.container(key="split-story"):
        left, right = st.columns([2.4, 1], gap="small")
    with left:
        if row["timeline"]:
            words = tables.note(gantt.caption(row["timeline"]))
            st.html(words + tables.phases(gantt.legend(row["timeline"])))
            drawn = gantt.figure(row["timeline"], row["slo_s"], row["plan_s"])
            figure(f"gantt_{row['id']}", drawn, f"Timeline of workflow {row['id']}")
        else:
            st.html(
                tables.note("Its timeline is kept no more: the store has those of the newest 5,000 workflows.", "empty")
            )
    if check := ledger.check(row):
        with right:
            causes = tables.table(ledger.by_cause(list(ledger.CAUSES), row["ledger"], None), "causes")
            st.html(causes + tables.note(check.text()))
    placed = workflows.own(frame.read(readers.decisions, PLACEMENTS, row["id"]), row)
    with st.container(key="scroll-placed"):
        st.html(_placements(placed))


@st.fragment(run_every=2)
def _on_its_way(number: int) -> None:
    active, detail = _active(number), frame.detail()
    if active is None and _row(number) is not None:
        st.rerun()
    placed = frame.read(readers.decisions, PLACEMENTS, number)
    if active is None and not placed:
        st.html(tables.note(ledger.unknown(number), "empty"))
        return
    words = [ledger.progress(active), *workflows.doing(detail, active)] if active and detail else [ledger.ON_ITS_WAY]
    st.html("".join(tables.note(line) for line in words))
    with st.container(key="scroll-placed"):
        st.html(_placements(placed))


def _placements(placed: Sequence[Mapping[str, Any]]) -> str:
    if not placed:
        return tables.note("No placement of it is stored; the newest 200,000 of the last 24 h are.")
    newest = f", the newest {PLACEMENTS}" if len(placed) == PLACEMENTS else ""
    return tables.title("Placements", f"newest first{newest}") + tables.table(queues.placements(placed), "placed")


def _row(number: int) -> dict[str, Any] | None:
    return frame.read(readers.workflow, number)


def _active(number: int) -> dict[str, Any] | None:
    detail = frame.detail()
    return next((a for a in detail["active"] if a["id"] == number), None) if detail else None
