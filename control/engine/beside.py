"""What goes on beside the live fleet: forks that are run ahead, a setting under watch, shadow policies."""

import logging
import time
from typing import TYPE_CHECKING, Any

from control.engine import applied, leftover
from control.engine.lab import KINDS as FORKS
from control.engine.orders import obey
from control.engine.outcome import Outcome
from control.engine.past import past_lines
from control.engine.shadows import ended
from control.errors import HeadwayError, LeaseHeldError, StoreBusyError, one_line
from storage import commands

if TYPE_CHECKING:
    from control.engine.loop import Loop

LOOK_S = 0.02  # wall s between looks for commands
log = logging.getLogger("headway.engine")


def begin(loop: "Loop") -> None:
    """Tell as ended what an engine of before left behind."""
    try:
        leftover.end_forks(loop.store, loop.live)
        if names := leftover.shadows_before(loop.store):
            loop.event(**ended(names, "the engine began anew"))
    except StoreBusyError as error:
        log.warning("%s; what was left behind is not told as ended", error)


def outcome_of(loop: "Loop", command: dict[str, Any]) -> Outcome:
    """Apply or refuse one command. Whatever goes wrong with it is a reason to refuse it, never one to end.

    Raises:
        LeaseHeldError: another engine has taken over.
    """
    try:
        return decided(loop, command)
    except LeaseHeldError:
        raise
    except HeadwayError as error:
        return Outcome(False, str(error))
    except Exception as error:
        log.exception("command %s (%s) failed", command["id"], command["kind"])
        return Outcome(False, f"internal error: {one_line(error)}")


def decided(loop: "Loop", command: dict[str, Any]) -> Outcome:
    """Apply or refuse one command; what is done to the fleet is done to its shadows too."""

    def tell(outcome: Outcome, order: dict[str, Any]) -> None:
        note(loop, outcome, order, command["id"])

    if command["kind"] in FORKS:
        return loop.forks.obey(loop.live, loop.history, loop.store, command, tell)
    if command["kind"] == "shadows":
        return loop.shadows.obey(loop.live, command)
    outcome = obey(loop.live, command)
    if outcome.applied:
        loop.shadows.mirror(command, loop.live.now_s)
    return outcome


def note(loop: "Loop", outcome: Outcome, order: dict[str, Any], command_id: int | None = None) -> None:
    """Note what was applied as a part of something larger."""
    if outcome.event is not None:
        loop.event(**outcome.event, command_id=command_id)
    loop.note()
    loop.shadows.mirror(order, loop.live.now_s)


def rest(loop: "Loop", until_s: float) -> None:
    """Wait until that moment (monotonic s), or until a command may have come."""
    is_cheap = loop.store.is_sqlite  # a look takes 10 us there, a question over the network elsewhere
    while (left_s := until_s - time.monotonic()) > 0.0:
        time.sleep(min(left_s, LOOK_S) if is_cheap else left_s)
        if is_cheap and commands.changed(loop.store) != loop.seen:
            return


def judge_fork(loop: "Loop") -> None:
    """Judge the setting that is under watch; the world must stand still."""
    news = applied.watch(loop.live, loop.store, lambda outcome, order: note(loop, outcome, order))
    if news is not None:
        loop.event(*news)


def go_on(loop: "Loop") -> None:
    """Store what is new of the forks, and have the shadows come along."""
    loop.forks.record(loop.store, time.time(), lambda at_s: past_lines(loop.store, loop.live, at_s))
    why = loop.shadows.follow(loop.live.now_s)
    if why:
        loop.event(**ended(loop.shadows.names, why))
        loop.shadows.end()


def end(loop: "Loop") -> None:
    """End what is under way."""
    loop.forks.close(loop.store)
    loop.shadows.close()
    loop.regrets.close()
