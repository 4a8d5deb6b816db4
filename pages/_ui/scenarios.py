"""The parts of the page Scenarios: the story of the running one, and a card with a button for each."""

from typing import Any

import streamlit as st

from control.present import scenarios
from control.present.wording import asked, outcome, starting
from pages._ui import edits, frame, tables
from pages._ui.look import look
from storage import commands

KIND = "scenario"
SHOWN = 20
ACROSS = 2  # cards side by side
MOST_SEED = 2**31 - 1


@st.fragment(run_every=2)
def story(name: str, seed: int) -> None:
    """The story of the running scenario `name`; the page is drawn anew once another one runs."""
    snapshot = look().snapshot
    known = None if snapshot is None else scenarios.running(snapshot)
    if snapshot is None or known is None or (known.name, snapshot["seed"]) != (name, seed):
        edits.redraw()
        return
    now_s = snapshot["sim_s"]
    st.html(tables.note(scenarios.progress(known, now_s)))
    for told in scenarios.story(known, now_s):
        _step(told)
    if known.script:
        st.html(tables.table(scenarios.happenings(known, now_s), "acts"))


def _step(told: scenarios.Told) -> None:
    with st.container(key=f"step-{told.number}-{told.state}", gap="small"):
        st.html(tables.title(f"{told.number}  {told.step.title}", told.when if told.state == "next" else ""))
        st.html(tables.note(told.step.text, told.state))
        if st.button(f"Open {scenarios.PAGES[told.step.page]}", key=f"open-{told.number}", type="tertiary"):
            st.switch_page(f"{told.step.page}.py")


def offered(cards: list[scenarios.Card], seed: int, why_not: str) -> None:
    """A card each, side by side; `why_not` says why none can be started."""
    for first in range(0, len(cards), ACROSS):
        with st.container(key=f"cards-{first}"):
            columns = st.columns(ACROSS, gap="small")
        for column, card in zip(columns, cards[first : first + ACROSS], strict=False):
            with column, st.container(key=f"panel-card-{card.name}", border=True, gap="small"):
                _card(card, seed, bool(why_not))


def _card(card: scenarios.Card, seed: int, disabled: bool) -> None:
    st.html(tables.title(card.title, "running" if card.is_running else ""))
    st.html(tables.note(card.text) + tables.note(card.facts, "facts"))
    label = "Start again" if card.is_running else "Start"
    if st.button(label, key=f"start-{card.name}", disabled=disabled):
        edits.ask(f"Start {card.name}?", _confirm, card.name, seed)


def _confirm(question: int, name: str, seed: int) -> None:
    now: dict[str, Any] = look().snapshot or {"fleet": {}}
    st.write(starting(name, seed, int(now["fleet"].get("active_workflows", 0))))
    with st.container(horizontal=True, gap="small"):
        sent = (question, KIND, {"scenario": name, "seed": seed}, now.get("scenario"))
        if st.button(f"Start {name}", key="confirm-scenario", type="primary", on_click=edits.submit_once, args=sent):
            st.rerun()
        if st.button("Keep what runs", key="keep-scenario"):
            st.rerun()


def seed_of(snapshot: dict[str, Any]) -> int:
    """The seed to start with, the running one's at first."""
    with st.container(key="scenario-seed"):
        value = min(int(snapshot["seed"]), MOST_SEED)
        return int(st.number_input("Seed", 0, MOST_SEED, value=value, step=1, key="seed"))


@st.fragment(run_every=1)
def state() -> None:
    """What became of the newest start."""
    newest = next((r for r in frame.read(commands.recent, SHOWN) if r["kind"] == KIND), None)
    kind, text = (
        (newest["state"], f"{outcome(newest)} ({asked(newest)})")
        if newest
        else ("none", "Nothing started from here yet")
    )
    if problem := edits.problem():
        kind, text = "conflict", problem
    with st.container(key="scenario-state"):
        st.html(tables.state(text, kind))
