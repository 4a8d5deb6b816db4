"""The engine's record: one transaction a tick, whole or not at all.

A commit writes the snapshot, samples, decisions, finished workflows, events, outcomes of commands, the
checkpoint and the heartbeat together, fenced by the lease. With SQLite's write-ahead log and synchronous
NORMAL a killed process loses no acknowledged commit; a power cut may lose the last ones, never half of one.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from control.errors import SettingError
from storage import lease
from storage.open import Store
from storage.tables import CHECKPOINT, COMMAND, DECISION, DETAIL, EVENT, META, SAMPLE, SNAPSHOT, WORKFLOW

Row = dict[str, Any]

#: What makes a row the same row, in tables where a second one replaces the first.
_KEYS = {SAMPLE: ("resolution_s", "at", "scope"), CHECKPOINT: ("id",), DETAIL: ("id",), META: ("key",)}


@dataclass
class Batch:
    """What one tick has to record. Rows are dicts by column name (`storage.tables`); absent means null.

    `at` and `sim_s` fill in for rows without their own. Outcomes: {"id", "state": "applied" | "refused",
    "reason"}. The snapshot gets its row's number as its key "seq".
    """

    at: float  # epoch s
    sim_s: float  # simulated s
    snapshot: Row | None = None
    samples: list[Row] = field(default_factory=list)
    decisions: list[Row] = field(default_factory=list)
    workflows: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    outcomes: list[Row] = field(default_factory=list)
    checkpoint: bytes | None = None
    detail: Row | None = None  # replaces the one before; gets the snapshot's "seq" too
    meta: dict[str, str] = field(default_factory=dict)  # facts of the store to set, e.g. {"fleet": ...}


class Journal:
    """The single writer of a store, for the process that holds its lease."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def commit(self, batch: Batch) -> None:
        """Write the whole batch in one transaction and renew the lease's heartbeat to `batch.at`.

        Raises LeaseHeldError when this process does not, or no longer, hold the lease: nothing is written.
        Raises SettingError when a row has a column that its table lacks.
        """
        written = [
            (SAMPLE, _fill(SAMPLE, batch.samples, batch, resolution_s=1)),
            (DECISION, _fill(DECISION, batch.decisions, batch)),
            (WORKFLOW, _fill(WORKFLOW, batch.workflows, batch)),
            (EVENT, _fill(EVENT, batch.events, batch)),
        ]
        with self._store.writing() as connection:
            lease.renew(connection, self._store.owner, batch.at)
            for table, rows in written:
                if rows:
                    connection.execute(_insert(table, connection.dialect.name), rows)
            _decide(connection, batch)
            _keep_state(connection, batch)

    def load_checkpoint(self) -> tuple[float, float, bytes] | None:
        """The last committed checkpoint: at (epoch s), sim_s, blob; None in a new store."""
        query = sa.select(CHECKPOINT.c.at, CHECKPOINT.c.sim_s, CHECKPOINT.c.payload)
        with self._store.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else (row.at, row.sim_s, bytes(row.payload))


def plain(value: Any) -> Any:
    """A value every driver takes: NumPy scalars become Python's, and not-a-number becomes null."""
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and value != value else value


def _fill(table: sa.Table, rows: list[Row], batch: Batch, **defaults: Any) -> list[Row]:
    """Rows with every column of the table, so that one prepared statement takes them all."""
    columns = _columns(table)
    empty = {**dict.fromkeys(columns), "at": batch.at, "sim_s": batch.sim_s, **defaults}
    empty = {name: value for name, value in empty.items() if name in columns}
    filled = []
    for row in rows:
        if unknown := row.keys() - columns:
            raise SettingError(f"{table.name}: no column {sorted(unknown)[0]!r}; columns: {', '.join(columns)}")
        filled.append(empty | {name: plain(value) for name, value in row.items()})
    return filled


@cache
def _columns(table: sa.Table) -> dict[str, None]:
    """Names of the columns a row may give, in order: all but the number the database hands out."""
    return {column.name: None for column in table.columns if column is not table.autoincrement_column}


@cache
def _insert(table: sa.Table, dialect: str) -> sa.Insert:
    """An insert that replaces a row of the same key: a tick recorded again after a restart counts once."""
    insert = (postgresql_insert if dialect == "postgresql" else sqlite_insert)(table)
    keys = _KEYS.get(table)
    if keys is None:
        return insert
    replaced = {c.name: insert.excluded[c.name] for c in table.columns if c.name not in (*keys, "id")}
    return insert.on_conflict_do_update(index_elements=keys, set_=replaced)


def _decide(connection: sa.Connection, batch: Batch) -> None:
    """Record outcomes. A command that is already decided keeps its first outcome."""
    if not batch.outcomes:
        return
    for outcome in batch.outcomes:
        if outcome.get("state") not in ("applied", "refused"):
            raise SettingError(f"command outcome {outcome}: state must be applied or refused")
    still_pending = sa.and_(COMMAND.c.id == sa.bindparam("of"), COMMAND.c.state == "pending")
    names = {"state": "to", "reason": "why", "decided_at": "when", "sim_s": "sim"}
    update = sa.update(COMMAND).where(still_pending)
    update = update.values({column: sa.bindparam(name) for column, name in names.items()})
    parameters = [
        {
            "of": int(outcome["id"]),
            "to": outcome["state"],
            "why": outcome.get("reason"),
            "when": outcome.get("decided_at", batch.at),
            "sim": outcome.get("sim_s", batch.sim_s),
        }
        for outcome in batch.outcomes
    ]
    connection.execute(update, parameters)


def _keep_state(connection: sa.Connection, batch: Batch) -> None:
    """Append the snapshot, replace the checkpoint, set the facts."""
    stamp = {"at": batch.at, "sim_s": batch.sim_s}
    if batch.snapshot is not None:
        newest = connection.execute(sa.select(sa.func.max(SNAPSHOT.c.seq))).scalar()
        seq = (newest or 0) + 1
        payload = orjson.dumps({**batch.snapshot, "seq": seq}, option=orjson.OPT_SERIALIZE_NUMPY)
        connection.execute(sa.insert(SNAPSHOT), [{"seq": seq, "payload": payload, **stamp}])
        if batch.detail is not None:
            payload = orjson.dumps({**batch.detail, "seq": seq}, option=orjson.OPT_SERIALIZE_NUMPY)
            connection.execute(_insert(DETAIL, connection.dialect.name), [{"id": 1, "payload": payload, **stamp}])
    if batch.checkpoint is not None:
        row = {"id": 1, "payload": batch.checkpoint, **stamp}
        connection.execute(_insert(CHECKPOINT, connection.dialect.name), [row])
    if batch.meta:
        facts = [{"key": key, "value": value} for key, value in batch.meta.items()]
        connection.execute(_insert(META, connection.dialect.name), facts)
