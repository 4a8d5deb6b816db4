"""The frame of the pages without live charts: face or bar, panels, and how old what they show is."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from control.errors import StoreError
from control.present.live import Limits
from control.present.units import seconds
from pages._ui import tables
from pages._ui.component import Clicked, bar
from pages._ui.feed import feed_of
from pages._ui.look import look, show_face
from pages._ui.source import store
from pages._ui.strip import strip
from storage import readers

T = TypeVar("T")
#: Seconds that a session's parts share one detail: those that refresh in step show one moment.
STEP_S = 1.0
#: Hidden by live.css where a panel holds neither table nor figure.
EXPORT = '<button class="hw-export" aria-label="Export this panel" title="Key e exports the whole page"></button>'


def opened(name: str, title: str, question: str) -> tuple[dict[str, Any], Clicked] | None:
    """Show the face that fits, or the bar: then the newest snapshot and the link that was clicked, if any."""
    st.session_state.pop("detail_kept", None)  # a run of the whole page reads anew
    seen = look()
    if seen.snapshot is None or seen.face.kind != "live":
        show_face(seen.face)
        return None
    clicked = bar(name, title, question)
    if name != "scenarios":
        strip(name)
    return seen.snapshot, clicked


def number_of(asked: str) -> int | None:
    """The whole number that a link's query holds; None where it is none, or larger than any of the store."""
    return int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 19 else None


def panel(key: str, title: str, small: str = "") -> st.delta_generator.DeltaGenerator:
    """A bordered panel with its title, a muted remark and a button that exports what stands in it (export.js)."""
    box = st.container(key=f"panel-{key}", border=True, gap="small")
    box.html(EXPORT + tables.title(title, small))
    return box


def detail() -> dict[str, Any] | None:
    """The engine's newest detail, the same for all parts of a page within STEP_S; None before its first."""
    kept: tuple[float, object, dict[str, Any] | None] | None = st.session_state.get("detail_kept")
    now, source = time.monotonic(), read(lambda opened: opened)
    if kept is not None and now - kept[0] < STEP_S and kept[1] is source and kept[2] is not None:
        return kept[2]
    found = read(readers.detail)
    st.session_state["detail_kept"] = (now, source, found)
    return found


def run_begun() -> float:
    """When the run that goes on began, epoch s; 0.0 where that is longer ago than what the charts keep."""
    return read(lambda opened: feed_of(opened).begun())


def read(reader: Callable[..., T], *args: Any, **named: Any) -> T:
    """What a reader of the store returns; of an unreadable one the reason is shown until the next refresh."""
    try:
        return reader(store(), *args, **named)
    except StoreError as error:
        st.html(tables.note(str(error), "problem"))
        st.stop()


def age_note(shown: dict[str, Any]) -> str:
    """Markup of a line that says how old `shown` is once it is no longer fresh, else ""."""
    age = time.time() - shown["at"]
    return tables.note(f"As the engine left it {seconds(round(age))} ago.", "old") if age > Limits().down_s else ""


def remark(text: str) -> str:
    """Markup of a muted sentence; "" of none."""
    return tables.note(text) if text else ""


def waiting(what: str) -> str:
    """Markup of the sentence before the engine's first report of `what`."""
    return tables.note(f"The engine has not reported {what} yet; the page goes on by itself.", "wait")
