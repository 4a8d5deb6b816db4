"""Power caps: whom one can be set for, between which bounds, and what it would do to time and energy."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from control.model.costs import CostTable, cost_table
from control.model.hardware import profile
from control.model.power import cap_factors
from control.present.cells import Cell, Table, measured
from control.present.units import number

Row = Mapping[str, Any]
ALL = "all"
#: Times that differ by less than this share count as alike.
ALIKE = 0.02


class Bounds(NamedTuple):
    """Smallest and largest cap that all instances of a target take, whole W per GPU."""

    low_w: float
    high_w: float


class Effect(NamedTuple):
    """What a cap does to one kind of instance: as it is and as it would be; W per GPU, J per prefill token."""

    gpu: str
    prefill_x: float  # time of a full prefill batch, over that under the cap in force
    decode_x: float  # time of a decode iteration, same
    decode_w: tuple[float, float]  # a GPU of it with a full batch
    prefill_j: tuple[float, float]  # per token of a full prefill batch


def targets(rows: Sequence[Row]) -> list[str]:
    """Whom a cap can be set for: tiers where there are several, all, each instance."""
    roles = list(dict.fromkeys(str(row["role"]) for row in rows))
    return [*(roles if len(roles) > 1 else []), ALL, *(str(row["instance"]) for row in rows)]


def chosen(rows: Sequence[Row], target: str) -> list[Row]:
    """The instances that a target names."""
    return [row for row in rows if target in (ALL, row["role"], row["instance"])]


def bounds(rows: Sequence[Row]) -> Bounds | None:
    """The caps that all of `rows` take; None where they share none."""
    low_w, high_w = max(row["lowest_cap_w"] for row in rows), min(row["tdp_w"] for row in rows)
    return Bounds(float(math.ceil(low_w)), float(math.floor(high_w))) if math.ceil(low_w) < high_w else None


def in_force(rows: Sequence[Row]) -> float | str:
    """The cap that all of `rows` have, W per GPU, as a command expects it; "no cap" and "mixed" in words."""
    caps = {row["cap_w"] for row in rows}
    cap_w = next(iter(caps))
    return "mixed" if len(caps) > 1 else "no cap" if cap_w is None else float(cap_w)


def cap_words(cap_w: float | str | None) -> str:
    """A cap in words."""
    if cap_w is None or isinstance(cap_w, str):
        return cap_w or "no cap"
    return f"{number(cap_w)} W per GPU"


def effects(rows: Sequence[Row], cap_w: float | None) -> list[Effect]:
    """The effect of capping `rows` at `cap_w` W per GPU (None: not at all), one for each kind of instance.

    Where the power of a GPU is not known, nothing is foretold of it.
    """
    kinds = {(row["gpu"], row["model"], row["gpus"], row["cap_w"]): row for row in rows if row["tdp_w"] > 0.0}
    return [effect(row, cap_w) for row in kinds.values()]


def effect(row: Row, cap_w: float | None) -> Effect:
    """The effect on one instance, from the same cost and power model that the engine runs."""
    found = profile(row["gpu"], row["model"], row["gpus"], 1, row.get("profile"))
    seqs, tokens = row["max_num_seqs"], row["max_num_batched_tokens"]
    before, after = (cost_table(found, seqs, tokens, cap) for cap in (row["cap_w"], cap_w))
    limits = [found.tdp_w if cap is None else cap for cap in (row["cap_w"], cap_w)]
    slower = [cap_factors(found, limit_w).decode for limit_w in limits]
    prefill = [prefill_ms(table, tokens) for table in (before, after)]
    joules = [table.prefill_w * ms * 1e-3 / tokens for table, ms in zip((before, after), prefill, strict=True)]
    watts = [float(table.power_w[seqs]) / row["gpus"] for table in (before, after)]
    return Effect(
        str(row["gpu"]),
        prefill[1] / prefill[0],
        slower[1] / slower[0],
        (watts[0], watts[1]),
        (joules[0], joules[1]),
    )


def prefill_ms(table: CostTable, tokens: int) -> float:
    """Time of one batch of `tokens` prefill tokens of a fresh prompt, ms."""
    base_ms = table.mix_base_ms + table.mix_token_ms * tokens if table.additive else float(table.mix_ms[tokens])
    return base_ms + table.mix_area_ms * 0.5 * tokens * tokens


def predicted(found: Sequence[Effect]) -> Table:
    """The effects as a table: a column for each kind of GPU."""
    heads = [Cell("Predicted"), *(Cell(one.gpu, "num") for one in found)]
    return Table(
        heads,
        [
            [Cell("Prefill time"), *(_factor(one.prefill_x) for one in found)],
            [Cell("Decode time"), *(_factor(one.decode_x) for one in found)],
            [Cell("Full decode, W per GPU"), *(_change(*one.decode_w, "W") for one in found)],
            [Cell("Prefill, J per token"), *(_change(*one.prefill_j, "J") for one in found)],
        ],
    )


def _factor(times: float) -> Cell:
    """A factor on a time; within 2 %, which no fit tells apart, it is neither good nor bad."""
    if abs(times - 1.0) <= ALIKE:
        return Cell(f"×{times:.2f}", "num")
    return Cell(f"▲ ×{times:.2f}", "num amber") if times > 1.0 else Cell(f"▼ ×{times:.2f}", "num good")


def _change(before: float, after: float, unit: str) -> Cell:
    scale, unit = (1e3, "mJ") if unit == "J" else (1.0, unit)
    texts = [measured(scale * value, unit) for value in (before, after)]
    return Cell(texts[0] if texts[0] == texts[1] else f"{texts[0]} → {texts[1]}", "num")
