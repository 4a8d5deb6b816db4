"""Tuning runs with the twin runs behind them, stored as the engine stores them."""

from typing import Any, NamedTuple

from storage import runs
from storage.open import Store
from tests.support import details


class Trio(NamedTuple):
    """Ids of a tuning run and of its two twin runs."""

    predicted: int
    unchanged: int
    tune: int


def store_trio(store: Store, alpha: float = 0.4, before: float = 0.2, **changed: Any) -> Trio:
    """Store a tuning run of `alpha` against `before`; keyword arguments replace keys of its result."""
    predicted = runs.save(store, "prediction", *details.prediction(alpha))
    slower = details.prediction(before, p95_s=27.4, slo_attainment=0.9, slo_debt_s=88.0, p50_s=10.9)
    unchanged = runs.save(store, "prediction", *slower)
    params, result = details.run(alpha, before, **changed)
    result |= {"predicted_run": predicted, "unchanged_run": unchanged}
    return Trio(predicted, unchanged, runs.save(store, "tune", params, result))
