"""`headway runs`: what the store holds of tuning runs and the twin runs behind them."""

from datetime import datetime
from typing import Any

import click

from control.cli.options import as_json, print_json
from control.config import within
from control.errors import SettingError

MOST_LISTED = 10_000
LARGEST_ID = 2**63 - 1  # of a store
WIDTH = 22  # of a key, characters

Row = dict[str, Any]


@click.command()
@click.argument("run_id", metavar="[ID]", type=int, required=False)
@click.option("--kind", help="Only runs of this kind: tune, prediction ...")
@click.option("--limit", type=int, default=20, show_default=True, help="How many, the newest first.")
@click.option("--db", help="Store to look at; absent: the default one.")
@as_json
def runs(run_id: int | None, kind: str | None, limit: int, db: str | None, json_out: bool) -> None:
    """List stored runs, or show the run ID with all its figures."""
    if run_id is not None and kind is not None:
        raise SettingError("--kind goes with the list; a run is found by its ID alone")
    within("--limit", limit, 1, MOST_LISTED)
    if run_id is None:
        show_list(read_list(db, kind, limit), kind, json_out)
    else:
        show_one(read_one(db, run_id), json_out)


def read_list(db: str | None, kind: str | None, limit: int) -> list[Row]:
    """The newest runs of the store, each with a line about it instead of its result.

    Raises:
        StoreError: the store cannot be read.
    """
    from control.present.stored import summary
    from storage.open import open_store
    from storage.runs import recent

    store = open_store(db, may_create=False)
    try:
        found = recent(store, limit, kind, with_result=True)
    finally:
        store.close()
    listed = ("id", "kind", "created_at", "label")
    return [{key: row[key] for key in listed} | {"summary": summary(row)} for row in found]


def read_one(db: str | None, run_id: int) -> Row:
    """One run, with a line about it.

    Raises:
        SettingError: the store has no run of this id.
        StoreError: the store cannot be read.
    """
    from control.present.stored import summary
    from storage.open import open_store
    from storage.runs import get

    store = open_store(db, may_create=False)
    try:
        found = get(store, run_id) if 0 < run_id <= LARGEST_ID else None
    finally:
        store.close()
    if found is None:
        raise SettingError(f"run {run_id}: there is none of this id; `headway runs` lists those there are")
    return found | {"summary": summary(found)}


def show_list(rows: list[Row], kind: str | None, json_out: bool) -> None:
    """The list, one line a run."""
    if json_out:
        print_json({"runs": rows})
    elif not rows:
        click.echo("no runs are stored" if kind is None else f"no runs of kind {kind} are stored")
    for row in [] if json_out else rows:
        label = f"{row['label']}: " if row["label"] else ""
        click.echo(f"{row['id']:>6}  {clock(row)}  {row['kind']:<10}  {label}{row['summary']}")


def show_one(row: Row, json_out: bool) -> None:
    """One run: its line, then what was asked and what came out."""
    from control.present.stored import scalars

    if json_out:
        print_json(row)
        return
    label = f", {row['label']}" if row["label"] else ""
    click.echo(f"run {row['id']}, {row['kind']}{label}, {clock(row)}\n{row['summary']}")
    for part in ("params", "result"):
        click.echo(f"\n{part}")
        for key, text in scalars(row[part]):
            click.echo(f"  {key:<{WIDTH}}  {text}")


def clock(row: Row) -> str:
    """When a run was stored, in local time."""
    return datetime.fromtimestamp(row["created_at"]).strftime("%Y-%m-%d %H:%M:%S")
