"""The engine's loop: observe, decide, act, record.

Decisions fall inside `advance`, on events, at once; the tick moves simulated time to the wall clock times the
speed, takes commands, and records. Everything a second brought (snapshot, samples, decisions, ended workflows,
commands' outcomes, checkpoint) is committed in one transaction, so a killed engine goes on from a whole second, and
a command acts exactly once: either its outcome and its effect are both in the store, or neither is.
"""

import logging
import math
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from control.config import EngineSettings
from control.engine import beside, checkpoint, view
from control.engine.detail import detail
from control.engine.door import Door
from control.engine.followup import settle, take_up
from control.engine.history import History
from control.engine.lab import Forks
from control.engine.pending import Pending
from control.engine.receipts import Allowance
from control.engine.record import Most, Taken, most_left, rows_of, take
from control.engine.refine import Refiner
from control.engine.regret import Regrets
from control.engine.restart import succeed
from control.engine.script import due, next_act_s, perform
from control.engine.shadows import Shadows
from control.engine.state import Live, move, take_windows
from control.engine.tuner import Tuner
from control.errors import HeadwayError, StoreBusyError, one_line
from control.tuning.decide import TunerSettings
from storage import commands
from storage.journal import Batch, Journal
from storage.open import Store

log = logging.getLogger("headway.engine")

LONGEST_TICK_S = 2.0  # wall s that one tick makes up at most: a machine that slept does not race
MOST_WORK_S = 0.5  # wall s after which a tick leaves simulated time behind: commits and commands must not wait
WATCHED_TICK_S = 0.03  # wall s between looks while somebody waits for a fork
CHECKPOINT_EVERY = 5  # records of a fleet of real servers
CHUNK_S = 5.0  # simulated s from one look at the clock to the next


