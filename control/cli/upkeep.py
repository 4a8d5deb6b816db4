"""`headway warm` and `headway doctor`."""

import time
from typing import Any

import click

from control.cli.options import as_json, number, print_json


@click.command()
@as_json
def warm(json_out: bool) -> None:
    """Compile the simulator ahead of its first use."""
    from control.jit import cache_folder, is_warm
    from control.tuning.warmup import warm_up

    was_warm = is_warm()
    if not was_warm:
        click.echo("compiling the simulator (once; about a minute) ...", err=True)
    start = time.perf_counter()
    warm_up()
    took_s = time.perf_counter() - start
    if json_out:
        print_json({"was_warm": was_warm, "took_s": took_s, "cache": str(cache_folder())})
    else:
        click.echo(f"{'already compiled, loaded' if was_warm else 'compiled'} in {number(took_s, 's')}")


@click.command()
@click.option("--db", help="Store to look at; absent: the default one.")
@as_json
def doctor(db: str | None, json_out: bool) -> int:
    """Check what Headway needs on this machine. Exit code 1 where something is broken."""
    from control.cli.checks import checks

    results: list[dict[str, Any]] = checks(db)
    if json_out:
        print_json({"ok": all(result["ok"] for result in results), "checks": results})
    else:
        for result in results:
            click.echo(f"{'ok ' if result['ok'] else 'BAD'}  {result['name']}: {result['text']}")
    return 0 if all(result["ok"] for result in results) else 1
