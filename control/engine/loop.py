"""The engine's loop: observe, decide, act, record.

Decisions fall inside `advance`, on events, at once; the tick moves simulated time to the wall clock times the
speed, takes commands, and records. Everything a second brought (snapshot, samples, decisions, ended workflows,
commands' outcomes, checkpoint) is committed in one transaction, so a killed engine goes on from a whole second, and
a command acts exactly once: either its outcome and its effect are both in the store, or neither is.
"""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from control.config import EngineSettings
from control.engine import checkpoint, view
from control.engine.orders import Outcome, obey
from control.engine.state import Live, move, take_windows
from control.errors import StoreBusyError
from storage import commands
from storage.journal import Batch, Journal
from storage.open import Store

log = logging.getLogger("headway.engine")

LONGEST_TICK_S = 2.0  # wall s that one tick makes up at most: a machine that slept does not race


@dataclass
class Pending:
    """What waits for the next commit."""

    decisions: list[dict[str, Any]] = field(default_factory=list)
    workflows: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    outcomes: list[dict[str, Any]] = field(default_factory=list)


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
    seen: int | None = None  # change token of the command table
    tick_ms: float = 0.0

    def run(self) -> None:
        """Tick until told to stop, then record the last state.

        Raises:
            LeaseHeldError: another engine has taken over; nothing more was written.
        """
        last = time.monotonic()
        due = last
        while not self.should_stop():
            now = time.monotonic()
            self.tick(min(now - last, LONGEST_TICK_S))
            last = now
            if now >= due or self.pending.outcomes:
                self.record()
                due = max(due + self.settings.record_s, now) if now >= due else due
            self.tick_ms = (time.monotonic() - now) * 1000.0
            time.sleep(max(0.0, self.settings.tick_s - (time.monotonic() - now)))

    def tick(self, wall_s: float) -> None:
        """Move simulated time on by `wall_s` times the speed, then obey the commands that came in."""
        if not self.live.paused:
            self.advance(wall_s * self.live.speed)
        for command in self.new_commands():
            self.obey(command)

    def advance(self, seconds: float) -> None:
        """Let `seconds` of simulated time pass, minute by minute, noting what happens."""
        end_s = self.live.now_s + seconds
        while self.live.now_s < end_s:
            until_s = min(end_s, self.live.now_s + 60.0)
            take_windows(self.live, until_s)
            while not move(self.live, until_s):
                self.note()
            self.note()

    def note(self) -> None:
        """Take over what the world's journal holds."""
        decisions, workflows = view.drain_journal(self.live)
        self.pending.decisions += decisions
        self.pending.workflows += workflows

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
        outcome: Outcome = obey(self.live, command)
        state = "applied" if outcome.applied else "refused"
        self.pending.outcomes.append({"id": command["id"], "state": state, "reason": outcome.reason})
        if outcome.event is not None:
            self.event(**outcome.event, command_id=command["id"])
        self.note()
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

    def commit(self) -> None:
        """One transaction with everything that is pending.

        Raises:
            StoreBusyError: the store is locked or its disk is full; all stays pending.
            StoreError, LeaseHeldError: the store is lost to this engine.
        """
        at = time.time()
        engine = {"pid": os.getpid(), "started_at": self.started_at, "version": self.version}
        payload = view.snapshot(self.live, at, engine, self.tick_ms)
        waiting = self.pending
        Journal(self.store).commit(
            Batch(
                at=at,
                sim_s=self.live.now_s,
                snapshot=payload,
                samples=view.samples(payload),
                decisions=waiting.decisions,
                workflows=waiting.workflows,
                events=waiting.events,
                outcomes=waiting.outcomes,
                checkpoint=checkpoint.save(self.live),
            )
        )
        self.pending = Pending()
        self.seen = None if waiting.outcomes else self.seen
