"""The script that makes the environment of these tests; no server is started here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vllm import setup_env
from tests.vllm.setup_env import SetupError, ensure, main, readdress, reason


def make(making: Path, place: Path) -> None:
    """Something made, as a venv would be."""
    (making / "models").mkdir(parents=True)


def break_off(making: Path, place: Path) -> None:
    """Something half made."""
    make(making, place)
    raise SetupError("no network")


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    place = tmp_path / "venv"
    ensure(place, "recipe", make, "it")
    ensure(place, "recipe", break_off, "it")
    assert [path.name for path in tmp_path.iterdir()] == ["venv"]


def test_another_recipe_makes_it_anew(tmp_path: Path) -> None:
    place = tmp_path / "venv"
    ensure(place, "old", make, "it")
    (place / "leftover").touch()
    ensure(place, "new", make, "it")
    assert not (place / "leftover").exists()


def test_a_failure_leaves_nothing_half_made_and_keeps_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "venv"
    with pytest.raises(SetupError):
        ensure(place, "recipe", break_off, "it")
    assert list(tmp_path.iterdir()) == []
    ensure(place, "old", make, "it")
    with pytest.raises(SetupError):
        ensure(place, "new", break_off, "it")
    assert [path.name for path in tmp_path.iterdir()] == ["venv"]
    assert (place / "models").is_dir()


def test_a_folder_of_somebody_elses_is_never_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letter").touch()
    monkeypatch.setenv("HEADWAY_VLLM_VENV", str(tmp_path))
    assert main() == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path} exists and was not made here" in line
    assert (tmp_path / "letter").exists()


def test_the_reason_of_a_failure_is_its_first_error() -> None:
    assert reason("WARNING: x\nERROR: no such package\nERROR: give up\n") == "ERROR: no such package"
    assert reason("one\ntwo\n\n") == "two"


def test_scripts_of_a_moved_venv_name_its_new_place(tmp_path: Path) -> None:
    old, new = tmp_path / "venv.making", tmp_path / "venv"
    (old / "bin").mkdir(parents=True)
    (old / "pyvenv.cfg").write_text(f"command = python -m venv {old}\n")
    (old / "bin" / "vllm").write_text(f"#!{old}/bin/python\n")
    readdress(old, new)
    assert (old / "bin" / "vllm").read_text() == f"#!{new}/bin/python\n"
    assert (old / "pyvenv.cfg").read_text() == f"command = python -m venv {new}\n"


@pytest.mark.vllm
def test_without_a_network_it_fails_with_one_clear_line_and_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "venv"
    cut_off = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "HEADWAY_VLLM_VENV": str(place)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    command = [sys.executable, setup_env.__file__]
    done = subprocess.run(command, env={**kept, **cut_off}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    announced, failed = done.stderr.splitlines()
    assert announced.startswith("Making ")
    assert failed.startswith("test-vllm: cannot pip install")
    assert "is there a network" in failed
    assert list(tmp_path.iterdir()) == []
