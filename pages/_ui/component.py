"""The live component: three lines of JavaScript that import the served module, in a fixed frame."""

from typing import Literal

import streamlit as st

_JS = """
const live = import(new URL("ui/live.js", document.baseURI).href);
export default function (component) {
  live.then((module) => module.mount(component));
}
"""

_live = st.components.v2.component(
    "headway.live",
    html='<div class="hw-live"></div>',
    js=_JS,
    isolate_styles=False,
)


def live(part: Literal["head", "board"]) -> None:
    """Mount the head (badge, time range, six numbers) or the board (instances, charts).

    Both share one poller of `/api/live`; the frame keeps its height while the script loads (page.css).
    """
    with st.container(key=f"live-{part}"):
        _live(key=f"live_{part}", data={"part": part})
