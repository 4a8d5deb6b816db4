"""What placements were decided on, as it is stored: the instances that were compared, and why others were not."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from control.engine.state import Live
from control.policy.codes import CANDIDATE, FILTERS
from control.policy.tables import Ints, Record, Table

Row = dict[str, Any]
MOST_AT_ONCE = 100  # taken out of the world at a time where nothing else is said
MOST_INSTANCES = 16  # listed in a receipt, the best first
DIGITS = 6  # significant ones of what is stored


class Receipts(NamedTuple):
    """Receipts of calls that were placed, copied."""

    rows: Ints  # [placed] row in `table`, -1: none was kept
    table: Table  # RECEIPT [kept, n]
    ages_s: list[float | None]  # [n] how old what is known of each instance was; None: nothing is known of it


@dataclass
class Allowance:
    """How many receipts may be kept: so many a wall second, and a burst of as many."""

    per_s: float = 100.0
    clock: Callable[[], float] = time.monotonic
    left: float = 100.0
    filled_s: float = field(init=False)

    def __post_init__(self) -> None:
        """Fill up from now on."""
        self.filled_s = self.clock()

    def spend(self, wanted: int) -> int:
        """As many of `wanted` as there are left now."""
        now_s = self.clock()
        self.left = min(self.per_s, self.left + self.per_s * (now_s - self.filled_s))
        self.filled_s = now_s
        given = min(wanted, int(self.left))
        self.left -= given
        return given


def take_receipts(live: Live, numbers: Ints, allowance: Allowance | None = None) -> Receipts:
    """The receipts of these numbers that the world still holds; where there are too many, some at even distances."""
    world = live.world
    ring, newest = len(world.receipts), int(world.clock[0]["n_receipts"])
    kept = np.flatnonzero((numbers >= 0) & (numbers >= newest - ring))
    kept = kept[world.receipts["why"][numbers[kept] % max(1, ring), 0] >= 0] if len(kept) else kept
    most = MOST_AT_ONCE if allowance is None else allowance.spend(len(kept))
    if len(kept) > most:
        kept = kept[np.linspace(0, len(kept) - 1, most).astype(np.int64)]
    rows: Ints = np.full(len(numbers), -1, np.int64)
    rows[kept] = np.arange(len(kept))
    table = world.receipts[numbers[kept] % ring] if len(kept) else world.receipts[:0]
    return Receipts(rows, table, [age_s(live, i) for i in range(len(world.instances))] if len(kept) else [])


def age_s(live: Live, i: int) -> float | None:
    """How old what is known of instance `i` is, s: 0 where it is simulated, else the age of its metrics."""
    if live.fleet.instances[i].url is None:
        return 0.0
    age = live.observed.get(i, {}).get("metrics_age_s")
    return None if age is None else float(age)


def terms_then(receipts: Receipts, k: int, chosen: int) -> Row:
    """The terms of placement `k`, on instance `chosen`, by its receipt: the call has been placed again since."""
    if receipts.rows[k] < 0:
        return {"score": None, "t_comp_s": None, "t_queue_s": None, "other": -1, "runner_up_score": None}
    table = receipts.table[receipts.rows[k]]
    others = [i for i in best_first(table) if i != chosen and table[i]["why"] == CANDIDATE]
    return {
        "score": finite(table[chosen]["score"]),
        "t_comp_s": finite(table[chosen]["t_comp_s"]),
        "t_queue_s": finite(table[chosen]["t_queue_s"]),
        "other": others[0] if others else -1,
        "runner_up_score": finite(table[others[0]]["score"]) if others else None,
    }


def receipt_row(live: Live, receipts: Receipts, k: int, chosen: int, other: int, t_comp_s: float | None) -> Row:
    """The columns of placement `k` that hold its receipt: the instances compared, and how many were not, by reason."""
    if receipts.rows[k] < 0:
        return {"candidates": None, "filtered": None}
    table = receipts.table[receipts.rows[k]]
    first = [chosen, *([other] if other >= 0 else [])]
    listed = [*first, *(i for i in best_first(table) if i not in first)][:MOST_INSTANCES]
    shown = [candidate(live, receipts, table[i], i) for i in listed]
    if shown[0]["t_comp_s"] is None and t_comp_s is not None:  # a rule that asks for no estimate of the others
        shown[0]["t_comp_s"] = rounded(t_comp_s)
    why = Counter(FILTERS[code] for code in table["why"].tolist() if code != CANDIDATE)
    return {"candidates": shown, "filtered": dict(why)}


def best_first(table: Table) -> list[int]:
    """Rows by score, of equal ones those with less queued work first; then those that were no candidates."""
    order: list[int] = np.lexsort((table["t_queue_s"], -table["score"])).tolist()
    return order


def candidate(live: Live, receipts: Receipts, row: Record, i: int) -> Row:
    """Instance `i` in a receipt."""
    return {
        "instance": live.fleet.instances[i].name,
        "t_comp_s": rounded(row["t_comp_s"]),
        "t_queue_s": rounded(row["t_queue_s"]),
        "score": rounded(row["score"]),
        "why": FILTERS[int(row["why"])] or None,
        "age_s": receipts.ages_s[i],
    }


def finite(value: float) -> float | None:
    """A number of a table; None where it is none, or not finite."""
    return float(value) if np.isfinite(value) else None


def rounded(value: float) -> float | None:
    """A number as it is stored; None where it is none, or not finite."""
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None


def runner_up(row: Row) -> str | None:
    """The instance that came second in a stored placement.

    Where KV was sent on, the call is placed once it has arrived, on the only instance that has it; what was compared
    when it was sent is in the receipt.
    """
    if row["runner_up"] is not None:
        return str(row["runner_up"])
    others = [c for c in row["candidates"] or () if c["why"] is None and c["instance"] != row["instance"]]
    return str(others[0]["instance"]) if others else None
