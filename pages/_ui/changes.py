"""What became of the commands: the line under Apply and the list of recent changes with their undo."""

import time
from datetime import datetime
from html import escape
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from control.errors import StoreError
from control.present.changes import Change, changes
from control.present.wording import SCORED, asked, given, meanwhile, outcome, policy_name
from pages._ui import edits
from pages._ui.look import look
from pages._ui.source import store
from storage import commands, finders

SHOWN = 20
#: Newest rows that decide what can still be undone.
JUDGED = 200


@st.fragment(run_every=1)
def command_state() -> None:
    """Applied values, the newest α or policy command, and a warning when somebody else changed them."""
    try:
        snapshot, rows = look().snapshot, commands.recent(store(), SHOWN)
    except StoreError:
        snapshot, rows = None, []
    if snapshot is None:
        st.rerun()
    if not edits.is_asking() and _redraw(snapshot, {r["kind"] for r in rows if r["state"] == "pending"}):
        st.rerun()
    newest = next((r for r in rows if r["kind"] in ("alpha", "policy")), None)
    policy = policy_name(snapshot["policy"], snapshot.get("form", "paper"))
    alpha = f"α {snapshot['alpha']:.2f}, " if snapshot["policy"] in SCORED else ""
    applied = f"Applied {alpha}{policy}"
    state = newest["state"] if newest else "none"
    last = f"{outcome(newest)} ({asked(newest)})" if newest else "No change asked for yet"
    warnings = (edits.problem(), _warning("alpha", snapshot), _warning("policy", snapshot))
    warning = next((w for w in warnings if w), "")
    kind, text = ("conflict", warning) if warning else (state, last)
    number = newest["id"] if newest else 0
    with st.container(key="command-state"):
        st.html(
            f'<p class="applied">{escape(applied)}</p>'
            f'<p class="state state-{kind}" data-command="{number}">{escape(text)}</p>'
        )


@st.fragment(run_every=2)
def recent_changes(kinds: tuple[str, ...] = (), limits: str = "") -> None:
    """The newest changes with author, time and a button that takes them back.

    Only those of `kinds` where given; `limits` says so. A link leads to all.
    """
    try:
        rows, events = finders.judged(store(), JUDGED)
    except StoreError as error:
        st.html(f'<p class="note">{escape(str(error))}</p>')
        return
    listed = changes(rows, events, SHOWN, kinds)
    st.html(f'<p class="note">{escape(limits)} <a href="audit">All changes</a></p>')
    if not listed:
        st.html('<p class="note">Nothing was changed yet. Changes appear here with their author.</p>')
    for change in listed:
        _line(change)


def _line(change: Change) -> None:
    with st.container(key=f"change-{change.id}", horizontal=True, gap="small"):
        st.html(
            f'<p class="change state-{change.state}"><time>{clock(change.at)}</time> {escape(change.what)}'
            f"<span>{escape(change.author)} {escape(change.outcome)}</span></p>"
        )
        undo_button(change)


def undo_button(change: Change) -> None:
    """The button that takes a change back, where there is something to take back."""
    if change.undo is not None:
        undo = change.undo
        args = (undo.kind, given(undo), undo.expected, change.command_id)
        st.button("Undo", key=f"undo-{change.id}", type="tertiary", on_click=edits.submit, args=args)


def _redraw(snapshot: dict[str, Any], pending: set[str]) -> bool:
    """Whether a control outside this fragment shows something that is no longer so."""
    shown = (snapshot["paused"], tuple((i["name"], i["state"]) for i in snapshot["instances"]))
    changed = st.session_state.setdefault("shown", shown) != shown
    st.session_state["shown"] = shown
    for field in edits.FIELDS:
        wanted = field in ("alpha", "policy") or field in pending
        changed |= edits.follow(field, snapshot[field], wanted)
    return bool(changed)


def _warning(field: str, snapshot: dict[str, Any]) -> str:
    return meanwhile(snapshot[field], edits.base(field, snapshot[field]), edits.draft(field))


def clock(at: float) -> str:
    """Wall time of epoch s in the viewer's time zone, with the day where it is not today's."""
    moment, now = _local(at), _local(time.time())
    return moment.strftime("%H:%M:%S" if moment.date() == now.date() else "%d %b %H:%M")


def times(at: float) -> tuple[str, str]:
    """Epoch s as the viewer's time, short and in full."""
    return clock(at), moment(at)


def moment(at: float) -> str:
    """Date and wall time of epoch s in the viewer's time zone, with the zone."""
    return _local(at).strftime("%d %b %Y %H:%M:%S %Z")


def _local(at: float) -> datetime:
    try:
        zone = ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        zone = ZoneInfo("UTC")
    return datetime.fromtimestamp(at, zone)
