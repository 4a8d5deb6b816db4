"""`headway reproduce report`: every published experiment again, as one document."""

import tempfile
from pathlib import Path

import click

from control.cli.options import as_json, print_json, say_if_cold
from control.cli.published import read_times, read_trace, source_options
from control.cli.rehearse import pair
from control.config import within
from control.errors import SettingError

MOST_SEEDS = 1000
TRACE_SEED = 0  # of a generated trace: the same in every report


@click.command()
@source_options
@click.option("--seeds", type=int, default=5, show_default=True, help="Runs of everything random, seeds 0, 1, ...")
@click.option("--out", "out_path", help="Markdown file to write. Absent: standard output.")
@as_json
def report(trace_path: str | None, profile_path: str | None, seeds: int, out_path: str | None, json_out: bool) -> None:
    """Every published experiment beside ours, as a Markdown document."""
    from control.tuning.report.base import Inputs
    from control.tuning.report.document import measure, render

    within("--seeds", seeds, 1, MOST_SEEDS)
    check_out(out_path)
    work, times = read_trace(trace_path, TRACE_SEED), read_times(profile_path)
    say_if_cold()
    inputs = Inputs(work, times, seeds, say=lambda line: click.echo(line, err=True), rehearse=pair)
    document = measure(inputs, command_line(trace_path, profile_path, seeds, out_path))
    if out_path:
        write_whole(Path(out_path), render(document))
        click.echo(f"{out_path} written", err=True)
    if json_out:
        print_json(document)
    elif not out_path:
        click.echo(render(document), nl=False)


def check_out(path: str | None) -> None:
    """Refuse a file that could not be written, before the work rather than after it. Raises SettingError."""
    if path is None:
        return
    place = Path(path).absolute()
    if place.is_dir() or not place.parent.is_dir() or (place.exists() and not place.is_file()):
        raise SettingError(f"--out = {path!r}: expected a file in a folder that exists")
    try:
        with tempfile.TemporaryFile(dir=place.parent):
            pass
    except OSError as error:
        raise SettingError(f"--out = {path!r}: its folder cannot be written to: {error.strerror}") from error


def write_whole(path: Path, text: str) -> None:
    """Write a file that is either the old one or the new one, never a part of it."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def command_line(trace_path: str | None, profile_path: str | None, seeds: int, out_path: str | None) -> str:
    """The command that writes the document again: of inputs the names alone, without their folders."""
    words = ["headway reproduce report"]
    for option, path in (("--trace", trace_path), ("--profile", profile_path)):
        words += [f"{option} {Path(path).name}"] if path else []
    words += [f"--seeds {seeds}"]
    if out_path:
        out = Path(out_path)
        words += [f"--out {out.name if out.is_absolute() else out.as_posix()}"]
    return " ".join(words)
