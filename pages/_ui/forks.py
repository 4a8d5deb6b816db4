"""The stored forks as the page reads them: which is in view, and whether one is on its way."""

import time
from typing import Any, NamedTuple

import streamlit as st

from control.present import ledger, whatif, whatif_kept
from control.present.whatif_apply import guard_of, watching
from pages._ui import edits, frame
from pages._ui.look import look
from storage import commands, runs

KIND = "whatif"
OTHER = "with"  # field of the URL: the fork that the one in view is compared with
KINDS = (KIND, "apply_whatif", "undo_whatif", "end_guard", "shadows")
LISTED, SHOWN = 12, 20
#: How long (s) an applied command waits for its fork, and a fork for its end, before the page stops looking often.
SOON_S, LONGEST_S = 10.0, 300.0
#: An engine that has told nothing for so long (s) computes nothing.
SILENT_S = 10.0

Row = dict[str, Any]


class View(NamedTuple):
    """What is in view: the fork (None: none yet), the setting picked, whether one is on its way."""

    run: Row | None
    setting: int
    busy: bool


def current() -> tuple[Row | None, str]:
    """The fork that the URL names, else the newest; and the sentence where the URL names none."""
    if asked := st.query_params.get("fork"):
        number = frame.number_of(asked)
        if number is None:
            return None, ledger.no_number(asked, "fork")
        run = fork(number)
        return (run, "") if run is not None else (None, whatif_kept.missing(number))
    newest = frame.read(runs.recent, 1, kind=KIND, with_result=True)
    return (newest[0] if newest else None), ""


def fork(number: int) -> Row | None:
    """The stored fork of that number."""
    run = frame.read(runs.get, number)
    return run if run is not None and run["kind"] == KIND else None


def recent() -> list[Row]:
    """The newest forks."""
    return frame.read(runs.recent, LISTED, kind=KIND, with_result=True)


def watched(found: list[Row]) -> list[int]:
    """Numbers of the forks whose guard watches."""
    return [run["id"] for run in found if watching(run)]


def newest_command(kinds: tuple[str, ...] = KINDS) -> Row | None:
    """The newest command of these kinds."""
    return next((row for row in frame.read(commands.recent, SHOWN) if row["kind"] in kinds), None)


def on_its_way(run: Row | None) -> bool:
    """Whether a fork was asked for and is not there yet, or `run` is being computed, by an engine that lives."""
    is_young = run is not None and time.time() - run["created_at"] < LONGEST_S
    if run is not None and is_young and whatif.computing(run) and alive_since(run["created_at"]):
        return True
    asked = newest_command((KIND,))
    if asked is None or asked["state"] == "refused" or time.time() - asked["created_at"] > SOON_S:
        return False
    if asked["state"] == "applied" and not alive_since(asked["created_at"]):
        return False
    newest = frame.read(runs.recent, 1, kind=KIND)
    return not newest or newest[0]["created_at"] < asked["created_at"]


def alive_since(at: float) -> bool:
    """Whether the engine that ran at `at` (epoch s) is the one that runs now."""
    newest = look().snapshot
    if newest is None or time.time() - float(newest["at"]) > SILENT_S:
        return False
    return float(newest["engine"]["started_at"]) <= at


def ask(spec: Row) -> None:
    """Ask for a fork; the page then shows the newest."""
    edits.submit(KIND, spec)
    for key in ("fork", "setting", OTHER):
        st.query_params.pop(key, None)


def open_fork(number: int) -> None:
    """Show that fork, as its link does."""
    for key in ("setting", OTHER):
        st.query_params.pop(key, None)
    st.query_params["fork"] = str(number)


def picked(run: Row | None) -> int:
    """Index of the setting in view: what the viewer picked, else what the URL names, else the best."""
    if run is None:
        return whatif.AS_IT_IS
    number, index = st.session_state.get("whatif_picked") or (None, 0)
    if number == run["id"]:
        return int(index)
    asked = frame.number_of(st.query_params.get("setting", ""))
    return asked if whatif.setting_of(run, asked) is not None else whatif.best_of(run)  # type: ignore[return-value]


def signature(run: Row | None) -> tuple[object, ...]:
    """What the page beside the lines depends on: another value of any needs it drawn anew."""
    state = whatif.result_of(run).get("state") if run else None
    guard = guard_of(run) or {}
    index = picked(run)
    done = run is not None and whatif.setting_of(run, index) is not None
    return (run and run["id"], state, guard.get("state"), index, done, on_its_way(run))
