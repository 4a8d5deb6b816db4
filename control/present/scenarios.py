"""Scenarios as they are offered and told: cards, the story's current step, and what happens by itself."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from control.present.cells import Cell, Table, duration
from control.present.units import seconds
from control.workload.scenario import Scenario, Step
from control.workload.scenarios import scenarios

#: Titles of the pages that a story opens, by file.
PAGES = {
    "fleet": "Fleet",
    "queues": "Queues",
    "conversations": "Conversations",
    "kv": "KV",
    "power": "Power",
    "debt": "SLO debt",
    "tuning": "Tuning",
}


class Card(NamedTuple):
    """A scenario on offer."""

    name: str
    title: str
    text: str
    facts: str  # name, fleet, policy and length
    is_running: bool


def running(snapshot: Mapping[str, Any]) -> Scenario | None:
    """The scenario that the engine is in; None where it replays a trace or serves real requests."""
    if snapshot.get("gateway_url"):
        return None
    return next((known for known in scenarios() if known.name == snapshot.get("scenario")), None)


def cards(now: Scenario | None) -> list[Card]:
    """All scenarios; `now` is the one that is running."""
    return [
        Card(known.name, known.title, known.text, facts(known), now is not None and known.name == now.name)
        for known in scenarios()
    ]


def facts(known: Scenario) -> str:
    """Name, fleet, policy at the start, and how long the story takes in simulated time."""
    minutes = f"{known.length_s / 60.0:g} min simulated"
    return f"{known.name} · fleet {known.fleet} · policy {known.policy} · {minutes}"


def why_not(snapshot: Mapping[str, Any]) -> str:
    """Why no scenario can be started on this engine; "" where one can."""
    if snapshot.get("gateway_url"):
        return "This engine serves real requests. Start another one with: headway up --demo NAME --db FILE"
    if running(snapshot) is None:
        return "This engine replays a trace. Start another one with: headway up --demo NAME --db FILE"
    return ""


class Told(NamedTuple):
    """A step of the story as it is shown."""

    number: int  # from 1
    step: Step
    state: str  # past | current | next
    when: str  # from which simulated time on


def story(known: Scenario, now_s: float) -> list[Told]:
    """The steps of the story at a simulated time."""
    current = known.step_at(now_s)
    states = ("past", "current", "next")
    return [
        Told(k + 1, step, states[(k > current) - (k < current) + 1], f"from {seconds(step.from_s)}")
        for k, step in enumerate(known.story)
    ]


def strip(told: list[Told]) -> str:
    """The current step in a line."""
    now = next(part for part in told if part.state == "current")
    return f"Story {now.number} of {len(told)}: {now.step.title}. {now.step.text}"


def progress(known: Scenario, now_s: float) -> str:
    """How far the story is."""
    if now_s > known.length_s:
        return f"Told at {seconds(known.length_s)}; the load goes on."
    return f"{seconds(round(now_s))} of {seconds(known.length_s)} simulated."


def happenings(known: Scenario, now_s: float) -> Table:
    """What happens by itself, in order of time, and whether it has."""
    heads = (Cell("At", "num"), Cell("What happens by itself"), Cell(""))
    rows = [
        (duration(act.at_s), Cell(act.words), Cell("done", "good"))
        if act.at_s <= now_s
        else (duration(act.at_s, "num muted"), Cell(act.words), Cell(f"in {seconds(round(act.at_s - now_s))}", "muted"))
        for act in known.script
    ]
    return Table(heads, rows)
