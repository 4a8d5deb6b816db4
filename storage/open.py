"""Open the store: SQLite with a write-ahead log by default, any SQLAlchemy URL where one is given."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.pool import PoolProxiedConnection

from control.errors import StoreBusyError, StoreError
from storage.migrate import migrate
from storage.url import SCHEMES, default_url, parse_url, redact_url

__all__ = ["Store", "default_url", "open_store", "redact_url"]

#: How long a statement or an opening waits for another process's write lock, s.
BUSY_TIMEOUT_S = 5.0
#: 10 viewers and the engine's own threads, without waiting for a free connection.
_POOL = {"pool_size": 16, "max_overflow": 16}


class Store:
    """An open store. Safe to share between threads; open one per process.

    `url` is fit for logs (no password). `owner` is the lease this process holds, set by `lease.acquire`.
    """

    def __init__(self, engine: sa.Engine, url: str) -> None:
        self.url = url
        self.owner: str | None = None
        self._engine = engine
        self._watch: PoolProxiedConnection | None = None
        self._watch_lock = threading.Lock()
        name = engine.url.database or ""
        self._file = Path(name) if self.is_sqlite and not name.startswith("file:") else None
        self._inode = self._file.stat().st_ino if self._file else None

    @property
    def is_sqlite(self) -> bool:
        """Whether the store is a SQLite file."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection that sees one consistent state. Raises StoreError when the database fails."""
        with _one_line(self.url), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """One transaction that holds the write lock from its start; an exception rolls it back.

        Raises StoreBusyError when it stays locked for BUSY_TIMEOUT_S or the disk is full, StoreError when the database
        fails or its file was deleted or replaced: SQLite would go on writing to a file that nobody can open any more.
        """
        with (
            _one_line(self.url),
            self._in_place(),
            self._engine.connect().execution_options(write=True) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        if problem := self.displaced():
            raise StoreError(f"{self.url}: {problem}")
        yield

    def displaced(self) -> str:
        """What became of a SQLite file that was deleted or replaced since it was opened, "" if it is in its place."""
        try:
            there = self._file is None or self._file.stat().st_ino == self._inode
        except OSError as error:
            return f"the file is gone: {error.strerror}"
        return "" if there else "the file was replaced by another one"

    def data_version(self) -> int:
        """SQLite's number that moves when any other connection commits; about 10 us a call."""
        with _one_line(self.url), self._watch_lock:
            if self._watch is None:
                self._watch = self._engine.raw_connection()
            cursor = self._watch.cursor()
            cursor.execute("PRAGMA data_version")
            row = cursor.fetchone()
            cursor.close()
            return int(row[0]) if row else 0

    def close(self) -> None:
        """Close every connection. The store must not be used afterwards."""
        with self._watch_lock:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
        self._engine.dispose()


def open_store(url: str | None = None, may_create: bool = True) -> Store:
    """Open the store at `url` (default: `default_url()`) and bring its schema up to date.

    A SQLite file that is not there is made only where it `may_create` it; else StoreError says so.

    Safe when several processes open a new store at once. Raises StoreError, in one line, when the URL or
    the file is unusable, the place is read-only, or the store was written by a newer Headway.
    """
    url = url or default_url()
    shown = redact_url(url)
    with _one_line(shown):
        parsed = parse_url(url, shown)
        file = parsed.database or ""
        is_file = parsed.get_backend_name() == "sqlite" and not file.startswith("file:")
        if is_file and not may_create and not Path(file).exists():
            raise StoreError(f"{shown}: there is no store")
        engine = _create_engine(parsed)
        try:
            _while_locked(lambda: _prepare(engine))
        except BaseException:
            engine.dispose()
            raise
    return Store(engine, shown)


def _create_engine(url: sa.URL) -> sa.Engine:
    sqlite = url.get_backend_name() == "sqlite"
    arguments: dict[str, Any] = {}
    if sqlite:
        arguments = {"timeout": BUSY_TIMEOUT_S, "check_same_thread": False}
    elif url.drivername == "postgresql+psycopg":
        arguments = {"connect_timeout": round(BUSY_TIMEOUT_S)}
    engine = sa.create_engine(
        url,
        connect_args=arguments,
        poolclass=sa.QueuePool,
        json_serializer=_to_json,
        json_deserializer=_from_json,
        **_POOL,
    )
    if sqlite:
        event.listen(engine, "connect", _set_pragmas)
        event.listen(engine, "begin", _begin)
    return engine


def _to_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _from_json(value: Any) -> Any:
    """SQLite keeps a bare JSON number as a number, not as its text. What is no JSON stays text."""
    try:
        return value if isinstance(value, int | float) else orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def _set_pragmas(connection: sqlite3.Connection, _record: object) -> None:
    """Per connection; the driver's own BEGIN is switched off because it comes too late to hold a lock."""
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_S * 1000:.0f}")
    connection.execute("PRAGMA synchronous=NORMAL")  # with WAL: a killed process loses nothing
    connection.execute("PRAGMA foreign_keys=ON")


def _begin(connection: sa.Connection) -> None:
    """Writers take the lock at once: a reader that turned writer would fail with "locked" unwaited."""
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _prepare(engine: sa.Engine) -> None:
    if engine.dialect.name == "sqlite":
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            raw.close()
    migrate(engine)


def _while_locked(action: Callable[[], None]) -> None:
    """Repeat `action` while another process opens the same new file; SQLite does not wait for that itself."""
    deadline = time.monotonic() + 2 * BUSY_TIMEOUT_S
    while True:
        try:
            return action()
        except (exc.OperationalError, sqlite3.OperationalError) as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@contextmanager
def _one_line(shown: str) -> Iterator[None]:
    """Turn what a database raises into one StoreError line that names the store and never its password."""
    try:
        yield
    except StoreError as error:
        if str(error).startswith(shown):
            raise
        raise type(error)(f"{shown}: {error}") from error
    except exc.NoSuchModuleError as error:
        raise StoreError(f"{shown}: unknown kind of database; accepted: {SCHEMES}") from error
    except ModuleNotFoundError as error:
        raise StoreError(f"{shown}: needs the package {error.name}, e.g. pip install headway[postgres]") from error
    except (exc.SQLAlchemyError, sqlite3.Error) as error:
        cause = getattr(error, "orig", None) or error
        reason = (str(cause).splitlines() or [type(cause).__name__])[0]
        unwritable = "unable to open" in reason or "readonly" in reason
        hint = "; its folder must exist and be writable" if unwritable else ""
        passing = "locked" in reason or "disk is full" in reason
        kind = StoreBusyError if passing else StoreError
        raise kind(f"{shown}: {reason}{hint}") from error
