"""The two twin runs behind a tuning run's prediction, side by side: the chosen α against the one in force.

Stored runs of kind "prediction" and "tune" in; tables and words out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from control.present.cells import Cell, Table, count, duration, signed, tidy
from control.present.units import MINUS, NOTHING, number, quantity, seconds
from control.present.verdicts import fate, why

Run = Mapping[str, Any]
Show = Callable[[float | None], Cell]
Compare = Callable[[float], Cell]  # of the difference, first side less second
SAME = 1e-9  # two α closer than this are one
#: Latencies and debt of a prediction, s: label and key.
_TIMES = (("P50 latency", "p50_s"), ("P95 latency", "p95_s"), ("P99 latency", "p99_s"), ("Mean latency", "mean_s"))
_DEBT = ("SLO debt", "slo_debt_s")
_LABELS = ("Finished", "Busy", "Pre\N{SOFT HYPHEN}empted")


class Side(NamedTuple):
    """One twin run and what its α is to the tuning run: "chosen", "in force" or both."""

    role: str
    run: Run

    @property
    def result(self) -> Mapping[str, Any]:
        """Its figures."""
        result: Mapping[str, Any] = self.run["result"]
        return result

    @property
    def head(self) -> str:
        """Its α and role."""
        return f"{self.alpha} {self.role}".strip()

    @property
    def alpha(self) -> str:
        """Its α as shown."""
        return f"α {self.result['alpha']:.2f}"


def is_of(tune: Run | None, prediction: int) -> bool:
    """Whether the run `prediction` is one of the two behind the tuning run `tune`."""
    if tune is None or tune["kind"] != "tune":
        return False
    return prediction in (tune["result"].get("predicted_run"), tune["result"].get("unchanged_run"))


def sides(predicted: Run | None, unchanged: Run | None) -> list[Side]:
    """The runs that are stored; where the α in force was chosen, both are one run."""
    if predicted and unchanged and abs(predicted["result"]["alpha"] - unchanged["result"]["alpha"]) < SAME:
        return [Side("chosen, in force already", predicted)]
    named = (("chosen", predicted), ("in force", unchanged))
    return [Side(role, run) for role, run in named if run is not None]


def replayed(side: Side) -> str:
    """What the twin run replayed, in words."""
    params, result = side.run["params"], side.result
    when = f"the {seconds(tidy(params['window_s']))} before {seconds(tidy(params['sim_s']))} of simulated time"
    took = f", all ended after {seconds(tidy(result['span_s']))}" if result.get("span_s") else ""
    drawn = f"{number(result['workflows'])} workflows, one of the resamples behind the prediction"
    return f"Replayed {when}, {params['policy']}: {drawn}{took}"


def followed(tune: Run) -> str:
    """The tuning run the pair belongs to and what came of it, in words."""
    return f"Tuning run {tune['id']}: {fate(tune['result']).text}. {why(tune['result'])}"


def figures(shown: Sequence[Side]) -> Table:
    """Latencies, SLO attainment and debt, a column a side; of two sides the difference."""
    heads = [Cell(""), *(Cell(side.head, "num") for side in shown)]
    rows = [_figure(shown, label, key, duration, _slower) for label, key in _TIMES]
    rows.append(_figure(shown, "SLO attainment", "slo_attainment", _share, _attained))
    rows.append(_figure(shown, *_DEBT, duration, _slower))
    return Table(heads + ([Cell("Difference", "num")] if len(shown) == 2 else []), rows)


def instances(shown: Sequence[Side]) -> Table:
    """Calls finished, busy share of the time and preemptions of each instance, a column a side."""
    kinds = ["num", "num muted"]
    heads = [Cell("Instance")]
    for label in _LABELS:
        heads += [Cell(f"{label}, {side.alpha}", f"{kind} side") for side, kind in zip(shown, kinds, strict=False)]
    by_side = [{row["name"]: row for row in side.result["per_instance"]} for side in shown]
    names = list(dict.fromkeys(name for rows in by_side for name in rows))
    table = []
    for name in names:
        found = [rows.get(name, {}) for rows in by_side]
        cells = [count(row.get("finished")) for row in found]
        cells += [_share(row.get("busy_fraction")) for row in found]
        cells += [count(row.get("preemptions")) for row in found]
        muted = [c._replace(kind=kinds[k % len(shown)]) for k, c in enumerate(cells)]
        table.append([Cell(name, "id"), *muted])
    return Table(heads, table)


def unknown(run_id: int) -> str:
    """The sentence for a number that no stored run has."""
    return f"No run {run_id} is in the store. Choose one of the list of runs below: its predicted P95 opens it."


def no_twin(run: Run) -> str:
    """The sentence for a run without twin runs to show."""
    if run["kind"] == "tune":
        return f"Tuning run {run['id']} has no twin runs on record: it was made before they were kept."
    return f"Run {run['id']} is of kind {run['kind']}, which has no twin runs of a prediction."


def _figure(shown: Sequence[Side], label: str, key: str, show: Show, compare: Compare) -> list[Cell]:
    """The row of one figure: a cell a side, and of two sides the difference."""
    values = [side.result.get(key) for side in shown]
    cells = [Cell(label), *(show(value) for value in values)]
    if len(values) < 2:
        return cells
    chosen, unchanged = values
    if chosen is None or unchanged is None:
        return [*cells, Cell(NOTHING, "num muted")]
    return [*cells, compare(chosen - unchanged)]


def _share(value: float | None) -> Cell:
    """A share as %, to a tenth."""
    return Cell(NOTHING if value is None else quantity(round(value, 3), "%"), "num")


def _slower(difference_s: float) -> Cell:
    """A difference of times: less is better."""
    shown = tidy(difference_s)
    return Cell(signed(shown), f"num {_judged(-shown)}")


def _attained(difference: float) -> Cell:
    """A difference of shares in percentage points: more is better."""
    points = round(100 * difference, 1) + 0.0
    sign = MINUS if points < 0 else "+" if points > 0 else ""
    return Cell(f"{sign}{abs(points):g} points", f"num {_judged(points)}")


def _judged(better: float) -> str:
    """The kind of a cell whose figure got `better`; below 0 it got worse."""
    return "good" if better > 0 else "amber" if better < 0 else "muted"