@dataclass
class Loop:
    """One engine over one store, whose lease it holds."""

    live: Live
    store: Store
    settings: EngineSettings
    version: str
    should_stop: Callable[[], bool]
    started_at: float = field(default_factory=time.time)
    pending: Pending = field(default_factory=Pending)
    history: History = field(default_factory=History)
    tuner: Tuner = field(default_factory=lambda: Tuner(TunerSettings()))
    forks: Forks = field(default_factory=Forks)
    shadows: Shadows = field(default_factory=Shadows)
    regrets: Regrets = field(default_factory=Regrets)
    receipts: Allowance = field(default_factory=Allowance)
    may_tune: bool = False  # the periodic job asks whether a run is due
    seen: int | None = None  # change token of the command table
    tick_ms: float = 0.0
    records: int = 0  # commits so far
    refiner: Refiner = field(default_factory=Refiner)  # of profiles of real servers
    backlog: deque[Taken] = field(default_factory=deque)  # taken from the journal, no rows made of it yet
    door: Door | None = None  # requests come in through it, from another thread

    def __post_init__(self) -> None:
        """Set up the live state."""
        self.cover_window()

    def cover_window(self) -> None:
        """Have the live figures cover the window that was asked for."""
        self.live.rolling.window_s = self.live.books.window_s = self.settings.window_s

    def run(self) -> None:
        """Tick until told to stop, then record the last state.

        Raises:
            LeaseHeldError: another engine has taken over; nothing more was written.
        """
        beside.begin(self)
        last = due = time.monotonic()
        while not self.should_stop():
            now = time.monotonic()
            self.tick(min(now - last, LONGEST_TICK_S))
            last = now
            if now >= due or self.pending.outcomes:
                self.record()
                due = max(due + self.settings.record_s, now) if now >= due else due
            self.tick_ms = (time.monotonic() - now) * 1000.0
            rest_s = WATCHED_TICK_S if self.forks.is_busy else self.settings.tick_s
            beside.rest(self, now + rest_s)

    def tick(self, wall_s: float) -> None:
        """Move simulated time on by `wall_s` times the speed, then obey the commands that came in."""
        commands_now = self.new_commands()
        if self.door is not None:
            self.refiner.look(self.live)
        with self.guard:
            if self.door is not None:
                self.look_out(self.door)
            elif not self.live.paused:
                self.advance(wall_s * self.live.speed, MOST_WORK_S)
            for command in commands_now:
                self.obey(command)
            self.tune()
            beside.judge_fork(self)
        self.write_up()
        beside.go_on(self)

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """Held while the world is moved or read."""
        return nullcontext() if self.door is None else self.door.lock

    def look_out(self, door: Door) -> None:
        """Let the world of real servers come to now, and note what the gateway has to say."""
        door.move()
        self.set_aside()
        for told in self.refiner.apply(self.live):
            self.event("refined", told)
        while door.notes:
            kind, text = door.notes.popleft()
            self.event(kind, text)

    def advance(self, seconds: float, most_work_s: float = math.inf) -> None:
        """Let `seconds` of simulated time pass bit by bit, noting what happens.

        Fewer pass where that takes more than `most_work_s` wall s: a fleet too large for its speed runs slower.
        """
        end_s, begun_s = self.live.now_s + seconds, time.monotonic()
        while self.live.now_s < end_s:
            before_s = self.live.now_s
            until_s = min(end_s, before_s + CHUNK_S, next_act_s(self.live))
            take_windows(self.live, until_s)
            while not move(self.live, until_s):
                self.note()
            self.note()
            self.play(before_s)
            if time.monotonic() - begun_s >= most_work_s:
                return

    def play(self, since_s: float) -> None:
        """Obey what the scenario does by itself and has become due after `since_s`, simulated s."""
        for act in due(self.live, since_s):
            self.event(**perform(self.live, act))
            self.note()
            self.shadows.mirror({"kind": act.kind, "payload": dict(act.payload)}, self.live.now_s)

    def note(self) -> None:
        """Take over what the world's journal holds."""
        self.set_aside()
        if self.door is None:
            self.write_up()

    def set_aside(self) -> None:
        """Copy what the world's journal tells of; a thread that serves requests does no more than that."""
        if self.door is not None:
            self.door.hear()
        self.backlog.append(take(self.live, self.receipts))

    def write_up(self, told: int | None = None) -> None:
        """Make rows of what was set aside, of the first `told` parts where that is given.

        Books, history and rolling figures are this thread's alone.
        """
        for _ in range(len(self.backlog) if told is None else told):
            most = Most() if self.door is None else most_left(self.settings.record_s, self.pending)
            decisions, workflows = rows_of(self.live, self.backlog.popleft(), self.history, most)
            self.pending.decisions += decisions
            self.pending.workflows += workflows

    def consider_tuning(self) -> None:
        """Have the next tick ask whether a tuning run is due. May be called from another thread."""
        self.may_tune = True

    def tune(self) -> None:
        """Begin a tuning run that is due, and follow up on those before."""
        if self.may_tune or self.live.tune_wanted:
            self.may_tune = False
            trigger = self.tuner.trigger(self.live, self.history)
            if trigger is not None:
                why_not = self.tuner.start(self.live, self.history, trigger)
                if why_not and trigger == "button":
                    self.event("tuning", f"tuning cannot run: {why_not}")
        try:
            self.follow_up()
        except StoreBusyError as error:
            log.warning("%s; a tuning result is not kept", error)
        except HeadwayError:
            raise
        except Exception as error:
            log.exception("a tuning run failed")
            self.event("tuning", f"tuning failed: {one_line(error)}")

    def follow_up(self) -> None:
        """Take up a tuning run that has ended; judge the last change once its window is over; replay placements."""
        self.regrets.follow(self.live, self.history, self.store)
        ended = self.tuner.poll(self.live)
        if ended is not None:
            take_up(self, ended)
        judged = self.tuner.judge(self.live, self.history)
        if judged is not None:
            settle(self, judged)

    def set_alpha(self, alpha: float, why: str) -> None:
        """Set alpha by the tuner's own hand."""
        old = self.live.alpha
        self.live.world.policy[0]["alpha"] = alpha
        self.event("alpha", f"α {old:.2f} → {alpha:.2f} ({why})", old=old, new=alpha)

    def new_commands(self) -> list[dict[str, Any]]:
        """Commands that wait, oldest first; nothing is read while the store did not change."""
        token = commands.changed(self.store)
        if token == self.seen:
            return []
        self.seen = token
        handled = {outcome["id"] for outcome in self.pending.outcomes}
        return [row for row in commands.pending(self.store) if row["id"] not in handled]

    def obey(self, command: dict[str, Any]) -> None:
        """Apply or refuse one command; its effect and its outcome are committed together."""
        outcome = beside.outcome_of(self, command)
        state = "applied" if outcome.applied else "refused"
        self.pending.outcomes.append({"id": command["id"], "state": state, "reason": outcome.reason})
        if outcome.event is not None:
            self.event(**outcome.event, command_id=command["id"])
        self.note()
        if outcome.successor is not None:
            succeed(self, outcome.successor)
        if outcome.step_s > 0.0:
            self.advance(outcome.step_s)

    def event(self, kind: str, text: str, **rest: Any) -> None:
        """Note something for the audit and the charts' marks."""
        self.pending.events.append({"kind": kind, "text": text, "sim_s": self.live.now_s, **rest})

    def record(self) -> None:
        """Commit everything since the last commit, with the state to go on from.

        Where the store is locked by another process, or its disk is full, everything waits for the next try.
        """
        try:
            self.commit()
        except StoreBusyError as error:
            log.warning("%s; the record waits", error)

    def is_due(self, waiting: Pending) -> bool:
        """Whether the state is to be stored with what waits: always, but for real servers, whose calls no state saves.

        There it is due every CHECKPOINT_EVERY records, with the outcome of a command, and at the end.
        """
        self.records += 1
        if self.door is None or waiting.outcomes or self.should_stop():
            return True
        return self.records % CHECKPOINT_EVERY == 1

    def commit(self) -> None:
        """One transaction with everything that is pending.

        Raises:
            StoreBusyError: the store is locked or its disk is full; all stays pending.
            StoreError, LeaseHeldError: the store is lost to this engine.
        """
        at = time.time()
        engine = {"pid": os.getpid(), "started_at": self.started_at, "version": self.version}
        with self.guard:
            live = self.live if self.door is None else self.door.still()
            told = len(self.backlog)
        self.write_up(told)
        waiting, self.pending = self.pending, Pending()
        payload = view.snapshot(live, at, engine, self.tick_ms) | {"shadows": self.shadows.told}
        self.history.keep_state(live)
        batch = Batch(
            at=at,
            sim_s=live.now_s,
            snapshot=payload,
            samples=view.samples(payload),
            **vars(waiting),
            checkpoint=checkpoint.save(live) if self.is_due(waiting) else None,
            detail=detail(live, self.tuner.status(live)) | {"at": at, "sim_s": live.now_s},
        )
        try:
            Journal(self.store).commit(batch)
        except StoreBusyError:
            with self.guard:
                waiting.put_before(self.pending)
                self.pending = waiting
            raise
        self.seen = None if waiting.outcomes else self.seen
