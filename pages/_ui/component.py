"""The components: three lines of JavaScript that import a served module, in a fixed frame."""

from collections.abc import Mapping
from html import escape
from typing import Any, Literal, NamedTuple

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

_whatif = st.components.v2.component(
    "headway.whatif",
    html='<div class="hw-whatif"></div>',
    js=_JS % "whatif",
    isolate_styles=False,
)


#: Pages whose bar stands over live charts: it holds their time range and pause.
WITH_CHARTS = frozenset({"kv", "power"})


class Clicked(NamedTuple):
    """The link clicked in this run of the page: number of a workflow, run, conversation, fork or placement."""

    workflow: int | None = None
    run: int | None = None
    conversation: int | None = None
    fork: int | None = None
    decision: int | None = None


def live(part: Literal["head", "board", "watts"]) -> None:
    """Mount the head (badge, time range, six numbers), the board (instances, charts) or all watts against the caps.

    All share one poller of `/api/live`; the frame keeps its height while the script loads (page.css).
    """
    with st.container(key=f"live-{part}"):
        _live(key=f"live_{part}", data={"part": part})


def multiples(count: int) -> None:
    """Mount the KV caches of `count` instances over time, side by side; of a large fleet one a GPU type."""
    with st.container(key="live-multiples"):
        height = 190 if count <= 4 else 336 if count <= 12 else 452
        _live(key="live_multiples", data={"part": "multiples"}, height=height)


def bar(name: str, title: str, question: str) -> Clicked:
    """Mount the title, badge and clock of page `name`; the link that was clicked in this run, if any."""
    with st.container(key="live-bar"):
        st.html(f'<p class="bar-early"><b>{escape(title)}</b> {escape(question)}</p>')  # until the component is there
        data = {"part": "bar", "title": title, "question": question, "ranged": name in WITH_CHARTS}
        listening: dict[str, Any] = {f"on_{kind}_change": _nothing for kind in Clicked._fields}
        state = _live(key=f"live_{name}", data=data, **listening)
    numbers = (state.get(kind) for kind in Clicked._fields)
    return Clicked(*(None if number is None else int(number) for number in numbers))


def figure(name: str, drawn: Mapping[str, Any], label: str) -> None:
    """Mount a figure of `control.present` (data, layout, height in px); unchanged data is not drawn again."""
    _figure(key=f"figure_{name}", data={"figure": drawn, "label": label}, height=int(drawn["height"]))


def forecast(drawn: Mapping[str, Any] | None) -> tuple[int, int] | None:
    """Mount the lines of a fork with its slider; number of the fork and index of the setting that the viewer picked.

    `drawn` is `control.present.whatif_picture.picture`; picking another setting redraws in the browser alone. None:
    nothing is shown yet, but the browser loads what it will draw with.
    """
    with st.container(key="live-whatif" if drawn else "whatif-idle"):
        state = _whatif(key="forecast", data=dict(drawn) if drawn else {"run": None}, on_picked_change=_nothing)
    picked = state.get("picked")
    return None if not picked else (int(picked[0]), int(picked[1]))


def _nothing() -> None:
    """A click is read from the component's state."""
