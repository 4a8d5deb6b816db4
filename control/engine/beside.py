"""What goes on beside the live fleet: forks that are run ahead, a setting under watch, shadow policies."""

import time
from typing import TYPE_CHECKING, Any

from control.engine.lab import KINDS as FORKS
from control.engine.orders import obey
from control.engine.outcome import Outcome
from control.engine.past import past_lines

if TYPE_CHECKING:
    from control.engine.loop import Loop


def outcome_of(loop: "Loop", command: dict[str, Any]) -> Outcome:
    """Apply or refuse one command; what is done to the fleet is done to its shadows too."""

    def tell(outcome: Outcome) -> None:
        note(loop, outcome, command["id"])

    if command["kind"] in FORKS:
        return loop.forks.obey(loop.live, loop.history, loop.store, command, tell)
    if command["kind"] == "shadows":
        return loop.shadows.obey(loop.live, command)
    outcome = obey(loop.live, command)
    if outcome.applied:
        loop.shadows.mirror(command, loop.live.now_s)
    return outcome


def note(loop: "Loop", outcome: Outcome, command_id: int | None = None) -> None:
    """Note what was applied as a part of something larger."""
    if outcome.event is not None:
        loop.event(**outcome.event, command_id=command_id)
    loop.note()


def judge_fork(loop: "Loop") -> None:
    """Judge the setting that is under watch; the world must stand still."""
    ended = loop.forks.watch(loop.live, loop.store, lambda outcome: note(loop, outcome))
    if ended is not None:
        loop.event(*ended)


def go_on(loop: "Loop") -> None:
    """Store what is new of the forks, and have the shadows come along."""
    loop.forks.record(loop.store, time.time(), lambda at_s: past_lines(loop.store, loop.live, at_s))
    loop.shadows.follow(loop.live.now_s)


def end(loop: "Loop") -> None:
    """End what is under way."""
    loop.forks.close()
    loop.shadows.close()
    loop.regrets.close()
