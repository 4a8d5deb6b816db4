"""The twin runs behind one tuning run's prediction, as a link names it: that tuning run, or either twin run."""

from typing import Any

import streamlit as st

from control.present import ledger, replays
from pages._ui import frame, tables
from storage import runs

#: How many ids behind a twin run its tuning run is looked for: the engine stores the two twin runs, then that.
FOLLOWING = 4

Row = dict[str, Any]


def selected(asked: str) -> None:
    """The panel of the run that the URL names as `asked`."""
    number = frame.number_of(asked)
    run = None if number is None else _run(number)
    what = "Tuning run" if run and run["kind"] == "tune" else "Twin run"
    with frame.panel("selected", what if number is None else f"{what} {number}"):
        st.button("Close", key="close-run", type="tertiary", on_click=st.query_params.clear)
        if number is None:
            st.html(tables.note(ledger.no_number(asked, "run"), "empty"))
        elif run is None:
            st.html(tables.note(replays.unknown(number), "empty"))
        else:
            _pair(run)


def _pair(run: Row) -> None:
    """Both twin runs; one alone where the tuning run it belongs to is not found."""
    tune = run if run["kind"] == "tune" else _tune_of(run)
    if tune is not None:
        named = (tune["result"].get(key) for key in ("predicted_run", "unchanged_run"))
        shown = replays.sides(*(None if number is None else _run(number) for number in named))
    else:
        shown = [replays.Side("", run)] if run["kind"] == "prediction" else []
    if not shown:
        st.html(tables.note(replays.no_twin(run), "empty"))
        return
    st.html(tables.note(replays.replayed(shown[0])) + (tables.note(replays.followed(tune)) if tune else ""))
    with st.container(key="split-replay"):
        left, right = st.columns([1, 1.5], gap="small")
    left.html(tables.table(replays.figures(shown), "replay"))
    with right, st.container(key="scroll-sides"):
        st.html(tables.table(replays.instances(shown), "sides"))


def _tune_of(prediction: Row) -> Row | None:
    """The tuning run that a twin run belongs to; None where it is not among those stored next."""
    if prediction["kind"] != "prediction":
        return None
    after = (_run(prediction["id"] + k) for k in range(1, FOLLOWING + 1))
    return next((run for run in after if replays.is_of(run, prediction["id"])), None)


def _run(number: int) -> Row | None:
    """The stored run of that number."""
    return frame.read(runs.get, number)
