"""Searches of what the store keeps: ended workflows, and the audit's commands and events. A page of rows and a count.

Every search gives at most `limit` rows beside the number of all that match.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa

from storage.open import Store
from storage.tables import COMMAND, EVENT, WORKFLOW

Row = dict[str, Any]
Found = tuple[list[Row], int]
#: Values of one column that a filter offers at most.
MOST_VALUES = 200
#: Ids of one search at most: what every database takes as parameters of one statement.
MOST_IDS = 500


class Workflows(NamedTuple):
    """Which ended workflows; None and "" leave a part open."""

    tenant: str | None = None
    kind: str | None = None
    state: str | None = None
    number: str = ""  # digits that its number begins with
    late: bool = False  # with a debt above 0 s


class Changes(NamedTuple):
    """Which commands or events; None leaves a part open. Events have no author and no state."""

    kind: str | None = None
    author: str | None = None
    state: str | None = None


def ended(store: Store, wanted: Workflows, limit: int) -> Found:
    """Ended workflows without their timelines, those with most debt first, then the newest.

    One whose number is exactly the one searched for comes before all others.
    """
    where = _workflow_terms(wanted)
    query = sa.select(*(column for column in WORKFLOW.c if column.name != "timeline")).where(*where)
    order: list[sa.ColumnElement[Any]] = [WORKFLOW.c.debt_s.desc().nulls_last(), WORKFLOW.c.seq.desc()]
    if wanted.number:
        order.insert(0, sa.case((WORKFLOW.c.id == int(wanted.number), 0), else_=1))
    return _found(store, query.order_by(*order).limit(limit), WORKFLOW, where)


def commands(store: Store, wanted: Changes, limit: int) -> Found:
    """Commands, newest first."""
    parts = ((COMMAND.c.kind, wanted.kind), (COMMAND.c.author, wanted.author), (COMMAND.c.state, wanted.state))
    where: list[sa.ColumnElement[bool]] = [column == value for column, value in parts if value is not None]
    query = sa.select(COMMAND).where(*where).order_by(COMMAND.c.id.desc()).limit(limit)
    return _found(store, query, COMMAND, where)


def own_events(store: Store, wanted: Changes, limit: int) -> Found:
    """Events that no command caused, newest first: what the engine did by itself."""
    where: list[sa.ColumnElement[bool]] = [EVENT.c.command_id.is_(None)]
    if wanted.kind is not None:
        where.append(EVENT.c.kind == wanted.kind)
    query = sa.select(EVENT).where(*where).order_by(EVENT.c.at.desc(), EVENT.c.id.desc()).limit(limit)
    return _found(store, query, EVENT, where)


def caused(store: Store, command_ids: Iterable[int]) -> dict[int, Row]:
    """The event of each command that has one, by the command's id; of the first MOST_IDS ids."""
    ids = sorted(command_ids, reverse=True)[:MOST_IDS]
    query = sa.select(EVENT).where(EVENT.c.command_id.in_(ids))
    with store.reading() as connection:
        return {int(row["command_id"]): dict(row) for row in connection.execute(query).mappings()} if ids else {}


def judged(store: Store, limit: int) -> tuple[list[Row], list[Row]]:
    """What decides which change can still be undone: the newest `limit` commands, and as many events.

    The newest start of an engine is among the events however many came since.
    """
    rows, _ = commands(store, Changes(), limit)
    starts, _ = own_events(store, Changes(kind="engine_started"), 1)
    newest = sa.select(EVENT).order_by(EVENT.c.at.desc(), EVENT.c.id.desc()).limit(limit)
    with store.reading() as connection:
        events = [dict(row) for row in connection.execute(newest).mappings()]
    return rows, events + [start for start in starts if start not in events]


def workflow_values(store: Store) -> dict[str, list[str]]:
    """The tenants and kinds of the ended workflows, in order of name."""
    return _values(store, {"tenant": [WORKFLOW.c.tenant], "kind": [WORKFLOW.c.kind]})


def change_values(store: Store) -> dict[str, list[str]]:
    """The kinds of commands and events, and the authors of commands, in order of name."""
    return _values(store, {"kind": [COMMAND.c.kind, EVENT.c.kind], "author": [COMMAND.c.author]})


def _workflow_terms(wanted: Workflows) -> list[sa.ColumnElement[bool]]:
    parts = ((WORKFLOW.c.tenant, wanted.tenant), (WORKFLOW.c.kind, wanted.kind), (WORKFLOW.c.state, wanted.state))
    where: list[sa.ColumnElement[bool]] = [column == value for column, value in parts if value is not None]
    if wanted.late:
        where.append(WORKFLOW.c.debt_s > 0)
    if wanted.number:
        where.append(sa.cast(WORKFLOW.c.id, sa.String).startswith(wanted.number, autoescape=True))
    return where


def _found(store: Store, query: sa.Select[Any], table: sa.Table, where: list[sa.ColumnElement[bool]]) -> Found:
    """The rows of `query`, and how many rows of `table` fit `where`, of one moment."""
    counted = sa.select(sa.func.count()).select_from(table).where(*where)
    with store.reading() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
        return rows, int(connection.execute(counted).scalar_one())


def _values(store: Store, columns: dict[str, list[sa.Column[Any]]]) -> dict[str, list[str]]:
    found = {}
    with store.reading() as connection:
        for name, sources in columns.items():
            queries = [sa.select(source).distinct().limit(MOST_VALUES) for source in sources]
            found[name] = sorted({str(row[0]) for query in queries for row in connection.execute(query)})
    return found
