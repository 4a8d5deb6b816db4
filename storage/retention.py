"""Keep the store small: roll samples up to coarser ones, then forget what is old.

| rows                  | kept                | rolled up to |
|-----------------------|---------------------|--------------|
| samples of 1 s        | 30 min              | 10 s         |
| samples of 10 s       | 24 h                | 60 s         |
| samples of 60 s       | 30 days             |              |
| decisions             | 24 h, newest 200,000 |             |
| workflows             | 24 h, newest 50,000 |              |
| timelines of workflows | the newest 5,000   |              |
| receipts of decisions | the newest 20,000   |              |
| events                | 30 days             |              |
| snapshots             | the newest 900      |              |
| commands, runs        | for good            |              |

A coarse row is the mean of its finer ones, so power stays integrable over time and queues, debt and shares
keep their unit at every resolution (nulls do not count; a ratio is the mean of ratios). Only P95 is the
maximum: a breach must not vanish from a longer view. `at` is the start of the coarse interval, `sim_s` its
latest.
"""

import math

import sqlalchemy as sa

from storage.open import Store
from storage.tables import DECISION, EVENT, MEASURES, SAMPLE, SNAPSHOT, WORKFLOW

HOUR_S, DAY_S = 3600.0, 86400.0
#: resolution of samples, s -> how long they are kept, s.
SAMPLE_AGE_S = {1: HOUR_S / 2, 10: DAY_S, 60: 30 * DAY_S}
SNAPSHOTS_KEPT = 900
DECISIONS_KEPT, WORKFLOWS_KEPT, TIMELINES_KEPT = 200_000, 50_000, 5_000
RECEIPTS_KEPT = 20_000
#: A journal commit may arrive this much after its tick, s; an interval is complete only then.
GRACE_S = 2.0
#: Bounds of one call: coarse intervals per resolution, rows per table, rows in one transaction.
MAX_INTERVALS, MAX_DELETED, DELETED_AT_ONCE = 360, 100_000, 5_000


def roll_up(store: Store, now: float) -> int:
    """Roll up complete intervals and delete what is past its age; `now` in epoch seconds.

    Returns the rows written plus deleted. Running it again changes nothing; after down time repeated calls
    catch up, each with bounded work in short transactions that let the journal in between. Samples are
    never deleted before they are rolled up.
    """
    rolled_10, written_10 = _fold(store, 1, 10, now - GRACE_S)
    rolled_60, written_60 = _fold(store, 10, 60, rolled_10)
    deleted = _forget_samples(store, 1, min(now - SAMPLE_AGE_S[1], rolled_10))
    deleted += _forget_samples(store, 10, min(now - SAMPLE_AGE_S[10], rolled_60))
    deleted += _forget_samples(store, 60, now - SAMPLE_AGE_S[60])
    for table, age_s in ((DECISION, DAY_S), (WORKFLOW, DAY_S), (EVENT, 30 * DAY_S)):
        deleted += _delete(store, table, table.c.at < now - age_s)
    for table, kept in ((SNAPSHOT, SNAPSHOTS_KEPT), (DECISION, DECISIONS_KEPT), (WORKFLOW, WORKFLOWS_KEPT)):
        deleted += _forget_beyond(store, table, kept)
    return written_10 + written_60 + deleted + _forget_timelines(store) + _forget_receipts(store)


def _fold(store: Store, fine: int, coarse: int, until: float) -> tuple[float, int]:
    """Roll `fine` samples up to `coarse` ones as far as intervals end by `until`.

    Returns the time up to which everything is rolled up now, epoch s, and the rows written.
    """
    end = math.floor(until / coarse) * float(coarse)
    written = 0
    with store.reading() as connection:
        start = _rolled_to(connection, coarse, end)
    for _ in range(MAX_INTERVALS):
        with store.writing() as connection:
            first = _first_at(connection, fine, start, end)
            if first is None:
                return end, written
            interval = math.floor(first / coarse) * float(coarse)
            written += connection.execute(_mean_rows(fine, coarse, interval)).rowcount
        start = interval + coarse
    return start, written


