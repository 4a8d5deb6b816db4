"""Tuning: which α, and did it keep its promise?"""

import streamlit as st

from control.present import tuning
from pages._ui import frame, tables, tuner
from pages._ui.changes import clock
from pages._ui.component import figure
from pages._ui.replay import selected
from storage import runs

LISTED = 30


@st.fragment(run_every=3)
def last_run(alpha: float) -> None:
    """The curve of the newest run; nothing is sent to the browser's figure while no other run ends."""
    found = frame.read(runs.recent, 1, kind="tune", with_result=True)
    if not found:
        st.html(tables.note("No tuning run yet. Run tuning replays the last minutes at each α.", "empty"))
        return
    run = found[0]
    st.html(tables.note(f"{clock(run['created_at'])}: {tuning.about(run)}"))
    figure("curve", tuning.curve(run, alpha), "P95 latency over α")


@st.fragment(run_every=3)
def promises() -> None:
    """Predicted against realised P95 of the runs that were applied."""
    found = frame.read(runs.recent, LISTED, kind="tune", with_result=True)
    tested = bool(tuning.kept(found))
    st.html(tables.note(tuning.score(found), "" if tested else "empty"))
    if tested:
        figure("promise", tuning.promise(found), "Predicted against realised P95 latency")


@st.fragment(run_every=3)
def past() -> None:
    """The runs, newest first."""
    found = frame.read(runs.recent, LISTED, kind="tune", with_result=True)
    shown = tuning.history(found, [clock(r["created_at"]) for r in found])
    st.html(
        tables.table(shown, "history") if found else tables.note("Runs appear here with what became of them.", "empty")
    )


if seen := frame.opened("tuning", "Tuning", "Which α, and did it keep its promise?"):
    snapshot = seen[0]
    if seen[1].run is not None:
        st.query_params["run"] = str(seen[1].run)
    with st.container(key="fleet-columns"):
        board, control = st.columns([3.9, 1], gap="small")
    with board:
        if asked := st.query_params.get("run"):
            selected(asked)
        with st.container(key="split-tuning"):
            left, right = st.columns(2, gap="small")
        with left, frame.panel("curve", "Last run", "P95 over α, with its band"):
            last_run(snapshot["alpha"])
        with right, frame.panel("promise", "Promise", "predicted against realised P95"):
            promises()
        with frame.panel("history", "Runs", "newest first"), st.container(key="scroll-history"):
            past()
    with control, frame.panel("tuner", "Tuner", f"α {snapshot['alpha']:.2f} in force"):
        tuner.controls(snapshot)
