"""kill -9 at moments of chance while commands come in: each command acts exactly once, nothing is told twice."""

import random
import signal
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from storage import commands, readers
from storage.open import Store, open_store
from tests.service.conftest import newest
from tests.support.running import Start, until

NAMES = ("h100-0", "a100-1", "l4-0")


@dataclass
class Operator:
    """Submits commands from a thread until told to stop."""

    url: str
    seed: int
    ids: list[int] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)

    def work(self) -> None:
        """A command every 50 ms or so: most set alpha, some touch instances, some are bound to be refused."""
        rng, store = random.Random(self.seed), open_store(self.url)
        while not self.done.wait(rng.uniform(0.02, 0.1)):
            kind = rng.choices(("alpha", "drain", "undrain", "kill", "revive"), (8, 1, 1, 1, 2))[0]
            alpha = {"alpha": round(rng.random(), 6)}
            payload = alpha if kind == "alpha" else {"instance": rng.choice(NAMES)}
            expected = 2.0 if kind == "alpha" and rng.random() < 0.2 else None
            self.ids.append(commands.submit(store, kind, payload, "operator", expected=expected))
        store.close()


def survive(start: Start, db: Path, store: Store, kills: int) -> list[float]:
    """Kill and restart the engine `kills` times under a busy operator; the down times, s."""
    rng, operator, downs = random.Random(kills), Operator(str(db), kills), list[float]()
    thread = threading.Thread(target=operator.work)
    thread.start()
    try:
        for _ in range(kills):
            engine = start("engine", "--db", db, "--speed", 20)
            seen = newest(store).get("seq", 0)
            until(lambda seen=seen: newest(store).get("seq", 0) > seen, "a snapshot")  # type: ignore[misc]
            time.sleep(rng.uniform(0.0, 1.2))
            engine.signal(signal.SIGKILL)
            engine.wait()
            downs.append(time.time())
        start("engine", "--db", db)
        time.sleep(1.0)
    finally:
        operator.done.set()
        thread.join()
    until(lambda: not commands.pending(store), "every command decided")
    check_commands(store, operator.ids)
    return downs


def check_commands(store: Store, ids: list[int]) -> None:
    """Every command was decided; it has one event if it was applied, and none if it was not."""
    rows = {row["id"]: row for row in commands.recent(store, len(ids) + 1)}
    assert sorted(rows) == sorted(ids)
    told: dict[int, int] = {}
    for event in readers.events(store, 0.0, 100_000):
        if event["command_id"] is not None:
            told[event["command_id"]] = told.get(event["command_id"], 0) + 1
    assert told == {key: 1 for key, row in rows.items() if row["state"] == "applied"}
    alphas = [row for _, row in sorted(rows.items()) if row["kind"] == "alpha" and row["state"] == "applied"]
    until(lambda: newest(store)["payload"]["alpha"] == alphas[-1]["payload"]["alpha"], "the last alpha in force", 5.0)
    assert {row["state"] for row in rows.values()} == {"applied", "refused"}


def check_record(store: Store, downs: list[float]) -> None:
    """No workflow ended twice, no placement was recorded by two commits, and samples lack only the down times."""
    ended = readers.workflows(store, 1_000_000)
    assert len({row["id"] for row in ended}) == len(ended) > 50
    placed: dict[tuple[int, float, str], set[float]] = {}
    for row in readers.decisions(store, 1_000_000):
        placed.setdefault((row["call"], row["sim_s"], row["instance"]), set()).add(row["at"])
    assert all(len(commits) == 1 for commits in placed.values())  # an operator may bounce a call within an instant
    at = readers.samples(store, "fleet", 0.0, 1)["at"]
    for before, after in pairwise(at):
        killed = [down for down in downs if before <= down <= after]
        down_s = after - killed[0] if killed else 0.0
        assert after - before <= down_s + 2.0
    sim_s = readers.samples(store, "fleet", 0.0, 1)["sim_s"]
    assert (np.diff(sim_s) >= 0.0).all()


@pytest.mark.slow
def test_five_kills(start: Start, db: Path, store: Store) -> None:
    check_record(store, survive(start, db, store, 5))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fifty_kills(start: Start, db: Path, store: Store) -> None:
    check_record(store, survive(start, db, store, 50))
