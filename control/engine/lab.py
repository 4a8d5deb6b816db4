"""The what-if lab of a live engine: forks are made at once, run ahead on other threads, and stored as they come.

The newest fork wins: one under way is stopped when another is asked for.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from control.engine import applied
from control.engine.forking import fork_of
from control.engine.history import History
from control.engine.outcome import Outcome, value
from control.engine.state import Live
from control.engine.things import Tell
from control.errors import InputError, StoreBusyError, StoreError, one_line
from control.tuning.whatif.file import save_fork
from control.tuning.whatif.fork import Fork
from control.tuning.whatif.lab import Lab
from control.tuning.whatif.patience import SETTING_S
from control.tuning.whatif.spec import Spec, read_spec
from storage import forks, runs
from storage.open import Store

log = logging.getLogger("headway.engine")

Row = dict[str, Any]
KINDS = ("whatif", "apply_whatif", "end_guard", "undo_whatif")
ANOTHER, ENGINE_ENDED = "stopped: another fork was asked for", "the engine ended while it ran"


@dataclass(eq=False)  # of two forks alike each is itself: their arrays cannot be compared
class Job:
    """A fork that is being run ahead."""

    given: Fork
    spec: Spec
    params: Row
    run_id: int | None = None  # of the store, once it is there
    latest: Row | None = None  # the newest result
    stored: Row | None = None
    stop: str = ""  # why it is to end
    blob: bytes | None = None  # the whole fork as a file, once all is done
    future: Future[None] | None = field(default=None, repr=False)

    def work(self) -> None:
        """Run it; on another thread."""
        try:
            lab = Lab(self.given, self.spec, SETTING_S)
            result = lab.evaluate(lambda so_far: setattr(self, "latest", so_far), lambda: bool(self.stop))
            result |= {"reason": self.stop} if result["state"] == "failed" else {}
            self.blob = save_fork(self.given, self.spec, result, self.params) if result["state"] == "done" else None
            self.latest = result
        except Exception as error:  # whatever it is, the page must not wait for ever
            self.latest = failed(one_line(error))
            raise


def failed(reason: str) -> Row:
    """The result of a fork that came to nothing."""
    return {"state": "failed", "reason": reason, "progress": 0.0, "settings": [], "times_s": [], "guard": None}


class Forks:
    """Forks of one live engine."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="forks")

    # ---- orders

    def obey(self, live: Live, history: History, store: Store, command: Mapping[str, Any], tell: Tell) -> Outcome:
        """Apply or refuse one of KINDS."""
        try:
            if command["kind"] == "whatif":
                return self.ask(live, history, value(command, "spec"), command)
            if command["kind"] == "apply_whatif":
                return applied.apply(live, store, command, tell)
            if command["kind"] == "undo_whatif":
                return applied.undo(live, store, command, tell)
            return applied.end_guard(live, store)
        except InputError as error:
            return Outcome(False, str(error))

    def ask(self, live: Live, history: History, raw: Any, command: Mapping[str, Any]) -> Outcome:
        """Fork now."""
        spec = read_spec(raw)
        given = fork_of(live, history, spec)
        self.stop(ANOTHER)
        params = {
            "spec": spec.as_dict(),
            "sim_s": given.now_s,
            "policy": live.policy,
            "alpha": float(given.world.policy[0]["alpha"]),
            "scenario": live.source.name,
            "seed": live.source.seed,
            "fleet": live.fleet.name,
            "instances": len(given.fleet.instances),
            "speed": live.speed,
            "window_s": given.window_s,
            "drawn_from_s": given.now_s - given.since_s,
            "arrivals_known": len(given.arrivals),
            "command": command.get("id"),
        }
        job = Job(given, spec, params)
        job.future = self.pool.submit(job.work)
        self.jobs.append(job)
        return Outcome(True, "")

    # ---- as time goes on

    def record(self, store: Store, at: float, past: Callable[[float], Row]) -> None:
        """Store what is new. A store that is busy is tried again at the next call."""
        for job in list(self.jobs):
            try:
                self.store_job(store, job, at, past)
            except StoreBusyError:
                return
            ended = job.future is not None and job.future.done()
            if ended and job.stored is job.latest and job.stored is not None:
                self.jobs.remove(job)

    def store_job(self, store: Store, job: Job, at: float, past: Callable[[float], Row]) -> None:
        """Store the newest result of one fork, and its file once it is done."""
        newest = job.latest  # once: the other thread goes on, and what it tells meanwhile is not stored yet
        if job.run_id is None:
            params = job.params | {"at": at, "past": past(job.given.now_s)}
            first = newest or failed("") | {"state": "running", "reason": None}
            label = ", ".join(setting.name for setting in job.spec.settings[1:4])
            job.run_id = runs.save(store, "whatif", params, first, label)
            job.stored = newest
        elif newest is not None and newest is not job.stored:
            if newest["state"] == "done" and job.blob is not None:
                forks.save(store, job.run_id, job.blob)
            runs.update(store, job.run_id, newest)
            job.stored = newest

    @property
    def is_busy(self) -> bool:
        """Whether a fork is under way."""
        return bool(self.jobs)

    def stop(self, why: str) -> None:
        """Have a fork under way end at once."""
        for job in self.jobs:
            job.stop = job.stop or why

    def close(self, store: Store) -> None:
        """The same, and take no more; a fork that is done is stored, one that is not says why."""
        self.stop(ENGINE_ENDED)
        self.pool.shutdown(wait=False, cancel_futures=True)
        for job in self.jobs:
            if job.run_id is None:
                continue
            if job.latest is None or job.latest["state"] != "done":
                end_run(store, job.run_id, job.stop)
                continue
            with suppress(StoreError):  # the next engine tells of its end
                self.store_job(store, job, 0.0, lambda _: {})


def end_run(store: Store, run_id: int, why: str) -> None:
    """Have a stored fork that nobody runs ahead any more say so; what was there of it stays."""
    try:
        run = runs.get(store, run_id)
        if run is not None and run["result"]["state"] == "running":
            runs.update(store, run_id, run["result"] | {"state": "failed", "reason": why})
    except StoreError as error:
        log.warning("fork #%d is not told as ended: %s", run_id, error)
