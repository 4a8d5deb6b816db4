"""The forks that are kept: open one, put two side by side, take one along as a file."""

from collections.abc import Callable

import streamlit as st

from control.errors import SettingError
from control.present import whatif, whatif_kept
from pages._ui import forks, frame, tables
from pages._ui.changes import clock
from pages._ui.component import figure
from pages._ui.source import store
from storage import forks as stored


@st.fragment
def panel(shown: forks.Row | None, found: list[forks.Row]) -> None:
    """The list of what was found, and of the fork in view the comparison and the export."""
    if not found:
        st.html(tables.note("Forks appear here with what became of them.", "empty"))
        return
    clocks = [clock(run["created_at"]) for run in found]
    with st.container(key="scroll-forks"):
        st.html(tables.table(whatif_kept.history(found, clocks, shown["id"] if shown else None), "forks"))
    if shown is None:
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="fork-tools"):
        other = _other(shown, found)
        st.download_button(
            "headway whatif file", data=_payload(shown["id"]), file_name=f"whatif-{shown['id']}.headway",
            mime="application/octet-stream", key="export-fork", on_click="ignore",
        )  # fmt: skip
        st.html(f'<code class="line">headway whatif whatif-{shown["id"]}.headway --json</code>')  # st.code takes 1.5 MB
    if other is not None:
        with st.container(key="scroll-compared"):
            st.html(tables.table(whatif_kept.compared(shown, other), "compared"))
        figure("forks", whatif_kept.lines(shown, other), "P95 of the best setting of both forks")


def _other(shown: forks.Row, found: list[forks.Row]) -> forks.Row | None:
    """The fork to compare with, of those that are done."""
    done = {
        run["id"]: run for run in found if run["id"] != shown["id"] and whatif.result_of(run).get("state") == "done"
    }
    names = {number: whatif_kept.label(run, clock(run["created_at"])) for number, run in done.items()}
    key, asked = f"whatif_other_{shown['id']}", frame.number_of(st.query_params.get(forks.OTHER, ""))
    if key not in st.session_state and asked in done:
        st.session_state[key] = asked  # an index would be a default, which cannot be cleared
    with st.container(key="compare", width=330):
        number = st.selectbox(
            f"Compare #{shown['id']} with", list(done), index=None, placeholder="another fork",
            key=key, on_change=_keep, args=(key, shown["id"]), disabled=not done,
            format_func=lambda n: names.get(n, f"#{n}"),
        )  # fmt: skip
    return done.get(number) if number is not None else None


def _keep(key: str, shown: int) -> None:
    """Put both forks into the URL."""
    number = st.session_state[key]
    st.query_params["fork"] = str(shown)
    if number is None:
        st.query_params.pop(forks.OTHER, None)
    else:
        st.query_params[forks.OTHER] = str(number)


def _payload(number: int) -> Callable[[], bytes]:
    """What makes the file of a fork, once it is asked for."""
    opened = store()

    def made() -> bytes:
        data = stored.payload(opened, number)
        if data is None:
            raise SettingError(f"fork {number}: its state is no longer kept, so there is nothing to run again")
        return data

    return made
