"""Active and ended workflows in one list: which is late, by how much, and what it does or where its time went."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from control.present.cells import Cell, Table, duration, signed, workflow
from control.present.ledger import STATES as ENDINGS
from control.present.ledger import worst
from control.present.units import NOTHING, number, quantity, seconds

Row = Mapping[str, Any]
#: The choice that leaves a filter open.
ALL = "all"
RUNNING = "running"
STATUSES = (ALL, RUNNING, *ENDINGS)
#: Rows of a list at first, more with each press, and at most: what a browser still scrolls with ease.
PAGE, MOST = 60, 480
#: Longest number that is searched for, digits.
LONGEST = 18

HEADS = (
    Cell("Workflow", "id"),
    Cell("Status"),
    Cell("Kind"),
    Cell("Tenant"),
    Cell("Stage or main cause", hint="Where an active one is; what took most beyond the plan of one that ended"),
    Cell("Elapsed", "num", hint="Simulated time since its arrival, or from arrival to end"),
    Cell("SLO", "num"),
    Cell("Late by", "num", hint="Elapsed less SLO"),
    Cell("Debt", "num", hint="Against the plan"),
    Cell("Calls", "num", hint="Done, of all"),
)


class Filter(NamedTuple):
    """What the viewer wants to see; ALL, False and "" leave a part open."""

    tenant: str = ALL
    kind: str = ALL
    stage: str = ALL
    status: str = ALL
    late: bool = False
    number: str = ""  # digits that its number begins with


def searched(text: str) -> str | None:
    """The digits that a search asks for, "" for none; None where the text is no number."""
    digits = text.strip().removeprefix("#").strip()
    if not digits:
        return ""
    fits = digits.isascii() and digits.isdecimal() and len(digits) <= LONGEST
    return (digits.lstrip("0") or "0") if fits else None


def choices(detail: Row | None, stored: Mapping[str, Sequence[str]], field: str) -> list[str]:
    """The values of "tenant", "kind" or "stage" among active and ended workflows, or every status; ALL first."""
    if field == "status":
        return list(STATUSES)
    active = {str(row[field]) for row in detail["active"]} if detail else set()
    return [ALL, *sorted(active | set(stored.get(field, ())))]


def active(detail: Row, wanted: Filter) -> list[Row]:
    """The active workflows that fit, those furthest past their deadline first; an exact number before all others."""
    if wanted.status not in (ALL, RUNNING):
        return []
    fitting = [row for row in detail["active"] if _fits(row, wanted)]
    return sorted(fitting, key=lambda row: (str(row["id"]) != wanted.number, -row["late_s"]))


def asks_ended(wanted: Filter) -> bool:
    """Whether ended workflows may fit: they are at no stage any more."""
    return wanted.status != RUNNING and wanted.stage == ALL


def table(going: Sequence[Row], ended: Sequence[Row], causes: Sequence[str], wanted: Filter, limit: int) -> Table:
    """One list: active ones, then those that ended; at most `limit` rows."""
    listed = [(row, _active) for row in going] + [(row, _ended) for row in ended]
    if wanted.number:
        listed.sort(key=lambda pair: str(pair[0]["id"]) != wanted.number)
    return Table(HEADS, [draw(row, causes) for row, draw in listed[:limit]])


def summary(detail: Row, fleet: Row) -> list[tuple[str, str, str, str]]:
    """The figures on top: (label, value, line below, "", "amber" or "late")."""
    listed = detail["active"]
    late = [row for row in listed if row["late_s"] > 0]
    first = max(listed, key=_late_s, default=None)
    next_due = min((row for row in listed if row["late_s"] <= 0), key=lambda row: -row["late_s"], default=None)
    attained = fleet.get("slo_attainment")
    unseen = "+" if late and len(late) == len(listed) < (fleet.get("active_workflows") or 0) else ""
    window = f"of those that ended in the last {seconds(fleet['window_s'])}" if fleet.get("window_s") else ""
    return [
        ("Active", number(fleet.get("active_workflows", len(listed))), _listed(detail, fleet), ""),
        ("Late now", number(len(late)) + unseen, "past their deadline", "late" if late else ""),
        ("Furthest past", duration(first["late_s"]).text if late and first else NOTHING, _who(first if late else None),
         "late" if late else ""),
        ("Due next", duration(-next_due["late_s"]).text if next_due else NOTHING, _who(next_due), ""),
        ("SLO attainment", quantity(attained, "%"), window, ""),
    ]  # fmt: skip


def extent(shown: int, going: int, ended: int, detail: Row, fleet: Row) -> str:
    """How many workflows the shown rows stand for, in words."""
    whole = going + ended
    parts = f"{going:,} active, {ended:,} ended"
    first = f"{number(shown)} of {whole:,}" if shown < whole else f"{whole:,}"
    count, listed = int(fleet.get("active_workflows") or 0), len(detail["active"])
    looked = (
        f"; of {number(count)} active ones only the {number(listed)} furthest past their deadline are looked through"
    )
    return f"{first} ({parts}){looked if listed < count else ''}"


def nobody(wanted: Filter) -> str:
    """The sentence of an empty list."""
    if wanted == Filter():
        return "No workflow is on its way and none has ended yet."
    if wanted.stage != ALL:
        return "No active workflow is at that stage and fits the other filters; ended ones are at no stage any more."
    return (
        "No workflow fits these filters. The store keeps those that ended in the last 24 h, the newest 50,000 at most."
    )


def no_number(text: str) -> str:
    """The sentence for a search that is no number."""
    return f"“{text[:40]}” is not a workflow's number; accepted: its first digits, e.g. 12."


def doing(detail: Row, going: Row) -> list[str]:
    """What an active workflow does now: a sentence for each of its calls that wait, else one for its stage."""
    waits = [
        f"Call {call['call']} ({call['stage']}) waits on {queue['instance']} for {seconds(_round(call['wait_s']))}, "
        f"{number(place)} of {number(queue['total'])} in its queue."
        for queue in detail["queues"]
        for place, call in enumerate(queue["calls"], 1)
        if call["workflow"] == going["id"]
    ]
    talk = next((row for row in detail["conversations"]["rows"] if row["workflow"] == going["id"]), None)
    if talk is not None and talk["state"] == "held":
        waits.append("Its conversation is held: no decoder has room for it.")
    if waits:
        return waits
    if going["stage"] == "tool":
        return ["No call of it waits or runs: a tool works on the answers."]
    return [f"No call of it is known to wait: {going['stage']} runs."]


def own(placed: Sequence[Row], row: Row) -> list[Row]:
    """Placements made within an ended workflow's lifetime: numbers are given anew after a fresh start."""
    first, last = row["arrival_sim_s"] - 1e-6, row["finished_sim_s"] + 1e-6
    return [made for made in placed if first <= made["sim_s"] <= last]


