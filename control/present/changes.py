"""The list of recent changes: commands and what the engine did by itself, newest first.

The marks on the charts come from the same events (`marks`), so both tell one story.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from control.present.marks import MARKED, SCRIPTED, value_of
from control.present.wording import Order, asked, inverse, outcome

_INSTANCE = frozenset({"drain", "undrain", "kill", "revive"})
_CAPS = frozenset({"power_cap", "power_caps"})
#: What puts a setting of a fork in force, and what ends that.
_APPLIED, FORK = frozenset({"apply_whatif", "undo_whatif", "rolled_back"}), "fork"
#: Events after which nothing holds of what was changed before: the engine began from nothing.
_ANEW = frozenset({"engine_started", "engine_fresh", "scenario"})


class Change(NamedTuple):
    """One line of the list: epoch s, what, by whom, how it went, and what undoes it (None: nothing does)."""

    id: str
    at: float
    what: str
    author: str
    state: str  # pending | applied | refused | event
    outcome: str
    command_id: int | None = None
    undo: Order | None = None


class Undo(NamedTuple):
    """What can still be taken back, by the command's id, the commands that were, and those whose undo is under way."""

    orders: Mapping[int, Order]
    done: frozenset[int]
    under_way: frozenset[int] = frozenset()


def changes(
    commands: Sequence[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]],
    limit: int,
    kinds: Sequence[str] = (),
) -> list[Change]:
    """At most `limit` changes from command rows and event rows; events a command caused are not repeated.

    With `kinds` only those; what can be undone is judged by all rows all the same.
    """
    rows = list(events)
    undo = undo_of(commands, rows)
    listed = [of_command(c, undo) for c in commands if not kinds or c["kind"] in kinds]
    own = [e for e in rows if e["command_id"] is None and e["kind"] in MARKED]
    listed += [of_event(e) for e in own if not kinds or e["kind"] in kinds]
    return sorted(listed, key=lambda c: c.at, reverse=True)[:limit]


def undo_of(commands: Sequence[Mapping[str, Any]], events: Iterable[Mapping[str, Any]]) -> Undo:
    """What can be undone of these commands: the newest change of each thing, where it has an inverse.

    What was changed again since, by anybody, cannot; nor can an undo, what was undone, or what an engine of before did.
    """
    rows = list(events)
    caused = {e["command_id"]: e for e in rows if e["command_id"] is not None}
    undoing = [c for c in commands if c["undo_of"] is not None and c["state"] != "refused"]
    done = frozenset(c["undo_of"] for c in undoing)
    under_way = frozenset(c["undo_of"] for c in undoing if c["state"] == "pending")
    history = [(_at(c), 1, c["id"], c) for c in commands if c["state"] != "refused"]
    history += [(e["at"], 0, e["id"], e) for e in rows if e["command_id"] is None]
    orders: dict[int, Order] = {}
    touched: set[str] = set()
    for _, is_command, number, row in sorted(history, key=lambda entry: entry[:3], reverse=True):
        if row["kind"] in _ANEW and not (is_command and row["state"] != "applied"):
            break
        event = caused.get(number) if is_command else row
        things = _things(row, event)
        if is_command and row["undo_of"] is None and number not in done and not things & touched:
            order = inverse(row, event.get("old") if event else None)
            orders |= {number: order} if order is not None else {}
        if not (is_command and things == {FORK} and (row["undo_of"] is not None or number in done)):
            touched |= things  # an application that was taken back leaves the way free to the one before
    return Undo(orders, done, under_way)


def of_command(row: Mapping[str, Any], undo: Undo) -> Change:
    """The line of a command."""
    undone = row["id"] in undo.done and row["state"] == "applied"
    fate = "undo pending" if row["id"] in undo.under_way else "undone"
    how = f"{outcome(row)}, {fate}" if undone else outcome(row)
    prefix = f"undo of #{row['undo_of']}: " if row["undo_of"] is not None else ""
    order = undo.orders.get(row["id"])
    what = prefix + asked(row)
    return Change(f"c{row['id']}", row["created_at"], what, row["author"], row["state"], how, row["id"], order)


def of_event(row: Mapping[str, Any]) -> Change:
    """The line of what the engine, or the scenario it runs, did by itself."""
    text = row["text"] or row["kind"].replace("_", " ")
    author = SCRIPTED.rstrip(": ") if text.startswith(SCRIPTED) else "engine"
    return Change(f"e{row['id']}", row["at"], text.removeprefix(SCRIPTED), author, "event", "")


def _at(command: Mapping[str, Any]) -> float:
    return float(command.get("decided_at") or command["created_at"])


def _things(row: Mapping[str, Any], event: Mapping[str, Any] | None) -> set[str]:
    """Names of what a command or an event of the engine's own changed."""
    kind, payload = str(row["kind"]), row.get("payload")
    if kind in _INSTANCE:
        name = payload.get("instance") if isinstance(payload, Mapping) else row.get("target")
        return {f"state of {name}"}
    if kind == "slow":
        name = payload.get("instance") if isinstance(payload, Mapping) else row.get("target")
        return {f"speed of {name}"}
    if kind in _CAPS:
        caps = value_of(event.get("new")) if event else None
        return {f"cap of {name}" for name in caps} if isinstance(caps, Mapping) else {"caps"}
    if kind in _APPLIED:
        return {FORK}
    return {"clock"} if kind in ("pause", "resume") else {kind}
