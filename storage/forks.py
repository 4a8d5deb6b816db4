"""Forks as files: what a what-if ran on, kept beside its run so that it can be exported and run again."""

import time

import sqlalchemy as sa

from storage.open import Store
from storage.tables import FORK

KEPT = 40  # newest; the runs themselves stay


def save(store: Store, run_id: int, payload: bytes) -> None:
    """Keep the file of a run; the oldest ones beyond KEPT go."""
    with store.writing() as connection:
        connection.execute(sa.insert(FORK).values(run_id=run_id, created_at=time.time(), payload=payload))
        newest = sa.select(FORK.c.run_id).order_by(FORK.c.run_id.desc()).limit(1).offset(KEPT)
        beyond = connection.execute(newest).scalar()
        if beyond is not None:
            connection.execute(sa.delete(FORK).where(FORK.c.run_id <= beyond))


def payload(store: Store, run_id: int) -> bytes | None:
    """The file of a run; None where there is none, or none any more."""
    with store.reading() as connection:
        found = connection.execute(sa.select(FORK.c.payload).where(FORK.c.run_id == run_id)).scalar()
    return None if found is None else bytes(found)
