"""Where the store is: its default place, its URL read, and its URL fit for logs."""

import os
import re
from pathlib import Path

import platformdirs
import sqlalchemy as sa
from sqlalchemy import exc

from control.errors import StoreError

#: What a message offers as accepted.
SCHEMES = "a file, sqlite:////absolute/path.db or postgresql://user@host/database"


def default_url() -> str:
    """HEADWAY_DB where it is set, else SQLite in the user's data folder, which is made if missing.

    Raises StoreError when the folder cannot be made.
    """
    if given := os.environ.get("HEADWAY_DB"):
        return given
    folder = Path(platformdirs.user_data_dir("headway", appauthor=False))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}; name a place to write with --db or HEADWAY_DB") from error
    return f"sqlite:///{folder / 'headway.db'}"


def redact_url(url: str) -> str:
    """The URL with its password hidden, also one that cannot be parsed."""
    url = re.sub(r"(://[^:/?@]*):.*@", r"\1:***@", url)
    return re.sub(r"([?&]\w*password=)[^&]*", r"\1***", url)


def parse_url(url: str, shown: str) -> sa.URL:
    """The parsed URL, with psycopg as the driver of PostgreSQL.

    A plain file name is SQLite. Raises StoreError, which calls the URL `shown`, when it cannot be a shared store.
    """
    if "://" not in url and url:
        url = f"sqlite:///{Path(url).expanduser().absolute()}"
    try:
        parsed = sa.make_url(url)
    except (exc.ArgumentError, ValueError) as error:
        raise StoreError(f"{shown}: not a database URL; accepted: {SCHEMES}") from error
    if "@" in (parsed.host or ""):
        raise StoreError(f"{shown}: write an @ inside the user or password as %40")
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise StoreError(f"{shown}: engine and dashboard share the store, so it must be a file: {SCHEMES}")
    return parsed
