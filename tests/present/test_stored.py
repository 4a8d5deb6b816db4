"""Any stored run fits a line, also one of a kind that no words are made for."""

from typing import Any

import pytest

from control.present.stored import scalars, summary
from tests.support import details


@pytest.mark.parametrize(
    ("kind", "params", "result", "text"),
    [
        ("tune", *details.run(), "α 0.20 → 0.40, ✓ applied: better in 97 % of the resamples"),
        ("prediction", *details.prediction(), "α 0.40: P95 24 s, SLO attainment 93.8 %, 96 workflows"),
        (
            "prediction",
            *details.prediction(p95_s=None, slo_attainment=None),
            "α 0.40: P95 –, SLO attainment –, 96 workflows",
        ),
        ("sweep", {"rate": 1.5, "grid": [1, 2]}, 0.5, "rate 1.500, grid (2 entries)"),
        ("whatif", {}, None, ""),
    ],
)
def test_a_run_in_one_line(kind: str, params: dict[str, Any], result: Any, text: str) -> None:
    assert summary({"kind": kind, "params": params, "result": result}) == text


def test_a_result_that_is_one_value_is_shown() -> None:
    assert list(scalars(0.5)) == [("value", "0.5000")]
    assert list(scalars({"a": None, "b": {"c": 1}, "d": 3})) == [("a", "–"), ("b", "(1 entries)"), ("d", "3")]
