"""Shadow policies: what other policies would have made of the same arrivals, beside the one in force."""

from collections.abc import Mapping, Sequence
from typing import Any

from control.present.cells import Cell, Table, amount, measured, share, signed
from control.present.units import MINUS, NOTHING
from control.present.wording import SCORED

Snapshot = Mapping[str, Any]
#: How many policies the engine runs in the shadow at most.
MOST = 3


def running(snapshot: Snapshot) -> list[str]:
    """The policies that run in the shadow."""
    return [str(row["policy"]) for row in snapshot.get("shadows") or ()]


def offered(snapshot: Snapshot) -> list[str]:
    """The policies that can be run in the shadow: all but the one in force, and those that run now."""
    now = running(snapshot)
    names = [name for name in snapshot.get("policies") or () if name != snapshot.get("policy") or name in now]
    return [*names, *(name for name in now if name not in names)]


def table(snapshot: Snapshot) -> Table:
    """The policy in force, then each shadow with its gap to it: less P95 and debt, more attainment are better."""
    heads = [Cell("Policy"), Cell("P95", "num"), Cell("Gap", "num"), Cell("Attained", "num"), Cell("Gap", "num")]
    heads += [Cell("SLO debt", "num"), Cell("Gap", "num")]
    real = snapshot.get("fleet") or {}
    return Table(heads, [_real(snapshot, real), *(_shadow(row, real) for row in snapshot.get("shadows") or ())])


def note(snapshot: Snapshot) -> str:
    """Over what the figures are, in words."""
    window_s = (snapshot.get("fleet") or {}).get("window_s")
    over = f", of the last {measured(window_s, 's')}" if window_s else ""
    return f"Same arrivals, other policy{over}. The gap is the shadow less the one in force."


def chosen(names: Sequence[str], snapshot: Snapshot) -> bool:
    """Whether `names` are what runs in the shadow already."""
    return sorted(names) == sorted(running(snapshot))


def _real(snapshot: Snapshot, real: Mapping[str, Any]) -> list[Cell]:
    blank = Cell("", "num")
    cells = [Cell(f"{snapshot.get('policy')}, in force", "strong"), amount(real.get("p95_s"), "s"), blank]
    return [*cells, share(real.get("slo_attainment")), blank, amount(real.get("slo_debt_s"), "s"), blank]


def _shadow(row: Mapping[str, Any], real: Mapping[str, Any]) -> list[Cell]:
    scored = row.get("alpha") is not None and row["policy"] in SCORED
    alpha = f" α {row['alpha']:.2f}" if scored else ""
    return [
        Cell(f"{row['policy']}{alpha}"),
        amount(row.get("p95_s"), "s"),
        _slower(row.get("p95_s"), real.get("p95_s")),
        share(row.get("slo_attainment")),
        _points(row.get("slo_attainment"), real.get("slo_attainment")),
        amount(row.get("slo_debt_s"), "s"),
        _slower(row.get("slo_debt_s"), real.get("slo_debt_s")),
    ]


def _slower(value: float | None, real: float | None) -> Cell:
    """A gap of times: less is better."""
    if value is None or real is None:
        return Cell(NOTHING, "num muted")
    gap = value - real
    return Cell(signed(gap), "num good" if gap < 0 else "num amber" if gap > 0 else "num muted")


def _points(value: float | None, real: float | None) -> Cell:
    """A gap of shares in percentage points: more is better."""
    if value is None or real is None:
        return Cell(NOTHING, "num muted")
    gap = round(100.0 * (value - real), 1) + 0.0
    sign = MINUS if gap < 0 else "+" if gap > 0 else ""
    return Cell(f"{sign}{abs(gap):g} pt", "num good" if gap > 0 else "num amber" if gap < 0 else "num muted")
