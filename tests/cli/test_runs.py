"""`headway runs`: what a script or an operator gets out of the store without the dashboard."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import runs
from storage.open import Store, open_store
from tests.cli.conftest import Headway
from tests.support.running import object_of
from tests.support.stored import store_trio


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """The store that `headway` takes by default."""
    opened = open_store(str(tmp_path / "default.db"))
    yield opened
    opened.close()


def test_runs_are_listed_newest_first_with_a_line_each(headway: Headway, store: Store) -> None:
    trio = store_trio(store)
    code, out, err = headway("runs", "--json")
    assert (code, err) == (0, "")
    listed = object_of(out)["runs"]
    assert [row["id"] for row in listed] == [trio.tune, trio.unchanged, trio.predicted]
    assert set(listed[0]) == {"id", "kind", "created_at", "label", "summary"}
    assert listed[0]["summary"].startswith("α 0.20 → 0.40, ✓ applied")
    lines = headway("runs").out.splitlines()
    assert [line.split()[0] for line in lines] == ["3", "2", "1"]
    assert "P95 27.4 s, SLO attainment 90 %" in lines[1]


def test_the_list_is_cut_by_kind_and_number(headway: Headway, store: Store) -> None:
    for alpha in (0.3, 0.4):
        store_trio(store, alpha)
    told = headway("runs", "--kind", "prediction", "--limit", 3, "--json").out
    kinds = [row["kind"] for row in object_of(told)["runs"]]
    assert kinds == ["prediction"] * 3
    assert headway("runs", "--kind", "sweep").out == "no runs of kind sweep are stored\n"


def test_one_run_is_shown_whole(headway: Headway, store: Store) -> None:
    trio = store_trio(store)
    run = object_of(headway("runs", trio.tune, "--json").out)
    assert (run["id"], run["kind"], run["result"]["predicted_run"]) == (trio.tune, "tune", trio.predicted)
    code, out, err = headway("runs", trio.predicted)
    assert (code, err) == (0, "")
    assert out.startswith(f"run {trio.predicted}, prediction, ")
    assert "per_instance            (3 entries)" in out


def test_another_store_is_named_by_db_and_looking_makes_none(headway: Headway, store: Store, tmp_path: Path) -> None:
    store_trio(store)
    open_store(str(tmp_path / "other.db")).close()
    assert headway("runs", "--db", tmp_path / "other.db").out == "no runs are stored\n"
    said = headway("runs", "--db", tmp_path / "mistyped.db")
    assert said.code != 0
    assert "there is no store" in said.err
    assert not (tmp_path / "mistyped.db").exists()


def test_a_run_of_a_kind_without_words_is_shown(headway: Headway, store: Store) -> None:
    number = runs.save(store, "sweep", {"rate": 1.5}, [1, 2], "night")
    assert "sweep       night: rate 1.500" in headway("runs").out
    assert "value                   (2 entries)" in headway("runs", number).out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((7,), "run 7: there is none of this id"),
        ((0,), "run 0: there is none"),
        (("9" * 30,), "there is none of this id"),
        (("--json", 7), "run 7: there is none of this id"),
        (("x",), "'x' is not a valid integer"),
        (("--limit", 0), "--limit = 0: expected a number from 1 to 10000"),
        (("--limit", "9" * 30), "--limit"),
        ((1, "--kind", "tune"), "--kind goes with the list"),
    ],
)
def test_bad_input_is_one_line(headway: Headway, store: Store, arguments: tuple[object, ...], says: str) -> None:
    code, out, err = headway("runs", *arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert says in err
