"""The engine goes on with another live state: what was under way ends, history and tuner begin anew."""

from typing import TYPE_CHECKING, Any

from control.engine.applied import let_go
from control.engine.checkpoint import lost_rows
from control.engine.history import History
from control.engine.refine import Refiner
from control.engine.shadows import ended
from control.engine.state import Live
from control.engine.tuner import Tuner

if TYPE_CHECKING:
    from control.engine.loop import Loop

CAUSE, WHY = "scenario_replaced", "another scenario began"


def succeed(loop: "Loop", successor: Live) -> None:
    """Have `loop` go on with `successor`; its journal has been taken over and its workflows are told as ended.

    One commit holds the end of the old state and the begin of the new one, so a kill leaves either, never half of both.
    """
    loop.write_up()
    loop.pending.workflows += ended_rows(loop.live)
    loop.tuner.close()
    loop.forks.stop(f"stopped: {WHY}")
    let_go(loop.live, loop.store, WHY)
    if loop.shadows.lives:
        loop.event(**ended(loop.shadows.names, WHY))
        loop.shadows.end()
    loop.live, loop.history, loop.tuner = successor, History(), Tuner(loop.tuner.settings)
    loop.refiner = Refiner()
    loop.cover_window()


def ended_rows(live: Live) -> list[dict[str, Any]]:
    """The workflows under way as rows that tell of their end."""
    rows = lost_rows(live.world.workflows, live.names, live.now_s)
    return [row | {"state": "failed", "cause": CAUSE} for row in rows]
