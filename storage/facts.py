"""Facts of the store itself: how large it is, how many rows each table holds, and how long those are kept."""

from typing import NamedTuple

import sqlalchemy as sa

from storage import retention
from storage.open import Store
from storage.tables import COMMAND, DECISION, EVENT, RUN, SAMPLE, SNAPSHOT, WORKFLOW


class Kept(NamedTuple):
    """Rows of one kind: how many there are, and how long (s) and how many are kept; None: without that limit."""

    what: str
    rows: int
    age_s: float | None = None
    newest: int | None = None


def size_bytes(store: Store) -> int:
    """The size of the database, bytes; of a SQLite file without what still waits in its log."""
    if store.is_sqlite:
        query = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    else:
        query = "SELECT pg_database_size(current_database())"
    with store.reading() as connection:
        return int(connection.execute(sa.text(query)).scalar_one())


def kept(store: Store) -> list[Kept]:
    """Every kind of row with its limits (`storage.retention`); a full store takes a fraction of a second to count."""
    day_s = retention.DAY_S
    with store.reading() as connection:
        by_step = sa.select(SAMPLE.c.resolution_s, sa.func.count()).group_by(SAMPLE.c.resolution_s)
        samples = {int(step): int(rows) for step, rows in connection.execute(by_step)}
        found = [
            Kept(f"samples of {step} s", samples.get(step, 0), age) for step, age in retention.SAMPLE_AGE_S.items()
        ]
        for table, what, age_s, newest in (
            (DECISION, "decisions", day_s, retention.DECISIONS_KEPT),
            (WORKFLOW, "workflows", day_s, retention.WORKFLOWS_KEPT),
            (EVENT, "events", 30 * day_s, None),
            (SNAPSHOT, "snapshots", None, retention.SNAPSHOTS_KEPT),
            (COMMAND, "commands", None, None),
            (RUN, "runs", None, None),
        ):
            rows = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            found.append(Kept(what, int(rows), age_s, newest))
    return found
