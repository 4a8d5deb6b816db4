"""The lease: at most one engine drives a store.

The holder renews its heartbeat with every journal commit. Whoever finds no heartbeat for `ttl_s` may take
over; the old holder then learns it at its next commit, which fails as a whole (`storage.journal`).
"""

import os
import socket
import time
from typing import Any

import sqlalchemy as sa

from control.errors import LeaseHeldError
from storage.open import Store
from storage.tables import LEASE

#: A heartbeat further ahead than this, s, comes from a clock that was set back, not from a live engine.
MAX_CLOCK_LEAD_S = 60.0


def acquire(store: Store, owner: str, ttl_s: float = 5.0, now: float | None = None) -> None:
    """Take the lease for `owner` (a new uuid per engine start), or renew it; `now` in epoch seconds.

    Raises LeaseHeldError, naming pid, host and age, while another owner's heartbeat is younger than `ttl_s`.
    """
    now = time.time() if now is None else now
    lively = LEASE.c.heartbeat_at.between(now - ttl_s, now + MAX_CLOCK_LEAD_S)
    free = sa.or_(LEASE.c.owner == owner, LEASE.c.released, sa.not_(lively))
    mine = {"owner": owner, "pid": os.getpid(), "host": socket.gethostname()}
    mine |= {"started_at": now, "heartbeat_at": now, "released": False}
    with store.writing() as connection:
        if connection.execute(sa.update(LEASE).where(free).values(mine)).rowcount == 0:
            raise LeaseHeldError(_held(connection, now))
    store.owner = owner


def renew(connection: sa.Connection, owner: str | None, now: float) -> None:
    """The fence: renew the heartbeat inside the caller's transaction.

    Raises LeaseHeldError when `owner` is not, or no longer, the holder.
    """
    mine = sa.and_(LEASE.c.owner == owner, sa.not_(LEASE.c.released))
    if owner is None or connection.execute(sa.update(LEASE).where(mine).values(heartbeat_at=now)).rowcount == 0:
        raise LeaseHeldError(_held(connection, now))


def heartbeat(store: Store, owner: str, now: float | None = None) -> None:
    """Renew the lease. Raises LeaseHeldError when another engine has taken it over."""
    with store.writing() as connection:
        renew(connection, owner, time.time() if now is None else now)


def release(store: Store, owner: str) -> None:
    """Give the lease back, so that the next engine starts at once; nothing happens if it is not `owner`'s."""
    with store.writing() as connection:
        connection.execute(sa.update(LEASE).where(LEASE.c.owner == owner).values(released=True))
    if store.owner == owner:
        store.owner = None


def holder(store: Store, now: float | None = None) -> dict[str, Any] | None:
    """Who holds the lease: owner, pid, host, started_at, heartbeat_at and age_s (s since the heartbeat).

    None when it was never taken or was given back. A large age_s means that the engine is gone.
    """
    with store.reading() as connection:
        row = _row(connection)
    if row is None or row["released"]:
        return None
    now = time.time() if now is None else now
    return {**row, "age_s": max(0.0, now - row["heartbeat_at"])}


def _row(connection: sa.Connection) -> dict[str, Any] | None:
    row = connection.execute(sa.select(LEASE)).mappings().first()
    return None if row is None else dict(row)


def _held(connection: sa.Connection, now: float) -> str:
    row = _row(connection)
    if row is None or row["released"]:
        return "this engine holds no lease on the store; take it with lease.acquire before writing"
    age_s = max(0.0, now - row["heartbeat_at"])
    return (
        f"another engine drives this store: pid {row['pid']} on {row['host']}, last heard {age_s:.1f} s ago; "
        "stop it, or name another store with --db"
    )
