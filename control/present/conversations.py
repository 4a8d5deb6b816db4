"""Conversations: where each is kept, what it holds, how its turns went. The engine's rows in, cells and words out."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from control.present.cells import Cell, Table, amount, conversation, count, duration, measured, share
from control.present.gantt import BREAKS, TURN
from control.present.units import number, seconds

#: The choice that leaves a filter open.
ALL = "all"
NOWHERE = "none"
#: States in words, each with a sign.
STATES = {
    "idle": "◌ idle",
    "waiting": "… waiting",
    "prefill": "● prefill",
    "decode": "● decode",
    "transfer": "→ moving",
    "held": "▲ held",
}
HEADS = (
    Cell("Workflow", "id"),
    Cell("Tenant"),
    Cell("Decoder", "id", hint="Where its KV is kept; none: nowhere. · marks one that no policy pins there"),
    Cell("State"),
    Cell("KV", "num", hint="Tokens it holds in a KV cache now"),
    Cell("Reserved", "num", hint="Tokens set aside for it on its decoder"),
    Cell("Idle", "num", hint="Time since its last turn ended"),
    Cell("Turns", "num", hint="Turns that ended, of those to come in all"),
    Cell("Cached", "num", hint="Input tokens of its turns found in a cache, KV that was moved there included"),
    Cell("TTFET", "num", hint="So far: from its arrival to the first token of its latest turn"),
    Cell("Breaks", "num", hint="Turns that found their KV or their decoder gone"),
    Cell("Last cause"),
    Cell("Moved", "num", hint="Times its KV was moved between instances"),
)


class Filter(NamedTuple):
    """What the viewer wants to see; ALL leaves a part open."""

    decoder: str = ALL
    tenant: str = ALL
    state: str = ALL


def choices(shown: Mapping[str, Any], field: str) -> list[str]:
    """The values of "decoder", "tenant" or "state" among the listed conversations, ALL first."""
    return [ALL, *sorted({str(row[field] or NOWHERE) for row in shown["rows"]})]


def matching(shown: Mapping[str, Any], wanted: Filter) -> list[Mapping[str, Any]]:
    """The listed conversations that the filter leaves."""
    asked = [(field, value) for field, value in wanted._asdict().items() if value != ALL]
    return [row for row in shown["rows"] if all(str(row[field] or NOWHERE) == value for field, value in asked)]


def summary(shown: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The figures on top: (label, value, line below, "" or "amber")."""
    rows, held = shown["rows"], shown["held"]
    idle = sum(row["state"] == "idle" for row in rows)
    listed = "" if len(rows) == shown["open"] else f" of the {number(len(rows))} listed"
    moved = measured(shown["transferred_tokens"], "tokens")
    return [
        ("Open", number(shown["open"]), f"{number(idle)} idle, between turns{listed}", ""),
        ("Pinned", number(shown["pinned"]), "kept on one decoder", ""),
        ("Held", number(held), "wait for a decoder with room", "amber" if held else ""),
        ("Breaks", number(shown["breaks"]), "turns that found their KV gone, so far", ""),
        ("KV moved", number(shown["transfers"]), f"transfers so far, {moved}; {number(shown['moving'])} now", ""),
    ]


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The pin table."""
    return Table(HEADS, [_row(row) for row in rows])


def extent(shown: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """What the shown rows stand for, in words."""
    listed = len(shown["rows"])
    left = f" of {number(listed)} listed" if len(rows) < listed else ""
    beyond = f"; {number(shown['open'] - listed)} more are open" if shown["open"] > listed else ""
    return f"{number(len(rows))}{left}{beyond}: held ones first, then those that lost their KV, then by KV"


def nobody(shown: Mapping[str, Any], policy: str) -> str:
    """The sentence of an empty table."""
    if shown["open"]:
        return f"No open conversation matches these filters; {number(shown['open'])} are open in all."
    return (
        f"No conversation is open under {policy}. They come from agents: `headway up --demo agents` shows some, "
        "kept on decoders apart from the prefill tier."
    )


def state(name: str) -> Cell:
    """The state of a conversation: its sign and word."""
    return Cell(STATES.get(name, name), {"held": "amber", "idle": "muted"}.get(name, ""))


def timeline(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The newest turns of an open conversation as the timeline draws them."""
    turns = [dict(zip(TURN, turn, strict=True)) for turn in row["turn_rows"]]
    begun = row["turns"] + (0 if row["state"] == "idle" else 1)
    first = max(1, begun - len(turns) + 1)
    known = {"critical": False, "budget_s": None, "call": ""}
    return [turn | known | {"stage": f"turn {first + k}", "group": k} for k, turn in enumerate(turns)]


def facts(row: Mapping[str, Any]) -> str:
    """An open conversation in one line."""
    where = f"on {row['decoder']}" if row["decoder"] else "its KV is nowhere"
    idle = f" for {seconds(row['idle_s'])}" if row["idle_s"] is not None else ""
    state = STATES.get(row["state"], row["state"]).split(" ", 1)[1]
    turns = f"{number(row['turns'])} of {number(row['of_turns'])} turns ended"
    return f"{row['tenant']}, {where}, {state}{idle}, {turns}, {_broke(row)}; open for {seconds(row['elapsed_s'])}"


def unlisted(number_: int) -> str:
    """The sentence for a conversation that is not listed."""
    return f"Conversation #{number_} is not among those listed: it has ended, or others come before it."


def _broke(row: Mapping[str, Any]) -> str:
    if not row["breaks"]:
        return "never broke"
    times = f"{number(row['breaks'])} time{'s' if row['breaks'] > 1 else ''}"
    return f"broke {times}, last because {BREAKS.get(row['break_cause'], row['break_cause'])}"


def _again(row: Mapping[str, Any]) -> str:
    """What the breaks of a conversation have cost so far, in words."""
    return f"{number(row.get('recomputed_tokens', 0))} tokens of its history computed again"


def _row(row: Mapping[str, Any]) -> list[Cell]:
    cause = row["break_cause"]
    home = f"{row['decoder']}{'' if row['pinned'] else ' ·'}" if row["decoder"] else NOWHERE
    return [
        conversation(int(row["workflow"])),
        Cell(str(row["tenant"])),
        Cell(home, "id" if row["decoder"] else "muted", hint="" if row["pinned"] else "Not pinned"),
        state(row["state"]),
        amount(row["kv_tokens"], "tok"),
        amount(row["reserved_tokens"] or None, "tok"),
        duration(row["idle_s"]),
        Cell(f"{number(row['turns'])} of {number(row['of_turns'])}", "num"),
        share(row["cached_share"]),
        duration(row["ttfet_s"]),
        Cell(f"✕ {number(row['breaks'])}", "num late", hint=_again(row)) if row["breaks"] else Cell("0", "num muted"),
        Cell(str(cause).replace("_", " "), hint=BREAKS.get(cause, "")) if cause else Cell("", "muted"),
        count(row["moved"]),
    ]
