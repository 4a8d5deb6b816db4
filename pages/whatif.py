"""What-if: fork the running fleet, see the next minutes of many settings, apply one under guard."""

from pathlib import Path

import streamlit as st

from pages._ui import forks, frame, shadows, whatif_apply, whatif_ask, whatif_kept, whatif_show

st.html(Path(__file__).parent / "_ui" / "static" / "whatif.css")
if seen := frame.opened("whatif", "What-if", "What would happen if?"):
    snapshot, clicked = seen
    if clicked.fork is not None:
        forks.open_fork(clicked.fork)
    with st.container(key="whatif-columns"):
        board, control = st.columns([3.3, 1], gap="small")
    with board:
        view, kept = whatif_show.board(), forks.recent()
        with frame.panel("forks", "Kept forks", "newest first"):
            whatif_kept.panel(view.run, kept)
        with frame.panel("shadows", "Shadow policies", "same arrivals, other policy"):
            shadows.panel(snapshot)
    with control:
        with frame.panel("ask", "Ask"):
            whatif_ask.form(snapshot, view)
            whatif_ask.state()
        if view.run is not None:
            with frame.panel("apply", "Apply"):
                whatif_apply.panel(view.run, view.setting, forks.watched(kept))
