"""The components: three lines of JavaScript that import a served module, in a fixed frame."""

from collections.abc import Mapping
from typing import Any, Literal

import streamlit as st

_JS = """
const served = import(new URL("ui/%s.js", document.baseURI).href);
export default function (component) {
  served.then((module) => module.mount(component));
}
"""

_live = st.components.v2.component(
    "headway.live",
    html='<div class="hw-live"></div>',
    js=_JS % "live",
    isolate_styles=False,
)
_figure = st.components.v2.component(
    "headway.figure",
    html='<div class="hw-drawn" role="img"></div>',
    js=_JS % "figure",
    isolate_styles=False,
)


def live(part: Literal["head", "board"]) -> None:
    """Mount the head (badge, time range, six numbers) or the board (instances, charts).

    Both share one poller of `/api/live`; the frame keeps its height while the script loads (page.css).
    """
    with st.container(key=f"live-{part}"):
        _live(key=f"live_{part}", data={"part": part})


def bar(name: str, title: str, question: str) -> int | None:
    """Mount the title, badge and clock of page `name`; the workflow whose link was clicked in this run, if any."""
    with st.container(key="live-bar"):
        data = {"part": "bar", "title": title, "question": question}
        state = _live(key=f"live_{name}", data=data, on_workflow_change=lambda: None)
    clicked = state.get("workflow")
    return None if clicked is None else int(clicked)


def figure(name: str, drawn: Mapping[str, Any], label: str) -> None:
    """Mount a figure of `control.present` (data, layout, height in px); unchanged data is not drawn again."""
    _figure(key=f"figure_{name}", data={"figure": drawn, "label": label}, height=int(drawn["height"]))
