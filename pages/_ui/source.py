"""The dashboard's one open store, shared by all sessions and routes of this process."""

import os
import threading

from storage.open import Store, default_url, open_store

_lock = threading.Lock()
_stores: dict[str, Store] = {}


def store() -> Store:
    """The store named by HEADWAY_DB, else the user's default one; opened on first use, or at the next try.

    A file that was deleted or replaced under us is opened anew: the engine is on the one that has its name now.

    Raises StoreError with one line when it cannot be read.
    """
    url = os.environ.get("HEADWAY_DB") or default_url()
    with _lock:
        if url in _stores and _stores[url].displaced():
            _stores.pop(url).close()
        if url not in _stores:
            _stores[url] = open_store(url)
        return _stores[url]


def close() -> None:
    """Close every store this process opened."""
    with _lock:
        while _stores:
            _stores.popitem()[1].close()
