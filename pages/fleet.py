"""The live fleet: are we fine, which instance is not, and what to do about it."""

import streamlit as st

from pages._ui import changes, controls
from pages._ui.component import live
from pages._ui.look import look, show_face
from pages._ui.strip import strip


def panel(key: str, title: str) -> st.delta_generator.DeltaGenerator:
    """A bordered panel of the control column with its title."""
    box = st.container(key=f"panel-{key}", border=True, gap="small")
    box.html(f'<h2 class="panel-title">{title}</h2>')
    return box


seen = look()
if seen.snapshot is None or seen.face.kind != "live":
    show_face(seen.face)
else:
    live("head")
    strip("fleet")
    with st.container(key="fleet-columns"):
        board, control = st.columns([3.9, 1], gap="small")
    with board:
        live("board")
    with control:
        with panel("scheduler", "Scheduler α and policy"):
            controls.scheduler(seen.snapshot)
            changes.command_state()
        if not seen.snapshot.get("gateway_url"):
            with panel("run", "Simulation"):
                controls.run(seen.snapshot)
        with panel("instances", "Instances"):
            controls.instances(seen.snapshot)
        with panel("changes", "Recent changes"):
            changes.recent_changes()
