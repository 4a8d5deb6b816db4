"""Bring a store's schema to the newest version, safely when several processes start at once."""

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from control.errors import StoreError

#: Any fixed number does: it names our lock among a PostgreSQL server's advisory locks.
_POSTGRES_LOCK = 0x48454144
#: Alembic keeps the running migration in a global of the process.
_ONE_AT_A_TIME = threading.Lock()


def known_version() -> str:
    """The newest schema version this Headway knows, e.g. "0001"."""
    return str(_scripts().get_current_head())


def migrate(engine: Engine) -> None:
    """Upgrade to `known_version()` in one transaction that no second process can interleave.

    Raises StoreError when the store was written by a newer Headway (its version is not among ours).
    """
    with engine.connect() as connection:
        if _is_current(connection):
            return
    with (
        _ONE_AT_A_TIME,
        engine.connect().execution_options(write=True) as connection,
        connection.begin(),
    ):
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _POSTGRES_LOCK})
        if not _is_current(connection):  # another process may have come first
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _is_current(connection: Connection) -> bool:
    found = MigrationContext.configure(connection).get_current_revision()
    scripts = _scripts()
    known = {script.revision for script in scripts.walk_revisions()}
    if found is not None and found not in known:
        newest = scripts.get_current_head()
        raise StoreError(
            f"the store is at schema version {found}, this Headway knows versions up to {newest}: "
            "upgrade Headway or name another store with --db"
        )
    return found == scripts.get_current_head()
