"""The fleet page, run by Streamlit's own test driver on an empty, a healthy and a broken store."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from storage import commands
from tests.support.snapshots import StandInEngine, snapshot

PAGE = Path(__file__).resolve().parents[2] / "pages" / "_main.py"


def page() -> AppTest:
    return AppTest.from_file(str(PAGE), default_timeout=30).run()


def texts(app: AppTest) -> str:
    return " ".join(str(getattr(e, "body", "") or e.proto.body) for e in app.get("html"))


def button(app: AppTest, key: str) -> bool:
    return any(b.key == key for b in app.button)


def test_an_empty_store_says_how_to_start(url: str) -> None:
    app = page()
    assert not app.exception
    assert "No engine has run on this store yet" in texts(app)
    assert "headway up" in texts(app)
    assert not app.slider


def test_a_broken_store_shows_a_sentence_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / 'broken.db'}")
    app = page()
    assert not app.exception
    assert "The store cannot be read" in texts(app)
    assert "file is not a database" in texts(app)


@pytest.mark.parametrize(
    ("state", "title"),
    [("compiling", "compiling its kernels"), ("running", "This fleet has no instances")],
)
def test_an_engine_without_instances_is_explained(engine: StandInEngine, state: str, title: str) -> None:
    engine.tick(instances=[], fleet={}, engine=snapshot()["engine"] | {"state": state})
    app = page()
    assert not app.exception
    assert title in texts(app)


def test_a_healthy_store_shows_charts_and_controls_with_the_applied_values(engine: StandInEngine) -> None:
    engine.tick(alpha=0.35)
    app = page()
    assert not app.exception
    assert app.slider[0].value == 0.35
    assert "Applied α 0.35, hexgen" in texts(app)
    assert app.selectbox[0].value == "hexgen"
    assert len(app.get("bidi_component")) == 2


def test_an_edit_waits_for_apply_and_names_the_value_it_replaces(engine: StandInEngine) -> None:
    engine.tick()
    app = page()
    app.slider[0].set_value(0.5).run()
    assert commands.pending(engine.store) == []
    app.button(key="apply").click().run()
    (row,) = commands.pending(engine.store)
    assert (row["kind"], row["payload"], row["expected"]) == ("alpha", {"alpha": 0.5}, 0.2)
    assert row["author"] == "dashboard"
    assert "… pending (α 0.20 → 0.50)" in texts(app)


def test_an_applied_edit_is_shown_and_can_be_undone(engine: StandInEngine) -> None:
    engine.tick()
    app = page()
    app.slider[0].set_value(0.5).run()
    app.button(key="apply").click().run()
    engine.tick()
    app.run()
    assert "✓ applied" in texts(app)
    assert app.button(key="apply").disabled
    app.button(key="undo-c1").click().run()
    (row,) = commands.pending(engine.store)
    assert (row["payload"], row["expected"], row["undo_of"]) == ({"alpha": 0.2}, 0.5, 1)


def test_a_draft_survives_somebody_elses_change_and_is_warned(engine: StandInEngine) -> None:
    engine.tick()
    app = page()
    app.slider[0].set_value(0.5).run()
    commands.submit(engine.store, "alpha", {"alpha": 0.4}, "cli", expected=0.2)
    engine.tick()
    app.run()
    assert app.slider[0].value == 0.5
    assert "Someone else changed it meanwhile: 0.20 → 0.40" in texts(app)
    app.button(key="apply").click().run()
    engine.tick()
    app.run()
    assert commands.get(engine.store, 2)["state"] == "refused"  # type: ignore[index]
    app.button(key="discard").click().run()
    assert app.slider[0].value == 0.4


def test_an_untouched_control_follows_the_applied_value(engine: StandInEngine) -> None:
    engine.tick()
    app = page()
    commands.submit(engine.store, "policy", {"policy": "edf"}, "cli")
    engine.tick()
    app.run()
    assert app.selectbox[0].value == "edf"


def test_killing_an_instance_is_confirmed_once(engine: StandInEngine) -> None:
    engine.tick()
    app = page()
    app.button(key="kill").click().run()
    assert commands.pending(engine.store) == []
    app.button(key="confirm").click().run()
    (row,) = commands.pending(engine.store)
    assert (row["kind"], row["payload"]) == ("kill", {"instance": "h100-0"})


def test_a_paused_engine_can_be_stepped_and_resumed(engine: StandInEngine) -> None:
    engine.tick(paused=True)
    app = page()
    assert not button(app, "pause")
    app.button(key="step").click().run()
    app.button(key="resume").click().run()
    assert [r["kind"] for r in commands.pending(engine.store)] == ["step", "resume"]


def test_speed_takes_effect_without_apply(engine: StandInEngine) -> None:
    engine.tick()
    app = page()
    speed = next(s for s in app.selectbox if s.label == "Speed")
    speed.select(60.0).run()
    (row,) = commands.pending(engine.store)
    assert (row["kind"], row["payload"], row["expected"]) == ("speed", {"speed": 60.0}, 10.0)


def test_the_page_comes_alive_by_itself(engine: StandInEngine) -> None:
    app = page()
    assert "The engine is starting" in texts(app)
    engine.tick()
    app.run()
    assert app.slider


def test_a_name_with_markup_in_it_is_shown_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "<b>.db").write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HEADWAY_DB", f"sqlite:///{tmp_path / '<b>.db'}")
    assert "&lt;b&gt;.db" in texts(page())


def test_the_artifacts_form_of_the_score_is_named(engine: StandInEngine) -> None:
    engine.tick(form="artifact")
    app = page()
    assert not app.exception
    assert "Applied α 0.20, hexgen, artifact form" in texts(app)
    assert "hexgen, artifact form" in app.selectbox[0].options
    assert "edf" in app.selectbox[0].options
