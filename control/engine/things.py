"""What commands change, thing by thing: how it was, how it was left, and the commands that go back.

A thing has a name, such as "alpha" or "cap of h100-0", and a value that is kept as JSON.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from control.engine.orders import obey
from control.engine.orders_kv import retention_of
from control.engine.orders_kv import words as retention_words
from control.engine.outcome import Outcome
from control.engine.state import Live
from control.policy.codes import INSTANCE_STATES
from control.twin.caps import caps_of

Row = dict[str, Any]
Command = tuple[str, Row]
Tell = Callable[[Outcome, Row], None]  # what came of a command, and its kind and payload
Changed = dict[str, list[Any]]  # by thing: how it was, how it was left
CAP, STATE = "cap of ", "state of "
TOLERANCE = 1e-9


def aims(kind: str, payload: Mapping[str, Any]) -> Row:
    """What a command wants to bring about, by thing; nothing for kinds that cannot be taken back."""
    if kind in ("alpha", "policy", "retention"):
        return {kind: payload[kind]}
    if kind == "power_caps":
        return {CAP + name: cap_w for name, cap_w in payload["caps"].items()}
    state = {"drain": "draining", "kill": "down"}.get(kind)
    return {} if state is None else {STATE + payload["instance"]: state}


def value_of(live: Live, thing: str) -> Any:
    """How a thing stands now; None for an instance that is not there."""
    if thing == "alpha":
        return live.alpha
    if thing == "policy":
        return live.policy
    if thing == "retention":
        return retention_of(live.world)
    names = [spec.name for spec in live.fleet.instances]
    name = thing.removeprefix(CAP).removeprefix(STATE)
    if name not in names:
        return None
    i = names.index(name)
    return caps_of(live.fleet)[i] if thing.startswith(CAP) else INSTANCE_STATES[int(live.world.instances[i]["state"])]


def same(one: Any, other: Any) -> bool:
    """Whether two values of a thing are equal."""
    if isinstance(one, int | float) and isinstance(other, int | float):
        return bool(np.isclose(one, other, rtol=0.0, atol=TOLERANCE))
    return bool(one == other)


def stands(live: Live, thing: str, value: Any) -> bool:
    """Whether a thing has that value now."""
    return same(value_of(live, thing), value)


def ways_back(standing: Changed) -> list[tuple[list[str], list[Command]]]:
    """The commands that take things from how they were left to how they were before; all caps go in one command."""
    caps = {thing: before for thing, (before, _) in standing.items() if thing.startswith(CAP)}
    rest = [(thing, pair) for thing, pair in reversed(standing.items()) if thing not in caps]
    ways = [([thing], way_back(thing, *pair)) for thing, pair in rest]
    if caps:
        ways.append((list(caps), [("power_caps", {"caps": {t.removeprefix(CAP): cap for t, cap in caps.items()}})]))
    return ways


def way_back(thing: str, before: Any, left: Any) -> list[Command]:
    """The commands for one thing that is no cap."""
    if not thing.startswith(STATE):
        return [(thing, {thing: before})]
    instance = {"instance": thing.removeprefix(STATE)}
    if left == "draining":
        return [("undrain", instance)]
    return [("revive", instance), ("drain", instance)] if before == "draining" else [("revive", instance)]


def words(thing: str, value: Any) -> str:
    """A thing's value in words."""
    if thing == "alpha":
        return f"{value:.2f}"
    if thing == "retention":
        return retention_words(value)
    if thing.startswith(CAP):
        return "no cap" if value is None else f"{value:g} W per GPU"
    return str(value)


def apply_all(live: Live, wanted: Sequence[Command], tell: Tell) -> tuple[Changed, str]:
    """Obey `wanted` in order, without what is so already; what changed, and why one was refused ("": none was).

    Where one is refused, those before it are taken back at once. `tell` is told each outcome that was applied.
    """
    changed: Changed = {}
    try:
        for kind, payload in wanted:
            why = apply_one(live, kind, payload, changed, tell)
            if why:
                take_back(live, changed, tell)
                return {}, why
    except Exception:
        take_back(live, changed, tell)
        raise
    return changed, ""


def apply_one(live: Live, kind: str, payload: Row, changed: Changed, tell: Tell) -> str:
    """Obey one command and note in `changed` what it changed; why it was refused, "" where it was not."""
    wanted = aims(kind, payload)
    if wanted and all(stands(live, thing, value) for thing, value in wanted.items()):
        return ""
    before = {thing: value_of(live, thing) for thing in wanted}
    outcome = obey(live, {"kind": kind, "payload": payload, "expected": None})
    if not outcome.applied:
        return outcome.reason
    tell(outcome, {"kind": kind, "payload": payload})
    for thing, was in before.items():
        now = value_of(live, thing)
        if not same(was, now):
            changed[thing] = [changed[thing][0] if thing in changed else was, now]
    return ""


def take_back(live: Live, changed: Changed, tell: Tell) -> tuple[list[str], dict[str, str]]:
    """Take back what still stands as it was left: those things, and those left alone with the reason.

    Whatever somebody has set anew since is left as it is.
    """
    alone = {
        thing: f"it is {words(thing, value_of(live, thing))} now, not {words(thing, left)} as it was left"
        for thing, (_, left) in changed.items()
        if not stands(live, thing, left)
    }
    taken: list[str] = []
    for things, commands in ways_back({thing: pair for thing, pair in changed.items() if thing not in alone}):
        why = obey_in_turn(live, commands, tell)
        taken += [] if why else things
        alone |= dict.fromkeys(things, why) if why else {}
    return taken, alone


def obey_in_turn(live: Live, commands: Sequence[Command], tell: Tell) -> str:
    """Obey commands until one is refused; why it was, "" where none was."""
    for kind, payload in commands:
        outcome = obey(live, {"kind": kind, "payload": payload, "expected": None})
        if not outcome.applied:
            return outcome.reason
        tell(outcome, {"kind": kind, "payload": payload})
    return ""
