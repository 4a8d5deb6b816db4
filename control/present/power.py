"""Power and energy: watts against caps, joules by what they were drawn for, per tier and per instance."""

from collections.abc import Mapping, Sequence
from typing import Any

from control.present.caps import cap_words
from control.present.cells import Cell, Table, amount, instance, measured, percent, share
from control.present.groups import most, short_of
from control.present.units import number, seconds

Row = Mapping[str, Any]
SHARES = ("prefill", "decode", "idle")


def summary(shown: Row) -> list[tuple[str, str, str, str]]:
    """The figures on top: (label, value, line below, "")."""
    tiers, span = shown["tiers"], f"last {seconds(shown['window_s'])}"
    watts, limit = (sum(tier[name] for tier in tiers) for name in ("power_w", "limit_w"))
    joules = {name: sum(tier[f"{name}_j"] for tier in tiers) for name in SHARES}
    total = sum(joules.values()) or 1.0
    parts = ", ".join(f"{name} {round(100 * joules[name] / total)} %" for name in SHARES[:2])
    busy, billed = shown["tokens_per_joule"], shown["tokens_per_joule_idle_billed"]
    per_workflow = shown["joules_per_workflow_idle_billed"]
    return [
        ("Power", measured(watts, "W"), f"of {measured(limit, 'W')} allowed", ""),
        ("Context per joule", measured(billed, "tok/J"), f"idle billed, {span}", ""),
        ("Without idle", measured(busy, "tok/J"), f"idle not billed, {span}", ""),
        ("Per workflow", measured(per_workflow, "J"), f"without idle {_workflow(shown)}", ""),
        ("Idle share", percent(joules["idle"] / total), f"of the energy so far; {parts}", ""),
    ]


def tiers(shown: Row) -> Table:
    """One row a tier."""
    heads = [Cell("Tier"), Cell("GPUs", "num"), Cell("Power", "num"), Cell("Allowed", "num"), Cell("Cap")]
    heads += [Cell("Energy", "num", hint="Drawn so far"), *(Cell(name.capitalize(), "num") for name in SHARES)]
    heads += [Cell("Tokens per J", "num", hint="Prompt tokens computed and tokens generated, per joule drawn")]
    return Table(heads, [_tier(tier, shown["rows"]) for tier in shown["tiers"]])


def instances(shown: Row) -> Table:
    """One row an instance; of a large fleet the LISTED that draw most."""
    heads = [Cell("Instance", "id"), Cell("Tier"), Cell("GPU"), Cell("Power", "num"), Cell("Cap", "num")]
    heads += [Cell("TDP", "num", hint="W per GPU"), Cell("Idle", "num", hint="Draw while idle")]
    heads += [Cell("Energy", "num", hint="Drawn so far"), *(Cell(f"{name.capitalize()} J", "num") for name in SHARES)]
    heads += [Cell("Tokens per J", "num", hint="Prompt tokens computed and tokens generated, per joule drawn")]
    return Table(heads, [_instance(row) for row in most(shown["rows"], lambda row: row["power_w"])])


def left_out(shown: Row) -> str:
    """A sentence on the instances that the table does not hold, "" where it holds all."""
    return short_of(shown["rows"], "instances that draw most now")


def _tier(tier: Row, rows: Sequence[Row]) -> list[Cell]:
    joules = [tier[f"{name}_j"] for name in SHARES]
    mine = [row for row in rows if row["role"] == tier["role"]]
    gpus = sum(row["gpus"] for row in mine)
    drawing = sum(row["gpus"] for row in mine if row.get("state") != "down")
    return [
        Cell(str(tier["role"])),
        Cell(number(gpus) if drawing == gpus else f"{number(drawing)} of {number(gpus)} up", "num"),
        amount(tier["power_w"], "W"),
        amount(tier["limit_w"], "W"),
        Cell(_caps(tier)),
        amount(sum(joules), "J"),
        *(_part(value, sum(joules)) for value in joules),
        amount(tier["tokens_per_joule"], "tok/J"),
    ]


def _caps(tier: Row) -> str:
    if not tier["caps_w"]:
        return "no cap"
    if len(tier["caps_w"]) == 1 and not tier["uncapped"]:
        return cap_words(tier["caps_w"][0])
    return "mixed"


def _instance(row: Row) -> list[Cell]:
    joules = [row[f"{name}_j"] for name in SHARES]
    name = row["gpu"] if row["gpus"] == 1 else f"{row['gpus']} × {row['gpu']}"
    return [
        instance(row),
        Cell(str(row["role"])),
        Cell(name),
        amount(row["power_w"], "W"),
        Cell("no cap", "num muted") if row["cap_w"] is None else amount(row["cap_w"], "W"),
        amount(row["tdp_w"], "W"),
        amount(row["idle_w"], "W"),
        amount(sum(joules), "J"),
        *(_part(value, sum(joules)) for value in joules),
        amount(row["tokens_per_joule"], "tok/J"),
    ]


def _part(value: float, total: float) -> Cell:
    part = share(value / total if total else None)
    return part._replace(heat=None, hint=measured(value, "J"))


def _workflow(shown: Row) -> str:
    return measured(shown["joules_per_workflow"], "J")