def _rolled_to(connection: sa.Connection, coarse: int, end: float) -> float:
    """End of the newest coarse interval before `end`; rows from a clock that ran ahead do not count."""
    rows = sa.and_(SAMPLE.c.resolution_s == coarse, SAMPLE.c.at < end)
    newest = connection.execute(sa.select(sa.func.max(SAMPLE.c.at)).where(rows)).scalar()
    return 0.0 if newest is None else float(newest) + coarse


def _first_at(connection: sa.Connection, fine: int, start: float, end: float) -> float | None:
    rows = sa.and_(SAMPLE.c.resolution_s == fine, SAMPLE.c.at >= start, SAMPLE.c.at < end)
    return connection.execute(sa.select(sa.func.min(SAMPLE.c.at)).where(rows)).scalar()


def _mean_rows(fine: int, coarse: int, interval: float) -> sa.Insert:
    """INSERT ... SELECT of one coarse interval: a row per scope, made inside the database."""
    rows = sa.and_(SAMPLE.c.resolution_s == fine, SAMPLE.c.at >= interval, SAMPLE.c.at < interval + float(coarse))
    merged = [(sa.func.max if name == "p95_s" else sa.func.avg)(SAMPLE.c[name]) for name in MEASURES]
    fixed = [sa.literal(coarse, sa.Integer), sa.literal(interval, sa.Float), sa.func.max(SAMPLE.c.sim_s)]
    query = sa.select(*fixed, SAMPLE.c.scope, *merged).where(rows).group_by(SAMPLE.c.scope)
    columns = ["resolution_s", "at", "sim_s", "scope", *MEASURES]
    return sa.insert(SAMPLE).from_select(columns, query)


def _forget_samples(store: Store, resolution_s: int, before: float) -> int:
    return _delete(store, SAMPLE, sa.and_(SAMPLE.c.resolution_s == resolution_s, SAMPLE.c.at < before))


def _forget_beyond(store: Store, table: sa.Table, kept: int) -> int:
    """Delete all but the newest `kept` rows."""
    key = next(iter(table.primary_key.columns))
    with store.reading() as connection:
        newest = connection.execute(sa.select(sa.func.max(key))).scalar() or 0
    return _delete(store, table, key <= newest - kept)


def _forget_timelines(store: Store) -> int:
    """Clear the timelines of all but the newest workflows; the rows stay."""
    with store.reading() as connection:
        newest = connection.execute(sa.select(sa.func.max(WORKFLOW.c.seq))).scalar() or 0
    old = sa.and_(WORKFLOW.c.seq <= newest - TIMELINES_KEPT, WORKFLOW.c.timeline.is_not(None))
    doomed = sa.select(WORKFLOW.c.seq).where(old).limit(DELETED_AT_ONCE)
    with store.writing() as connection:
        cleared = sa.update(WORKFLOW).where(WORKFLOW.c.seq.in_(doomed)).values(timeline=sa.null())
        return connection.execute(cleared).rowcount


def _forget_receipts(store: Store) -> int:
    """Clear what all but the newest placements were decided on; the rows stay."""
    with store.reading() as connection:
        newest = connection.execute(sa.select(sa.func.max(DECISION.c.id))).scalar() or 0
    old = sa.and_(DECISION.c.id <= newest - RECEIPTS_KEPT, DECISION.c.candidates.is_not(None))
    doomed = sa.select(DECISION.c.id).where(old).limit(DELETED_AT_ONCE)
    with store.writing() as connection:
        cleared = sa.update(DECISION).where(DECISION.c.id.in_(doomed)).values(candidates=sa.null(), filtered=sa.null())
        return connection.execute(cleared).rowcount


def _delete(store: Store, table: sa.Table, which: sa.ColumnElement[bool]) -> int:
    """Delete matching rows in short transactions, MAX_DELETED at most; returns how many."""
    key = next(iter(table.primary_key.columns))
    doomed = sa.select(key).where(which).limit(DELETED_AT_ONCE)
    statement = sa.delete(table).where(key.in_(doomed))
    deleted = 0
    while deleted < MAX_DELETED:
        with store.writing() as connection:
            count = connection.execute(statement).rowcount
        deleted += count
        if count < DELETED_AT_ONCE:
            break
    return deleted
