"""The list of recent changes: commands and what the engine did by itself, newest first.

The marks on the charts come from the same events (`marks`), so both tell one story.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from control.present.marks import MARKED, SCRIPTED
from control.present.wording import Order, asked, inverse, outcome


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


def changes(commands: Sequence[Mapping[str, Any]], events: Iterable[Mapping[str, Any]], limit: int) -> list[Change]:
    """At most `limit` changes from command rows and event rows; events a command caused are not repeated."""
    undone = {c["undo_of"] for c in commands if c["undo_of"] is not None and c["state"] != "refused"}
    rows = list(events)
    replaced = {e["command_id"]: e.get("old") for e in rows if e["command_id"] is not None}
    listed = [_of_command(c, c["id"] in undone, replaced.get(c["id"])) for c in commands]
    listed += [_of_event(e) for e in rows if e["command_id"] is None and e["kind"] in MARKED]
    return sorted(listed, key=lambda c: c.at, reverse=True)[:limit]


def _of_command(row: Mapping[str, Any], undone: bool, replaced: object) -> Change:
    how = "✓ applied, undone" if undone and row["state"] == "applied" else outcome(row)
    prefix = f"undo of #{row['undo_of']}: " if row["undo_of"] is not None else ""
    undo = None if undone else inverse(row, replaced)
    what = prefix + asked(row)
    return Change(f"c{row['id']}", row["created_at"], what, row["author"], row["state"], how, row["id"], undo)


def _of_event(row: Mapping[str, Any]) -> Change:
    text = row["text"] or row["kind"].replace("_", " ")
    author = SCRIPTED.rstrip(": ") if text.startswith(SCRIPTED) else "engine"
    return Change(f"e{row['id']}", row["at"], text.removeprefix(SCRIPTED), author, "event", "")
