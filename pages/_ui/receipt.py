"""One placement: what was compared, what became of the call, and what the runner-up would have cost."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from control.present import decisions, ledger
from pages._ui import edits, frame, tables
from storage import commands, readers, runs

KIND = "regret"
#: How many of the newest replays and commands are looked through for those of a placement.
LOOKED_AT, WAITING = 50, 20

Row = Mapping[str, Any]


def selected(asked: str) -> None:
    """The panel of the placement that the URL names as `asked`."""
    number = frame.number_of(asked)
    with frame.panel("selected", "Placement" if number is None else f"Placement {number}"):
        st.button("Close", key="close-decision", type="tertiary", on_click=_close)
        if number is None:
            st.html(tables.note(ledger.no_number(asked, "placement"), "empty"))
        elif (row := frame.read(readers.decision, number)) is None:
            st.html(tables.note(decisions.unknown(number), "empty"))
        else:
            _receipt(row)


def of_run(asked: str) -> None:
    """The panel of the placement whose replay the URL names as `asked`."""
    number = frame.number_of(asked)
    run = None if number is None else frame.read(runs.get, number)
    if run is not None and run["kind"] == KIND:
        selected(str(run["params"]["decision"]))
        return
    with frame.panel("selected", "Replay"):
        st.button("Close", key="close-decision", type="tertiary", on_click=_close)
        st.html(tables.note(f"No replay of a placement is stored as run {asked:.20}.", "empty"))


def _close() -> None:
    for key in ("decision", "run"):
        st.query_params.pop(key, None)


def _receipt(row: Row) -> None:
    link = f'<p class="note"><a href="workflows?workflow={row["workflow"]}">Workflow #{row["workflow"]}</a></p>'
    st.html(tables.note(decisions.facts(row)) + link)
    with st.container(key="split-receipt"):
        left, right = st.columns([1.9, 1], gap="small")
    with left:
        _compared(row)
    with right:
        _told(row)


def _compared(row: Row) -> None:
    """Candidates with both terms, and the instances that were none."""
    if row["candidates"] is None:
        st.html(tables.note(decisions.no_receipt(row), "empty"))
        return
    left_out, words = decisions.filtered(row), decisions.unlisted(row)
    shown = tables.table(decisions.receipt(row), "receipt") + (tables.note(words) if words else "")
    st.html(shown + (tables.table(left_out, "filtered") if left_out.rows else ""))


@st.fragment(run_every=2)
def _told(row: Row) -> None:
    """What became of the call, and the replay with the runner-up once it was asked for."""
    ended = frame.read(readers.workflow, row["workflow"])
    st.html(tables.note(decisions.became(row, ended)))
    run = decisions.of_decision(frame.read(runs.recent, LOOKED_AT, kind=KIND, with_result=True), row["id"])
    other = decisions.runner_up(row)
    if other is None:
        st.html(tables.note("No other instance could have taken it."))
        return
    asked, waiting = _asked(row["id"], run)
    label, sent, off = f"What would {other} have cost?", (KIND, row["id"]), ended is None or waiting
    st.button(label, key=f"regret-{row['id']}", disabled=off, on_click=edits.submit, args=sent)
    if asked:
        st.html(tables.note(asked))
    if problem := edits.problem():
        st.html(tables.note(problem, "problem"))
    if run is not None:
        _regret(run)


def _regret(run: Row) -> None:
    shown, places = decisions.regret(run), decisions.by_instance(run)
    st.html(
        tables.note(decisions.verdict(run), "proposal")
        + (tables.table(shown, "regret") if shown.rows else "")
        + (tables.table(places, "places") if places.rows else "")
        + (tables.note(words) if (words := decisions.replayed(run)) else "")
    )


def _asked(decision: int, run: Row | None) -> tuple[str, bool]:
    """What became of the newest order to replay this placement, and whether its replay is still to come."""
    rows = frame.read(commands.recent, WAITING)
    mine = next((r for r in rows if r["kind"] == KIND and r["payload"]["decision"] == decision), None)
    if mine is None or (run is not None and run["created_at"] >= mine["created_at"]):
        return "", False
    if mine["state"] == "refused":
        return f"✕ refused: {mine['reason']}", False
    return "… the past is replayed", True
