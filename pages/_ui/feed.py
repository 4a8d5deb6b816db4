"""The live window kept in memory: each snapshot is read and parsed once, whoever watches.

Viewers that ask for the same seconds share one serialisation.
"""

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import orjson

from control.present import live
from control.present.groups import GROUP_ABOVE
from control.present.marks import Mark, marks_of
from storage import readers
from storage.open import Store

#: The longest time range a viewer can choose, s.
LONGEST_S = 1800
#: Several viewers within this time (s) share one look at the store.
LOOK_EVERY_S = 0.2
#: Snapshots read at once; more than one a second only after a pause.
BATCH = 900
#: The same at the start of a large fleet, whose snapshots take milliseconds each.
LARGE_BATCH = 60


class Feed:
    """Rows and marks of the last LONGEST_S seconds of one store's present run, brought up to date on demand."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._looked = float("-inf")
        self._forget()

    def answer(self, since: int, window_s: float) -> tuple[bytes, float]:
        """The `/api/live` body for a viewer that knows snapshot `since`, and the age of the data in s.

        An empty store answers {"seq": 0} with age -1. Raises StoreError.
        """
        with self._lock:
            self._look()
            if self._payload is None:
                return b'{"seq":0}', -1.0
            age = max(0.0, time.time() - float(self._payload["at"]))
            return self._serialised(since, window_s), age

    def begun(self) -> float:
        """When the present run began, epoch s; 0.0 where that is longer ago than what is kept. Raises StoreError."""
        with self._lock:
            self._look()
            return self._begun

    def _look(self) -> None:
        if time.monotonic() - self._looked < LOOK_EVERY_S:
            return
        newest = readers.latest_snapshot(self._store)
        self._looked = time.monotonic()
        if newest is None or (self._payload and newest["seq"] < self._seq):
            self._forget()
        if newest is None or newest["seq"] == self._seq:
            return
        if self._payload is None:
            self._backfill(newest)
        self._events(float(newest["at"]))
        for _, payload in readers.snapshots_since(self._store, self._seq, BATCH):
            self._take(orjson.loads(payload))
        self._bodies.clear()

    def _forget(self) -> None:
        self._payload: dict[str, Any] | None = None
        self._seq = 0
        self._rows: deque[live.Row] = deque(maxlen=LONGEST_S)
        self._begun = 0.0  # epoch s of the run's first row, as far as it was seen
        self._marks: dict[int, tuple[int, Mark]] = {}
        self._bodies: dict[tuple[int, int], bytes] = {}

    def _backfill(self, newest: Mapping[str, Any]) -> None:
        """Seconds of before this process; of a large fleet few with its instances, which would take many seconds."""
        large = len(newest["payload"]["instances"]) > GROUP_ABOVE
        if large:
            self._seq = max(0, newest["seq"] - LARGE_BATCH)
        samples = readers.samples(self._store, "fleet" if large else None, float(newest["at"]) - LONGEST_S, 1)
        rows, self._begun = live.present_run(live.rows_of_samples({name: c.tolist() for name, c in samples.items()}))
        self._rows.extend(rows)

    def _take(self, payload: dict[str, Any]) -> None:
        row = live.row_of_snapshot(payload)
        while self._rows and self._rows[-1].seq == 0 and self._rows[-1].at >= row.at - 0.5:
            self._rows.pop()
        if payload["instances"]:  # an engine that compiles has nothing to draw yet
            if self._rows and live.begins_anew(self._rows[-1], row):
                self._rows.clear()
                self._begun = row.at
            self._rows.append(row)
        self._payload, self._seq = payload, row.seq

    def _events(self, now: float) -> None:
        """Marks are tagged with the seq of the rows they come with: each viewer gets each, and its changes, once."""
        known, self._marks = self._marks, {}
        for mark in marks_of(readers.events(self._store, now - LONGEST_S, 200)):
            tag, before = known.get(mark.id, (self._seq + 1, mark))
            self._marks[mark.id] = (tag, mark) if before == mark else (self._seq + 1, mark)

    def _serialised(self, since: int, window_s: float) -> bytes:
        full = since <= 0 or since > self._seq
        key = (0, int(window_s)) if full else (since, 0)
        if key not in self._bodies:
            self._bodies[key] = self._body(0 if full else since, window_s)
        return self._bodies[key]

    def _body(self, since: int, window_s: float) -> bytes:
        payload: Mapping[str, Any] = self._payload or {}
        start = float(payload["at"]) - window_s
        rows = live.window_rows(list(self._rows), since, start)
        wanted = (m for tag, m in self._marks.values() if (tag > since if since else m.at >= start))
        marks = [m for m in wanted if m.at >= self._begun]
        body = live.answer(payload, rows, marks, since == 0, live.Limits(), self._begun)
        if since == 0:
            body["static"]["db"] = self._store.url.removeprefix("sqlite:///")
        return orjson.dumps(body)


_feeds: dict[Store, Feed] = {}
_feeds_lock = threading.Lock()


def feed_of(store: Store) -> Feed:
    """The feed of an open store; one per store and process."""
    with _feeds_lock:
        if store not in _feeds:
            _feeds[store] = Feed(store)
        return _feeds[store]
