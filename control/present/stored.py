"""Stored runs in words: one line a run, and one run in full."""

from collections.abc import Iterator, Mapping
from typing import Any

from control.present.cells import duration
from control.present.units import number, quantity
from control.present.verdicts import fate, why

Run = Mapping[str, Any]
MOST_PARAMS = 4  # of a run of a kind without words of its own, in its line


def summary(run: Run) -> str:
    """What a run asked and what came out, in one line."""
    if run["kind"] == "tune":
        result = run["result"]
        return f"α {result['current_alpha']:.2f} → {result['alpha']:.2f}, {fate(result).text}: {why(result)}"
    if run["kind"] == "prediction":
        return _prediction(run["result"])
    return ", ".join(f"{key} {value}" for key, value in list(scalars(run["params"]))[:MOST_PARAMS])


def scalars(tree: Any) -> Iterator[tuple[str, str]]:
    """The entries of a run's params or result as text; of one with parts how many it has. A bare value is "value"."""
    for key, value in tree.items() if isinstance(tree, Mapping) else [("value", tree)]:
        yield str(key), _short(value)


def _prediction(result: Mapping[str, Any]) -> str:
    """A twin run's figures in one line."""
    attained = quantity(result["slo_attainment"], "%")
    p95, workflows = duration(result["p95_s"]).text, number(result["workflows"])
    return f"α {result['alpha']:.2f}: P95 {p95}, SLO attainment {attained}, {workflows} workflows"


def _short(value: Any) -> str:
    """A JSON value as text of some characters."""
    if isinstance(value, Mapping | list):
        return f"({len(value)} entries)"
    if isinstance(value, float):
        return number(value, 4)
    return "–" if value is None else str(value)
