"""`headway reproduce report`: every published experiment again, as one document."""

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click

from control.cli.options import as_json, print_json, say_if_cold
from control.cli.published import read_times, read_trace, source_options
from control.cli.rehearse import pair
from control.cli.reproduce_conserve import read_conversations
from control.config import within
from control.errors import SettingError

MOST_SEEDS = 1000
TRACE_SEED = 0  # of a generated trace: the same in every report
TURNS = 5  # leading turns of a conversation


@click.command()
@source_options
@click.option("--conversations", "talks_path", help="ConServe's trace (CSV). Absent: generated conversations.")
@click.option("--coding", "coding_path", help="Coding-agent requests (CSV). Absent: left out.")
@click.option("--parts", help="Papers to measure, as hexgen,conserve; --out keeps the others. Absent: all.")
@click.option("--seeds", type=int, default=5, show_default=True, help="Runs of everything random, seeds 0, 1, ...")
@click.option("--out", "out_path", help="Markdown file to write. Absent: standard output.")
@as_json
def report(
    trace_path: str | None,
    profile_path: str | None,
    talks_path: str | None,
    coding_path: str | None,
    parts: str | None,
    seeds: int,
    out_path: str | None,
    json_out: bool,
) -> None:
    """Every published experiment beside ours, as a Markdown document."""
    from control.tuning.report.base import Inputs
    from control.tuning.report.document import PARTS, measure, render, renewed
    from control.tuning.reproduce_coding import read_coding_work

    within("--seeds", seeds, 1, MOST_SEEDS)
    check_out(out_path)
    known = {part.key: part for part in PARTS}
    chosen = [known[key] for key in part_keys(parts, list(known))]
    text = partial(renewed, old_text(out_path, parts), parts=chosen) if parts else render
    work, times = read_trace(trace_path, TRACE_SEED), read_times(profile_path)
    talks = read_conversations(talks_path, TURNS, TRACE_SEED) if talks_path else None
    coding = read_coding_work(coding_path) if coding_path else None
    say_if_cold()
    say = partial(click.echo, err=True)
    inputs = Inputs(work, times, seeds, say=say, rehearse=pair, talks=talks, coding=coding)
    files = {"--trace": trace_path, "--profile": profile_path, "--conversations": talks_path, "--coding": coding_path}
    document = measure(inputs, command_line(files, seeds, out_path), chosen)
    if out_path:
        write_whole(Path(out_path), text(document=document))
        click.echo(f"{out_path} written", err=True)
    if json_out:
        print_json(document)
    elif not out_path:
        click.echo(text(document=document), nl=False)


def part_keys(parts: str | None, known: list[str]) -> list[str]:
    """The papers to measure, by name. Raises SettingError."""
    if parts is None:
        return known
    keys = [key.strip() for key in parts.split(",") if key.strip()]
    if not keys or not set(keys) <= set(known):
        raise SettingError(f"--parts = {parts!r}: expected {', '.join(known)}")
    return list(dict.fromkeys(keys))


def old_text(path: str | None, parts: str | None) -> str:
    """The document whose other parts are kept. Raises SettingError where there is none."""
    if parts is None or path is None:
        return "# Reproduction\n"
    if not Path(path).is_file():
        raise SettingError(f"--out = {path!r}: with --parts, expected the document whose other parts are kept")
    return Path(path).read_text(encoding="utf-8")


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


def command_line(files: Mapping[str, str | None], seeds: int, out_path: str | None) -> str:
    """The command that writes the document again: of inputs the names alone, without their folders."""
    words = ["headway reproduce report"]
    for option, path in files.items():
        words += [f"{option} {Path(path).name}"] if path else []
    words += [f"--seeds {seeds}"]
    if out_path:
        out = Path(out_path)
        words += [f"--out {out.name if out.is_absolute() else out.as_posix()}"]
    return " ".join(words)
