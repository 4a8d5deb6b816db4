"""Regret on demand: what the runner-up of a placement would have cost, replayed on another thread.

An order only notes the number of the placement. The loop looks it up, starts the replay, and stores what came of it as
a run of kind "regret", or why it cannot be told.
"""

import logging
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from control.engine.history import History
from control.engine.outcome import Outcome, value
from control.engine.receipts import runner_up
from control.engine.state import Live
from control.engine.tuner import past_of
from control.errors import SettingError, StoreError
from control.tuning.imagine import imagined
from control.tuning.regret import LostError, Placed, regret
from control.twin.world import fork
from storage import readers, runs
from storage.open import Store

log = logging.getLogger("headway.engine")

Row = dict[str, Any]
KIND = "regret"
MOST_WAITING = 8


class UntoldError(Exception):
    """Why the regret of a placement cannot be told."""


def ask_regret(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Have the regret of a placement told; what comes of it is a run."""
    number = value(command, "decision")
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise SettingError(f"decision = {number!r:.80}: expected the number of a placement")
    if len(live.regrets) >= MOST_WAITING:
        raise SettingError(f"{MOST_WAITING} replays wait already: ask again when they have ended")
    live.regrets.append(number)
    return Outcome(True, "")


@dataclass
class Job:
    """A replay under way, or one that need not begin."""

    params: Row
    future: Future[Row]


@dataclass
class Regrets:
    """Replays of placements of one live fleet, one at a time."""

    job: Job | None = None
    stopping: bool = False
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="regret"))

    def follow(self, live: Live, history: History, store: Store) -> None:
        """Store the replay that has ended; begin the next one that was asked for.

        Raises:
            StoreBusyError: the store is locked; the next call tries again.
        """
        if self.job is not None and self.job.future.done():
            runs.save(store, KIND, self.job.params, outcome_of(self.job.future))
            self.job = None
        if self.job is None and live.regrets:
            self.job = self.begin(live, history, store, live.regrets[0])
            live.regrets.pop(0)

    def begin(self, live: Live, history: History, store: Store, number: int) -> Job:
        """Start the replay of one placement; one that cannot be is a job that has ended.

        Raises:
            StoreError: the store failed.
        """
        params: Row = {"decision": number, "sim_s": live.now_s}
        try:
            decision, placed = looked_up(live, store, number)
            params |= {key: decision[key] for key in ("workflow", "call", "stage", "instance", "policy", "alpha")}
            params |= {"runner_up": live.fleet.instances[placed.other].name, "placed_sim_s": placed.placed_s}
            return Job(params, self.submit(live, history, placed))
        except StoreError:
            raise
        except Exception as error:  # the fleet is run on, whatever a look back comes to
            untold: Future[Row] = Future()
            untold.set_exception(error)
            return Job(params, untold)

    def submit(self, live: Live, history: History, placed: Placed) -> Future[Row]:
        """The replay, on another thread.

        Raises:
            UntoldError: no state is kept from before the placement.
        """
        recorded = history.exactly(live, placed.placed_s)
        if recorded is None:
            raise UntoldError(f"no state of the fleet is kept from before it; {reach(live, history)}")
        past = past_of(live, history, recorded)
        past.state, past.policy = imagined(fork(recorded.state)), recorded.state.policy.copy()
        known_s = live.now_s if live.source.is_gateway else float(live.world.workflows["arrival_s"].max(initial=0.0))
        return self.pool.submit(regret, past, placed, max(known_s, live.now_s), self.tell)

    def tell(self) -> None:
        """End the replay where the engine ends."""
        if self.stopping:
            raise CancelledError

    def wait(self) -> None:
        """Until nothing is under way; what came of it is for the next `follow` to store."""
        if self.job is not None:
            self.job.future.exception()

    def close(self) -> None:
        """Have a replay under way end soon."""
        self.stopping = True
        self.pool.shutdown(wait=False, cancel_futures=True)


def outcome_of(future: Future[Row]) -> Row:
    """What a replay gave, or why it gave nothing."""
    error = future.exception()
    if error is None:
        return future.result() | {"problem": None}
    if not isinstance(error, UntoldError | LostError):  # the fleet is run on, whatever a look back comes to
        log.error("a placement could not be replayed", exc_info=error)
        return {"problem": f"the replay failed: {type(error).__name__}"}
    return {"problem": str(error)}


def reach(live: Live, history: History) -> str:
    """How far back states are kept, in words."""
    if not history.states:
        return "none is kept yet"
    oldest_s = float(history.states[0][0].clock[0]["now_s"])
    return f"the oldest is {(live.now_s - oldest_s) / 60.0:.1f} simulated minutes old"


def looked_up(live: Live, store: Store, number: int) -> tuple[Row, Placed]:
    """A stored placement, and what a replay needs to know of it.

    Raises:
        UntoldError: there is nothing to replay.
    """
    decision = readers.decision(store, number)
    if decision is None:
        raise UntoldError(f"no placement {number} is in the store")
    names = [spec.name for spec in live.fleet.instances]
    other = runner_up(decision)
    if other is None:
        raise UntoldError("no other instance could have taken the call")
    if other not in names or decision["instance"] not in names:
        raise UntoldError("the fleet was another one then")
    workflow = readers.workflow(store, decision["workflow"])
    if workflow is None:
        raise UntoldError(f"workflow #{decision['workflow']} has not ended yet")
    uids = [call["call"] for call in workflow["timeline"] or ()]
    if decision["call"] not in uids:
        raise UntoldError("the timeline of its workflow is not kept")
    return decision, Placed(
        float(workflow["arrival_sim_s"]),
        uids.index(decision["call"]),
        names.index(decision["instance"]),
        names.index(other),
        float(decision["sim_s"]),
        float(workflow["latency_s"]),
    )
