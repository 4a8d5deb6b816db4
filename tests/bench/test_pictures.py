"""The pictures of the documents are taken by a command; here what it refuses and what it writes."""

import io
import subprocess
import sys
from pathlib import Path

from PIL import Image

from control.cli.browsing.pictures import SHOTS, written
from tests.support.running import environment

ROOT = Path(__file__).resolve().parents[2]


def test_a_picture_that_is_not_known_is_named_with_those_that_are(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "control.cli", "screenshots", "--only=cellar", f"--out={tmp_path / 'images'}"]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'cellar'" in done.stderr
    assert "fleet-dark" in done.stderr
    assert not (tmp_path / "images").exists()


def test_a_picture_keeps_its_size_and_its_few_colours(tmp_path: Path) -> None:
    image = Image.new("RGB", (1440, 900), (14, 18, 19))
    image.paste((31, 123, 168), (100, 100, 400, 300))
    data = io.BytesIO()
    image.save(data, "PNG")
    path = written(data.getvalue(), tmp_path / "images" / "one.png")
    read = Image.open(path).convert("RGB")
    assert read.size == (1440, 900)
    assert {read.getpixel((0, 0)), read.getpixel((200, 200))} == {(14, 18, 19), (31, 123, 168)}


def test_every_picture_of_the_documents_is_taken_by_the_command() -> None:
    stored = {path.stem for path in (ROOT / "docs" / "images").glob("*.png")}
    assert stored == {shot.name for shot in SHOTS}
