"""Named reads for dashboards and the command line: each one short query, rows out as dicts or arrays.

An empty store gives empty results. Lists are newest first unless said otherwise.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import sqlalchemy as sa

from storage.open import Store
from storage.tables import DECISION, DETAIL, EVENT, MEASURES, META, SAMPLE, SNAPSHOT, WORKFLOW

Columns = dict[str, npt.NDArray[Any]]
#: A chart gets at most about this many points a line.
MAX_POINTS = 900
#: Columns of a placement that are read one placement at a time.
RECEIPT = frozenset({"candidates", "filtered"})
#: A runner-up is close when its score differs by at most this share of both scores together.
CLOSE = 0.05


def latest_snapshot(store: Store) -> dict[str, Any] | None:
    """The newest snapshot: seq, at (epoch s), sim_s, payload (dict); None in a new store."""
    query = sa.select(SNAPSHOT).order_by(SNAPSHOT.c.seq.desc()).limit(1)
    with store.reading() as connection:
        row = connection.execute(query).mappings().first()
    return None if row is None else {**row, "payload": orjson.loads(row["payload"])}


def snapshots_since(store: Store, seq: int, limit: int = MAX_POINTS) -> list[tuple[int, bytes]]:
    """Up to `limit` snapshots with a number above `seq`, oldest first: (seq, payload as JSON bytes)."""
    query = sa.select(SNAPSHOT.c.seq, SNAPSHOT.c.payload).where(SNAPSHOT.c.seq > seq)
    with store.reading() as connection:
        rows = connection.execute(query.order_by(SNAPSHOT.c.seq).limit(limit)).all()
    return [(row.seq, bytes(row.payload)) for row in rows]


def pick_resolution(window_s: float) -> int:
    """Resolution of samples, s (1, 10 or 60), that covers a window with at most 900 points where it can."""
    return next((step for step in (1, 10) if window_s <= step * MAX_POINTS), 60)


def samples(
    store: Store,
    scope: str | None,
    since_at: float,
    resolution_s: int,
    measures: Sequence[str] = MEASURES,
) -> Columns:
    """Samples from `since_at` (epoch s) on, oldest first, as columns of equal length N.

    Keys: "at", "sim_s" and the `measures` as (N,) float64 with nan where null, "scope" as (N,) text. `scope`
    is "fleet" or the name of an instance; None gives all, in order of time, then name. Ask for few measures
    of a large fleet: the time goes with the numbers read (65 scopes x 900 s: about .3 s for all ten).
    """
    numbers = ("at", "sim_s", *measures)
    query = sa.select(SAMPLE.c.scope, *(SAMPLE.c[name] for name in numbers))
    query = query.where(SAMPLE.c.resolution_s == resolution_s, SAMPLE.c.at >= since_at)
    if scope is not None:
        query = query.where(SAMPLE.c.scope == scope)
    with store.reading() as connection:
        rows = connection.execute(query.order_by(SAMPLE.c.at, SAMPLE.c.scope)).all()
    scopes, *values = zip(*rows, strict=True) if rows else [()] * (1 + len(numbers))
    columns: Columns = {"scope": np.array(scopes, dtype=np.str_)}
    return columns | {n: np.array(v, dtype=np.float64) for n, v in zip(numbers, values, strict=True)}


def events(store: Store, since_at: float, limit: int) -> list[dict[str, Any]]:
    """The newest `limit` events from `since_at` (epoch s) on."""
    query = sa.select(EVENT).where(EVENT.c.at >= since_at)
    return _dicts(store, query.order_by(EVENT.c.at.desc(), EVENT.c.id.desc()).limit(limit))


def newest_event(store: Store, kind: str) -> dict[str, Any] | None:
    """The newest event of a kind, None where there is none."""
    query = sa.select(EVENT).where(EVENT.c.kind == kind)
    return next(iter(_dicts(store, query.order_by(EVENT.c.at.desc(), EVENT.c.id.desc()).limit(1))), None)


def decisions(
    store: Store,
    limit: int,
    workflow: int | None = None,
    stage: str | None = None,
    instance: str | None = None,
    policy: str | None = None,
    close_only: bool = False,
) -> list[dict[str, Any]]:
    """The newest `limit` placements, without their receipts; those of one workflow, stage, instance or policy.

    `close_only`: those whose runner-up scored nearly as much (CLOSE).
    """
    query = sa.select(*(column for column in DECISION.c if column.name not in RECEIPT))
    columns = (DECISION.c.workflow, DECISION.c.stage, DECISION.c.instance, DECISION.c.policy)
    for column, wanted in zip(columns, (workflow, stage, instance, policy), strict=True):
        if wanted is not None:
            query = query.where(column == wanted)
    if close_only:
        best, second = DECISION.c.score, DECISION.c.runner_up_score
        query = query.where(sa.func.abs(best - second) <= CLOSE * (sa.func.abs(best) + sa.func.abs(second)))
    return _dicts(store, query.order_by(DECISION.c.id.desc()).limit(limit))


def decision(store: Store, number: int) -> dict[str, Any] | None:
    """One placement with its receipt; None where there is none of that number."""
    rows = _dicts(store, sa.select(DECISION).where(DECISION.c.id == number))
    return rows[0] if rows else None


def workflows(
    store: Store,
    limit: int,
    state: str | None = None,
    kind: str | None = None,
    tenant: str | None = None,
    late_only: bool = False,
) -> list[dict[str, Any]]:
    """The newest `limit` finished workflows, without their timelines; `late_only`: with a debt above 0 s."""
    query = sa.select(*(column for column in WORKFLOW.c if column.name != "timeline"))
    for column, wanted in ((WORKFLOW.c.state, state), (WORKFLOW.c.kind, kind), (WORKFLOW.c.tenant, tenant)):
        if wanted is not None:
            query = query.where(column == wanted)
    if late_only:
        query = query.where(WORKFLOW.c.debt_s > 0)
    return _dicts(store, query.order_by(WORKFLOW.c.seq.desc()).limit(limit))


def workflow(store: Store, number: int) -> dict[str, Any] | None:
    """The newest finished workflow of that number, with its timeline; None where there is none."""
    query = sa.select(WORKFLOW).where(WORKFLOW.c.id == number).order_by(WORKFLOW.c.seq.desc()).limit(1)
    rows = _dicts(store, query)
    return rows[0] if rows else None


def highest_workflow(store: Store) -> int | None:
    """The highest number of a finished workflow; None where there is none."""
    with store.reading() as connection:
        found: int | None = connection.execute(sa.select(sa.func.max(WORKFLOW.c.id))).scalar()
    return found


def detail(store: Store) -> dict[str, Any] | None:
    """Queues, ledger, active workflows and the tuner as of the newest snapshot; None before the first."""
    with store.reading() as connection:
        payload = connection.execute(sa.select(DETAIL.c.payload)).scalar()
    found: dict[str, Any] | None = None if payload is None else orjson.loads(payload)
    return found


def fleet_summary(store: Store, since_at: float = 0.0) -> dict[str, Any]:
    """Workflows finished since `since_at` (epoch s; the store holds 24 h), summed up in one row.

    Keys: workflows, completed, failed, cancelled, refused, late (debt above 0 s), slo_debt_s, energy_j,
    input_tokens, output_tokens (0 where nothing finished) and mean_latency_s (of completed ones, else None).
    """
    columns = [sa.func.count().label("workflows")]
    columns += [_count(WORKFLOW.c.state == s, s) for s in ("completed", "failed", "cancelled", "refused")]
    columns += [_count(WORKFLOW.c.debt_s > 0, "late"), _sum(WORKFLOW.c.debt_s, "slo_debt_s")]
    columns += [_sum(WORKFLOW.c[name], name) for name in ("energy_j", "input_tokens", "output_tokens")]
    completed_s = sa.case((WORKFLOW.c.state == "completed", WORKFLOW.c.latency_s))
    columns.append(sa.func.avg(completed_s).label("mean_latency_s"))
    with store.reading() as connection:
        query = sa.select(*columns).where(WORKFLOW.c.at >= since_at)
        row = dict(connection.execute(query).mappings().one())
    row |= {name: int(row[name]) for name in ("input_tokens", "output_tokens")}  # PostgreSQL sums to Decimal
    return row | {name: float(row[name]) for name in ("slo_debt_s", "energy_j")}


def meta(store: Store) -> dict[str, str]:
    """The facts of the store that the engine set (`Batch.meta`)."""
    with store.reading() as connection:
        return {row.key: row.value for row in connection.execute(sa.select(META))}


def _dicts(store: Store, query: sa.Select[Any]) -> list[dict[str, Any]]:
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def _count(condition: sa.ColumnElement[bool], name: str) -> sa.Label[Any]:
    return sa.func.count(sa.case((condition, 1))).label(name)


def _sum(column: sa.ColumnElement[Any], name: str) -> sa.Label[Any]:
    """The sum of what is above 0: an early finish earns no credit against a late one's debt."""
    return sa.func.coalesce(sa.func.sum(sa.case((column > 0, column))), 0).label(name)
