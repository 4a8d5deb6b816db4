"""The audit: every command and every event, with author, time, old and new value, outcome, and what undoes it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from control.present.caps import cap_words
from control.present.cells import Cell, Table, duration
from control.present.changes import Change, Undo, of_command, of_event
from control.present.marks import value_of
from control.present.units import NOTHING, counted, number, quantity
from control.present.wording import asked, retention_words

Row = Mapping[str, Any]
#: The choice that leaves a filter open.
ALL = "all"
#: The author and the outcome of what the engine did by itself.
ENGINE, EVENT = "engine", "by itself"
OUTCOMES = (ALL, "pending", "applied", "refused", EVENT)
#: Rows of the list at first, more with each press, and at most.
PAGE, MOST = 50, 500

HEADS = (
    Cell("Time"),
    Cell("Simulated", "num", hint="Simulated time when it was decided, or since the engine began to serve"),
    Cell("What"),
    Cell("Old → new"),
    Cell("By", hint="Who asked, and from which address where one is known"),
    Cell("Outcome"),
    Cell(""),
)
_INSTANCE = ("drain", "undrain", "kill", "revive")
#: Kinds whose payload is no value that was set: the words of what was asked say all of it.
_DEEDS = frozenset({"whatif", "apply_whatif", "undo_whatif", "end_guard", "shadows", "regret"})
_SUBJECTS = {
    "alpha": "α", "policy": "policy", "speed": "speed", "load_scale": "load", "tuning_mode": "tuning",
    "step": "step", "tune": "run tuning", "release_alpha": "release α", "retention": "retention",
    "kv_retention": "retention", "power_caps": "power caps",
}  # fmt: skip


class Filter(NamedTuple):
    """What the viewer wants to see; ALL leaves a part open."""

    change: str = ALL
    author: str = ALL
    outcome: str = ALL


class Entry(NamedTuple):
    """One line of the audit."""

    change: Change
    sim_s: float | None
    what: str
    values: str  # old → new, "" where nothing has one


def choices(stored: Mapping[str, Sequence[str]], field: str) -> list[str]:
    """The values of "change" (its kind), "author" or "outcome"; ALL first."""
    if field == "outcome":
        return list(OUTCOMES)
    if field == "author":
        return [ALL, ENGINE, *(name for name in stored["author"] if name != ENGINE)]
    return [ALL, *stored["kind"]]


def asks_commands(wanted: Filter) -> bool:
    """Whether commands may fit."""
    return wanted.author != ENGINE and wanted.outcome != EVENT


def asks_events(wanted: Filter) -> bool:
    """Whether what the engine did by itself may fit."""
    return wanted.author in (ALL, ENGINE) and wanted.outcome in (ALL, EVENT)


def entries(
    commands: Sequence[Row], caused: Mapping[int, Row], events: Sequence[Row], undo: Undo, limit: int
) -> list[Entry]:
    """At most `limit` lines, newest first; `caused`: the event of each command, `events`: those without one."""
    listed = [_of_command(row, caused.get(row["id"]), undo) for row in commands] + [_of_event(row) for row in events]
    return sorted(listed, key=lambda entry: entry.change.at, reverse=True)[:limit]


def extent(shown: int, total: int) -> str:
    """How many entries the shown rows stand for, in words."""
    return counted(total, "entry", "entries") if shown >= total else f"The newest {number(shown)} of {total:,} entries"


def nobody(wanted: Filter) -> str:
    """The sentence of an empty list."""
    if wanted != Filter():
        return "No entry fits these filters."
    return "Nothing has happened on this store yet. Commands and events appear here with their author."


def heads() -> Table:
    """The heads alone."""
    return Table(HEADS, [])


def row(entry: Entry, when: Callable[[float], tuple[str, str]]) -> list[Cell]:
    """The cells of a line; `when` gives an epoch s as the viewer's time, short and in full."""
    short, full = when(entry.change.at)
    state = {"refused": "late", "pending": "amber", "event": "muted"}.get(entry.change.state, "")
    return [
        Cell(short, hint=full),
        duration(entry.sim_s),
        Cell(entry.what),
        Cell(entry.values, "muted" if entry.values == NOTHING else ""),
        Cell(entry.change.author, "muted" if entry.change.state == "event" else "", hint=entry.change.author),
        Cell(entry.change.outcome or EVENT, state, hint=entry.change.outcome),
        Cell(""),
    ]


def segments(listed: Sequence[Entry]) -> list[list[Entry]]:
    """The lines in runs that are drawn at once: one that can be undone stands alone, beside its button."""
    runs: list[list[Entry]] = []
    for entry in listed:
        if entry.change.undo is not None or not runs or runs[-1][-1].change.undo is not None:
            runs.append([])
        runs[-1].append(entry)
    return runs


def value_words(kind: str, value: object) -> str:
    """An old or a new value in words; "" for none."""
    bare = value_of(value)
    if bare is None or isinstance(bare, bool):
        return ""
    if isinstance(bare, Mapping):
        return _settings(bare)
    if not isinstance(bare, int | float):
        return str(bare)
    words = {"speed": f"×{bare:g}", "load_scale": f"×{bare:g}", "alpha": f"{bare:.2f}"}
    words |= {"step": quantity(float(bare), "s"), "tuning": f"α {bare:.2f} found"}
    return words.get(kind, f"{bare:g}")


def _settings(value: Mapping[str, Any]) -> str:
    """Retention or caps by instance in words."""
    if "idle_ttl_s" in value:
        return retention_words(value)
    caps = {cap_words(cap) for cap in value.values()}
    whose = "" if len(value) == 1 else f" on {len(value)} instances"
    return f"{caps.pop()}{whose}" if len(caps) == 1 else f"{len(caps)} different caps{whose}"


def _of_command(row: Row, event: Row | None, undo: Undo) -> Entry:
    kind, payload = str(row["kind"]), row["payload"] if isinstance(row["payload"], Mapping) else {}
    old, new = (event.get("old"), event.get("new")) if event else (row["expected"], _asked(kind, payload))
    prefix = f"undo of #{row['undo_of']}: " if row["undo_of"] is not None else ""
    what = f"#{row['id']} {prefix}{_subject(row, kind, payload)}"
    values = (event or {}).get("text") or NOTHING if kind in _DEEDS else _values(kind, old, new)
    return Entry(of_command(row, undo), row["sim_s"], what, values)


def _of_event(row: Row) -> Entry:
    change = of_event(row)
    return Entry(change, row["sim_s"], change.what, _values(str(row["kind"]), row["old"], row["new"]))


def _asked(kind: str, payload: Mapping[str, Any]) -> object:
    """The new value a command without an event asks for."""
    if kind == "power_cap":
        return cap_words(payload.get("cap_w"))
    if kind in ("scenario", "slow"):
        return payload.get("scenario", payload.get("factor"))
    return None if kind in (*_INSTANCE, "cancel") else payload or None


def _subject(row: Row, kind: str, payload: Mapping[str, Any]) -> str:
    """What a command is about."""
    if kind in _INSTANCE:
        return f"{kind} {payload.get('instance', '')}"
    if kind == "cancel":
        return f"give up workflow #{payload.get('workflow', '')}"
    if kind == "power_cap":
        return f"power cap of {payload.get('tier', '')}"
    if kind in _DEEDS:
        return asked(row)
    return _SUBJECTS.get(kind, kind.replace("_", " "))


def _values(kind: str, old: object, new: object) -> str:
    before, after = value_words(kind, old), value_words(kind, new)
    return f"{before} → {after}" if before and after else after or NOTHING
