"""A forecast or sweep can be found again with what was asked and what came out."""

import numpy as np
import pytest

from control.errors import SettingError
from storage import runs
from storage.open import Store


def test_a_run_is_kept_whole_and_listed_without_its_result(store: Store) -> None:
    number = runs.save(store, "whatif", {"alpha": np.float64(0.3)}, {"p95_s": np.arange(2.0)}, "peak", seed=2**40)
    run = runs.get(store, number)
    assert run is not None
    assert run["created_at"] > 1.7e9
    assert (run["params"], run["result"], run["label"], run["seed"]) == (
        {"alpha": 0.3},
        {"p95_s": [0.0, 1.0]},
        "peak",
        2**40,
    )
    listed = runs.recent(store, 5)
    assert [row["id"] for row in listed] == [number]
    assert "result" not in listed[0]


def test_runs_list_newest_first_by_kind(store: Store) -> None:
    first, second, third = (runs.save(store, kind, {}, 0.5) for kind in ("tune", "sweep", "tune"))
    assert [row["id"] for row in runs.recent(store, 5)] == [third, second, first]
    assert [row["id"] for row in runs.recent(store, 5, kind="tune")] == [third, first]
    assert len(runs.recent(store, 1)) == 1


def test_a_run_can_be_forgotten(store: Store) -> None:
    number = runs.save(store, "tune", {}, [])
    assert runs.delete(store, number)
    assert not runs.delete(store, number)
    assert runs.get(store, number) is None


def test_a_run_without_a_kind_is_refused(store: Store) -> None:
    with pytest.raises(SettingError, match="kind is empty"):
        runs.save(store, " ", {}, {})
