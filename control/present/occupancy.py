"""The KV caches: what fills them, how many more conversations fit, and who holds most."""

from collections.abc import Mapping
from typing import Any

from control.present.cells import Cell, Table, amount, conversation, count, instance, measured, percent, share
from control.present.conversations import state
from control.present.groups import most, short_of
from control.present.live import Limits
from control.present.units import NOTHING, number

INSTANCE_HEADS = (
    Cell("Instance", "id"),
    Cell("Tier"),
    Cell("Capacity", "num"),
    Cell("Running", "num", hint="KV of calls in a batch"),
    Cell("Idle pinned", "num", hint="Contexts kept for conversations between their turns"),
    Cell("Other cached", "num", hint="Prefixes and contexts that nobody is bound to; given up first"),
    Cell("Free", "num"),
    Cell("Reserved", "num", hint="Set aside for conversations, whether their KV is there or not"),
    Cell("Room for", "num", hint="Conversations of mean size that would still fit"),
    Cell("Preempted", "num", hint="Calls that lost their KV for others, so far"),
    Cell("Evicted", "num", hint="Cached tokens given up for others, so far"),
    Cell("Sent", "num", hint="KV transfers begun from here, so far"),
)


def summary(shown: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The figures on top: (label, value, line below, "", "amber" or "late")."""
    rows, limits = shown["rows"], Limits()
    total = {name: sum(row[name] for row in rows) for name in rows[0] if name.endswith("_tokens")}
    used = total["running_tokens"] / total["capacity_tokens"]
    state = "late" if used >= limits.kv_red else "amber" if used >= limits.kv_amber else ""
    room = [row["headroom"] for row in rows if row["headroom"] is not None]
    mean = shown["mean_context_tokens"]
    full = bool(room) and sum(room) < 1
    fits = f"of {_tokens(mean)}, the mean now" if mean else "none is open to judge by"
    sent = sum(row["sent"] for row in rows)
    return [
        ("Running", percent(used), f"of {_tokens(total['capacity_tokens'])}", state),
        ("Idle pinned", _share(total, "pinned_tokens"), f"other cached {_share(total, 'cached_tokens')}", ""),
        (
            "Room for",
            f"{number(int(sum(room)))}" if room else NOTHING,
            f"conversations {fits}",
            "amber" if full else "",
        ),
        ("Given up", _tokens(total["evicted_tokens"]), f"evicted; {_preempted(rows)}", ""),
        ("KV moved", number(sent), f"transfers, {_tokens(total['sent_tokens'])}", ""),
    ]


def instances(shown: Mapping[str, Any]) -> Table:
    """One row an instance; of a large fleet the LISTED fullest caches."""
    rows = most(shown["rows"], lambda row: row["running_tokens"] / row["capacity_tokens"])
    return Table(INSTANCE_HEADS, [_instance(row) for row in rows])


def left_out(shown: Mapping[str, Any]) -> str:
    """A sentence on the instances that the table does not hold, "" where it holds all."""
    return short_of(shown["rows"], "fullest caches")


def holders(shown: Mapping[str, Any]) -> Table:
    """The conversations that hold most, with a bar by size."""
    heads = [Cell("Workflow", "id"), Cell("Tenant"), Cell("On", "id"), Cell("", "size"), Cell("KV", "num"), Cell("")]
    most = max((row["kv_tokens"] for row in shown["holders"]), default=1)
    return Table(heads, [_holder(row, most) for row in shown["holders"]])


def _instance(row: Mapping[str, Any]) -> list[Cell]:
    whole, limits = row["capacity_tokens"], Limits()
    used = row["running_tokens"] / whole
    sign = "✕ " if used >= limits.kv_red else "▲ " if used >= limits.kv_amber else ""
    kind = {"✕ ": "num late", "▲ ": "num amber"}.get(sign, "num")
    return [
        instance(row),
        Cell(str(row["role"])),
        amount(whole, "tok"),
        Cell(sign + percent(used), kind),
        share(row["pinned_tokens"] / whole),
        share(row["cached_tokens"] / whole),
        share(row["free_tokens"] / whole),
        share(row["reserved_tokens"] / whole) if row["reserved_tokens"] else Cell(NOTHING, "num muted"),
        Cell(NOTHING if row["headroom"] is None else number(int(row["headroom"])), "num"),
        count(row["preemptions"]),
        amount(row["evicted_tokens"], "tok"),
        Cell(f"{number(row['sent'])}", "num", hint=_tokens(row["sent_tokens"])),
    ]


def _holder(row: Mapping[str, Any], most: float) -> list[Cell]:
    return [
        conversation(int(row["workflow"])),
        Cell(str(row["tenant"])),
        Cell(str(row["instance"] or "none"), "id"),
        Cell("", "size", bar=row["kv_tokens"] / most),
        amount(row["kv_tokens"], "tok"),
        state(row["state"]),
    ]


def _share(total: Mapping[str, float], name: str) -> str:
    return percent(total[name] / total["capacity_tokens"])


def _tokens(value: float) -> str:
    return measured(value, "tokens")


def _preempted(rows: list[Mapping[str, Any]]) -> str:
    calls = sum(row["preemptions"] for row in rows)
    return f"{number(calls)} call{'' if calls == 1 else 's'} preempted"
