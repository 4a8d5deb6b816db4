"""Finished simulations, sweeps and forecasts: what was asked, what came out."""

import time
from typing import Any

import sqlalchemy as sa

from control.errors import SettingError
from storage.open import Store
from storage.tables import RUN


def save(store: Store, kind: str, params: dict[str, Any], result: Any, label: str = "", seed: int | None = None) -> int:
    """Keep a run of `kind` (e.g. "whatif", "sweep", "tune"); returns its id.

    `params` and `result` are JSON values (NumPy arrays and scalars are taken too). Raises SettingError on an
    empty kind.
    """
    if not kind.strip():
        raise SettingError("run: kind is empty; accepted: a name such as whatif, sweep or tune")
    row = {"created_at": time.time(), "kind": kind, "label": label, "seed": seed}
    insert = sa.insert(RUN).values(**row, params=params, result=result).returning(RUN.c.id)
    with store.writing() as connection:
        return int(connection.execute(insert).scalar_one())


def get(store: Store, run_id: int) -> dict[str, Any] | None:
    """One run with its params and result, or None where there is none of this id."""
    with store.reading() as connection:
        row = connection.execute(sa.select(RUN).where(RUN.c.id == run_id)).mappings().first()
    return None if row is None else dict(row)


def recent(store: Store, limit: int, kind: str | None = None, with_result: bool = False) -> list[dict[str, Any]]:
    """The newest `limit` runs (of one kind), newest first; without their results, which may be large, unless asked."""
    query = sa.select(*(column for column in RUN.columns if with_result or column.name != "result"))
    if kind is not None:
        query = query.where(RUN.c.kind == kind)
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query.order_by(RUN.c.id.desc()).limit(limit)).mappings()]


def unfinished(store: Store, kind: str) -> list[dict[str, Any]]:
    """The runs of `kind` whose result says that it is running, or that its guard is watching; with their results."""
    is_running = RUN.c.result["state"].as_string() == "running"
    is_watched = RUN.c.result[("guard", "state")].as_string() == "watching"
    query = sa.select(RUN).where(RUN.c.kind == kind, sa.or_(is_running, is_watched))
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query.order_by(RUN.c.id)).mappings()]


def delete(store: Store, run_id: int) -> bool:
    """Forget a run; returns whether there was one."""
    with store.writing() as connection:
        return connection.execute(sa.delete(RUN).where(RUN.c.id == run_id)).rowcount > 0


def update(store: Store, run_id: int, result: Any) -> bool:
    """Replace the result of a run, such as when a prediction can be judged; returns whether there was one."""
    with store.writing() as connection:
        changed = sa.update(RUN).where(RUN.c.id == run_id).values(result=result)
        return connection.execute(changed).rowcount > 0
