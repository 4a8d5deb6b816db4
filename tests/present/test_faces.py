"""Each state of store and engine has its own face with something to do."""

from control.present.faces import broken, face_of
from tests.support.snapshots import snapshot

HOLDER = {"pid": 4711, "host": "gpu-box", "age_s": 1.0}


def test_a_store_without_an_engine_says_how_to_start_one() -> None:
    face = face_of(None, None)
    assert face.kind == "empty"
    assert face.action == "headway up"


def test_an_engine_that_has_not_reported_yet_is_starting() -> None:
    assert face_of(None, HOLDER).kind == "starting"
    assert face_of(None, HOLDER | {"age_s": 3600.0}).kind == "empty"


def test_compiling_and_an_empty_fleet_are_told_apart() -> None:
    engine = snapshot()["engine"]
    assert face_of(snapshot(instances=[], engine=engine | {"state": "compiling"}), HOLDER).kind == "compiling"
    assert face_of(snapshot(instances=[]), HOLDER).kind == "no_instances"


def test_data_shows_the_page_whatever_the_engine_does() -> None:
    assert face_of(snapshot(), None).kind == "live"


def test_a_broken_store_names_the_reason() -> None:
    assert "not a database" in broken("x.db: file is not a database").text
