"""What a scenario does by itself: each act is obeyed like a command, at its simulated time and never twice.

Nothing has to be remembered of it: what lies before the simulated time of a checkpoint has been done.
"""

import math
from typing import Any

from control.engine.orders import obey
from control.engine.state import Live
from control.present.marks import SCRIPTED
from control.workload.scenario import Act


def next_act_s(live: Live) -> float:
    """When the next act is due, simulated s; inf: none is to come."""
    return next((act.at_s for act in live.source.script if act.at_s > live.now_s), math.inf)


def due(live: Live, since_s: float) -> list[Act]:
    """The acts that became due after `since_s`, simulated s."""
    return [act for act in live.source.script if since_s < act.at_s <= live.now_s]


def perform(live: Live, act: Act) -> dict[str, Any]:
    """Obey an act; its event, also where the fleet as it is now does not allow it."""
    outcome = obey(live, {"kind": act.kind, "payload": dict(act.payload)})
    if outcome.event is None:
        text = f"{SCRIPTED}{act.words}: not done, {outcome.reason}"
        return {"kind": "act_refused", "target": None, "text": text, "old": None, "new": None}
    return outcome.event | {"text": f"{SCRIPTED}{act.words} ({outcome.event['text']})"}