def _fits(row: Row, wanted: Filter) -> bool:
    parts = ((wanted.tenant, "tenant"), (wanted.kind, "kind"), (wanted.stage, "stage"))
    fits = all(asked in (ALL, row[field]) for asked, field in parts)
    return fits and str(row["id"]).startswith(wanted.number) and (not wanted.late or row["late_s"] > 0)


def _active(row: Row, causes: Sequence[str]) -> list[Cell]:
    late = row["late_s"]
    state = Cell("● running", "late") if late > 0 else Cell("● running")
    due = (
        Cell(f"✕ {duration(late).text}", "num late") if late > 0 else Cell(f"{duration(-late).text} left", "num muted")
    )
    calls = f"{number(row['done_calls'])} of {number(row['calls'])}"
    return [*_names(row, state), Cell(str(row["stage"])), *_times(row["elapsed_s"], row["slo_s"], due),
            Cell(signed(row["debt_s"]), "num"), Cell(calls, "num")]  # fmt: skip


def _ended(row: Row, causes: Sequence[str]) -> list[Cell]:
    spent, debt = row.get("ledger"), row.get("debt_s")
    state = Cell(ENDINGS.get(row["state"], str(row["state"])), "muted" if row["state"] == "completed" else "late")
    late = Cell(f"✕ {duration(debt).text}", "num late") if debt else Cell("in time", "num muted")
    if row["state"] != "completed" and not debt:
        late = Cell(NOTHING, "num muted")
    owed = Cell(signed(sum(spent)), "num") if spent else Cell(NOTHING, "num")
    return [*_names(row, state), Cell(worst(causes, spent), "muted"), *_times(row["latency_s"], row["slo_s"], late),
            owed, Cell(number(row["calls"]), "num")]  # fmt: skip


def _names(row: Row, state: Cell) -> list[Cell]:
    return [workflow(int(row["id"])), state, Cell(str(row["kind"])), Cell(str(row["tenant"]))]


def _times(elapsed_s: float | None, slo_s: float | None, late: Cell) -> list[Cell]:
    return [duration(elapsed_s), duration(slo_s), late]


def _listed(detail: Row, fleet: Row) -> str:
    """Whether the list holds all active workflows, in words."""
    listed = len(detail["active"])
    return "on their way" if listed >= (fleet.get("active_workflows") or 0) else f"the {number(listed)} latest listed"


def _who(row: Row | None) -> str:
    return "no workflow" if row is None else f"{row['stage']} of #{row['id']}, {row['tenant']}"


def _late_s(row: Row) -> float:
    return float(row["late_s"])


def _round(value: float) -> float:
    return round(value, 1)
