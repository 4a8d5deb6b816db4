"""The what-if lab of a live engine: forks are made at once, run ahead on other threads, and stored as they come.

The newest fork wins: one under way is stopped when another is asked for.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from control.engine.forking import fork_of
from control.engine.guard import apply_all, promise, take_back, verdict
from control.engine.history import History
from control.engine.outcome import Outcome, value
from control.engine.state import Live
from control.errors import InputError, SettingError, StoreBusyError
from control.tuning.whatif.file import save_fork
from control.tuning.whatif.fork import Fork
from control.tuning.whatif.lab import Lab
from control.tuning.whatif.promise import ENDED, ROLLED_BACK, WATCHING, Guard
from control.tuning.whatif.spec import Spec, read_spec
from storage import forks, runs
from storage.open import Store

Row = dict[str, Any]
KINDS = ("whatif", "apply_whatif", "end_guard", "undo_whatif")
MOST_GUARD_MINUTES = 60.0
Tell = Callable[[Outcome], None]


@dataclass
class Job:
    """A fork that is being run ahead."""

    given: Fork
    spec: Spec
    params: Row
    run_id: int | None = None  # of the store, once it is there
    latest: Row | None = None  # the newest result
    stored: Row | None = None
    stop: bool = False
    blob: bytes | None = None  # the whole fork as a file, once all is done
    future: Future[None] | None = field(default=None, repr=False)

    def work(self) -> None:
        """Run it; on another thread."""
        try:
            lab = Lab(self.given, self.spec)
            result = lab.evaluate(lambda so_far: setattr(self, "latest", so_far), lambda: self.stop)
            self.blob = save_fork(self.given, self.spec, result, self.params) if result["state"] == "done" else None
            self.latest = result
        except Exception as error:  # whatever it is, the page must not wait for ever
            self.latest = failed(f"{type(error).__name__}: {error}")
            raise


def failed(reason: str) -> Row:
    """The result of a fork that came to nothing."""
    return {"state": "failed", "reason": reason, "progress": 0.0, "settings": [], "times_s": [], "guard": None}


class Forks:
    """Forks of one live engine, and the setting of one of them that is under watch."""

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
                return self.apply(live, store, command, tell)
            if command["kind"] == "undo_whatif":
                return self.undo(live, store, command, tell)
            return self.end_guard(live, store)
        except InputError as error:
            return Outcome(False, str(error))

    def ask(self, live: Live, history: History, raw: Any, command: Mapping[str, Any]) -> Outcome:
        """Fork now."""
        spec = read_spec(raw)
        given = fork_of(live, history, spec)
        self.stop()
        params = {
            "spec": spec.as_dict(),
            "sim_s": given.now_s,
            "policy": live.policy,
            "alpha": float(given.world.policy[0]["alpha"]),
            "scenario": live.source.name,
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

    def apply(self, live: Live, store: Store, command: Mapping[str, Any], tell: Tell) -> Outcome:
        """Put a setting of a stored fork in force, and watch it."""
        run = runs.get(store, int(value(command, "run")))
        if run is None or run["kind"] != "whatif" or run["result"]["state"] != "done":
            raise SettingError(f"run = {value(command, 'run')!r:.40}: no what-if of that number is done")
        minutes = float(value(command, "guard_minutes"))
        if not 0.0 <= minutes <= MOST_GUARD_MINUTES:
            raise SettingError(f"guard_minutes = {minutes:g}: expected 0 (no guard) to {MOST_GUARD_MINUTES:g}")
        index = value(command, "setting")
        found = [row for row in run["result"]["settings"] if row["index"] == index and not row["problem"]]
        if not found:
            raise SettingError(f"setting = {index!r:.40}: the run has no such setting")
        if not found[0]["applicable"]:
            raise SettingError(f"{found[0]['name']}: {found[0]['why_not']}")
        wanted = [(str(kind), dict(payload)) for kind, payload in found[0]["commands"]]
        self.let_go(live, store, "another setting was applied")
        back, why = apply_all(live, wanted, tell)
        if why:
            return Outcome(False, why)
        set_to = {"alpha": live.alpha, "policy": live.policy}
        keep(store, run["id"], {"applied": {"setting": index, "back": back, "set": set_to}})
        if minutes > 0.0:
            low_s, high_s = promise(run["result"], found[0], minutes)
            ends_s = live.now_s + 60.0 * minutes
            live.guard = Guard(run["id"], index, found[0]["name"], live.now_s, ends_s, low_s, high_s, back, set_to)
            keep(store, run["id"], {"guard": live.guard.told(WATCHING)})
        return Outcome(True, "")

    def undo(self, live: Live, store: Store, command: Mapping[str, Any], tell: Tell) -> Outcome:
        """Take back what was applied of a fork, as far as it still stands."""
        number = int(value(command, "run"))
        run = runs.get(store, number)
        applied = run["result"].get("applied") if run is not None and run["kind"] == "whatif" else None
        if not applied or not applied["back"]:
            raise SettingError(f"run = {number}: nothing of it is applied that could be taken back")
        self.let_go(live, store, "what was applied was taken back by hand")
        take_back(live, still_standing(live, applied), tell)
        keep(store, number, {"applied": None})
        return Outcome(True, "")

    def end_guard(self, live: Live, store: Store) -> Outcome:
        """Watch no longer; what was applied stays."""
        if live.guard is None:
            raise SettingError("nothing is under watch")
        self.let_go(live, store, "watching was ended by hand")
        return Outcome(True, "")

    def let_go(self, live: Live, store: Store, why: str) -> None:
        """Forget the guard, if there is one."""
        if live.guard is not None:
            keep(store, live.guard.run_id, {"guard": live.guard.told(ENDED, None, why)})
            live.guard = None

    # ---- as time goes on

    def watch(self, live: Live, store: Store, tell: Tell) -> tuple[str, str] | None:
        """Judge what is under watch; kind and text of an event, where it has come to an end."""
        guard = live.guard
        if guard is None:
            return None
        state, realised_s, why = verdict(live, guard)
        if state == WATCHING:
            return None
        live.guard = None
        if state == ROLLED_BACK:
            take_back(live, guard.back, tell)
        gone = {"applied": None} if state == ROLLED_BACK else {}
        keep(store, guard.run_id, {"guard": guard.told(state, realised_s, why)} | gone)
        words = {"rolled_back": "taken back", "kept": "kept its promise", "replaced": "no longer watched"}[state]
        return ("rolled_back" if state == ROLLED_BACK else "guard_" + state), f"{guard.name} {words}: {why}"

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
        if job.run_id is None:
            params = job.params | {"at": at, "past": past(job.given.now_s)}
            first = job.latest or failed("") | {"state": "running", "reason": None}
            label = ", ".join(setting.name for setting in job.spec.settings[1:4])
            job.run_id = runs.save(store, "whatif", params, first, label)
            job.stored = job.latest
        elif job.latest is not None and job.latest is not job.stored:
            newest = job.latest
            if newest["state"] == "done" and job.blob is not None:
                forks.save(store, job.run_id, job.blob)
            runs.update(store, job.run_id, newest)
            job.stored = newest

    @property
    def is_busy(self) -> bool:
        """Whether a fork is under way."""
        return bool(self.jobs)

    def stop(self) -> None:
        """Have a fork under way end after the setting it is at."""
        for job in self.jobs:
            job.stop = True

    def close(self) -> None:
        """The same, and take no more."""
        self.stop()
        self.pool.shutdown(wait=False, cancel_futures=True)


def still_standing(live: Live, applied: Row) -> list[Any]:
    """The commands that take a setting back, without those whose alpha or policy somebody has set anew since."""
    now = {"alpha": live.alpha, "policy": live.policy}
    return [
        [kind, payload] for kind, payload in applied["back"] if kind not in now or now[kind] == applied["set"][kind]
    ]


def keep(store: Store, run_id: int, told: Row) -> None:
    """Write what became of a run's setting into it; a store that is busy loses no more than that."""
    try:
        run = runs.get(store, run_id)
        if run is not None:
            runs.update(store, run_id, run["result"] | told)
    except StoreBusyError:
        return
