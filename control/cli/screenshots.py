"""`headway screenshots`: take the pictures of the documents anew."""

import tempfile
from pathlib import Path
from typing import Any

import click

from control.cli.options import answer, as_json, say_if_cold, seed_option
from control.errors import SettingError


@click.command(hidden=True)
@click.option("--only", multiple=True, help="Name of one picture; may be repeated. Absent: all.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("docs/images"), show_default=True)
@seed_option
@as_json
def screenshots(only: tuple[str, ...], out: Path, seed: int, json_out: bool) -> None:
    """Run a Headway on a store of its own and write pictures of its pages (HEADWAY_CHROMIUM names the browser)."""
    from control.cli.browsing.pictures import SHOTS, take_pictures

    known = [shot.name for shot in SHOTS]
    for name in only:
        if name not in known:
            raise SettingError(f"--only = {name!r}: expected one of {', '.join(known)}")
    say_if_cold()
    with tempfile.TemporaryDirectory(prefix="headway-pictures-") as work:
        files = take_pictures(only or known, seed, out, Path(work), lambda text: click.echo(text, err=True))
    answer({"files": {str(file): file.stat().st_size for file in files}}, json_out, show)


def show(result: dict[str, Any]) -> None:
    """The files and their sizes."""
    for name, size in result["files"].items():
        click.echo(f"{name}: {size / 1e3:.0f} kB")
