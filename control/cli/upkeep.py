"""`headway warm` and `headway doctor`."""

import time
from typing import Any

import click

from control.cli.options import answer, as_json, number, say_it_compiles


@click.command()
@as_json
def warm(json_out: bool) -> None:
    """Compile both simulators, the twin and the replay of HexGen-Flow's, ahead of their first use."""
    from control.cli.precompile import compile_all
    from control.jit import cache_folder
    from control.tuning.warmup import is_all_warm

    was_warm = is_all_warm()
    if not was_warm:
        say_it_compiles()
    start = time.perf_counter()
    compile_all()
    took_s = time.perf_counter() - start
    answer({"was_warm": was_warm, "took_s": took_s, "cache": str(cache_folder())}, json_out, show_warmth)


def show_warmth(result: dict[str, Any]) -> None:
    """What `warm` did, for a person."""
    done = "already compiled, loaded" if result["was_warm"] else "compiled"
    click.echo(f"{done} in {number(result['took_s'], 's')}")


@click.command()
@click.option("--db", help="Store to look at; absent: the default one.")
@as_json
def doctor(db: str | None, json_out: bool) -> int:
    """Check what Headway needs on this machine. Exit code 1 where something is broken."""
    from control.cli.checks import checks

    results: list[dict[str, Any]] = checks(db)
    is_ok = all(result["ok"] for result in results)
    answer({"ok": is_ok, "checks": results}, json_out, show_checks)
    return 0 if is_ok else 1


def show_checks(result: dict[str, Any]) -> None:
    """What `doctor` found, for a person."""
    for check in result["checks"]:
        click.echo(f"{'ok ' if check['ok'] else 'BAD'}  {check['name']}: {check['text']}")
