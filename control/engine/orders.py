"""Commands to the live state: each is applied or refused with a reason; compare-and-set where it says so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from control.config import LOAD_BOUNDS, SPEED_BOUNDS
from control.engine.state import Live, rescale
from control.errors import InputError, SettingError
from control.policy.codes import DOWN, DRAINING, INSTANCE_STATES, POLICIES, UP, policy_codes
from control.tuning.decide import MODES
from control.twin.failures import change_policy, kill, revive
from control.twin.failures import drain as drain_instance

LONGEST_STEP_S = 3600.0


@dataclass(frozen=True)
class Outcome:
    """What became of a command, and the event to record for it."""

    applied: bool
    reason: str  # why it was refused; "" when applied
    event: dict[str, Any] | None = None
    step_s: float = 0.0  # simulated s the engine is asked to move while paused


def obey(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Apply `command` (kind, payload, expected ...) to the live state, or refuse it with a reason."""
    order = ORDERS.get(command["kind"])
    if order is None:
        return Outcome(False, f"unknown command {command['kind']!r}: expected one of {', '.join(ORDERS)}")
    try:
        return order(live, command)
    except (InputError, TypeError, ValueError) as error:
        return Outcome(False, str(error) or type(error).__name__)


def value(command: Mapping[str, Any], key: str) -> Any:
    """What the payload of a command holds under `key`.

    Raises:
        SettingError: the payload is none, or lacks it.
    """
    payload = command["payload"]
    if not isinstance(payload, Mapping) or key not in payload:
        raise SettingError(f"payload = {payload!r:.80}: expected {{{key!r}: ...}}")
    return payload[key]


def number(command: Mapping[str, Any], key: str, low: float, high: float) -> float:
    """The number under `key` of a command's payload.

    Raises:
        SettingError: it is no number from `low` to `high`.
    """
    given = value(command, key)
    fits = isinstance(given, int | float) and not isinstance(given, bool) and low <= given <= high
    if not fits:
        raise SettingError(f"{key} = {given!r:.80}: expected a number from {low:g} to {high:g}")
    return float(given)


def compare(command: Mapping[str, Any], current: Any) -> None:
    """Refuse a command that was made looking at another value than the one in force.

    Raises:
        SettingError: someone changed it meanwhile.
    """
    expected = command.get("expected")
    if isinstance(expected, Mapping):
        expected = next(iter(expected.values()), None)
    same = expected is None or expected == current
    if not same and isinstance(expected, (int, float)) and isinstance(current, (int, float)):
        same = bool(np.isclose(expected, current, rtol=0.0, atol=1e-9))
    if not same:
        raise SettingError(f"it is {current} now, not {expected} as when the command was made")


def applied(kind: str, text: str, old: Any, new: Any, target: str | None = None) -> Outcome:
    """An applied command with its event."""
    return Outcome(True, "", {"kind": kind, "target": target, "text": text, "old": old, "new": new})


def set_alpha(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Alpha of the dispatch score."""
    old = live.alpha
    compare(command, old)
    new = number(command, "alpha", 0.0, 1.0)
    live.world.policy[0]["alpha"] = new
    live.pinned = True
    return applied("alpha", f"alpha {old:.2f} → {new:.2f}", old, new)


def set_policy(live: Live, command: Mapping[str, Any]) -> Outcome:
    """The named policy; alpha stays."""
    old, new = live.policy, str(value(command, "policy"))
    compare(command, old)
    codes = policy_codes(new, live.source.form)
    change_policy(live.world, codes.dispatch, codes.queue)
    live.policy = new
    return applied("policy", f"policy {old} → {new}", old, new)


def pause(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Stop simulated time."""
    if live.paused:
        raise SettingError("the engine is paused already")
    live.paused = True
    return applied("pause", "paused", False, True)


def resume(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Let simulated time go on."""
    if not live.paused:
        raise SettingError("the engine is running already")
    live.paused = False
    return applied("resume", "resumed", True, False)


def set_speed(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Simulated seconds per wall second."""
    old = live.speed
    compare(command, old)
    live.speed = number(command, "speed", *SPEED_BOUNDS)
    return applied("speed", f"speed ×{old:g} → ×{live.speed:g}", old, live.speed)


def step(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Move a paused engine on by some simulated seconds."""
    step_s = number(command, "step_s", 0.001, LONGEST_STEP_S)
    if not live.paused:
        raise SettingError("only a paused engine steps")
    event = {"kind": "step", "target": None, "text": f"stepped {step_s:g} s", "old": None, "new": step_s}
    return Outcome(True, "", event, step_s)


def set_load(live: Live, command: Mapping[str, Any]) -> Outcome:
    """How thick arrivals come, as a factor on the scenario's rate."""
    old = live.load_scale
    compare(command, old)
    if live.source.scenario is None:
        raise SettingError("a replayed trace has its own arrivals; load scales with scenarios only")
    new = number(command, "load_scale", *LOAD_BOUNDS)
    rescale(live, new)
    return applied("load_scale", f"load ×{old:g} → ×{new:g}", old, new)


def instance_row(live: Live, command: Mapping[str, Any]) -> tuple[int, str]:
    """Row and name of the instance a command names.

    Raises:
        SettingError: there is none of that name.
    """
    name = value(command, "instance")
    names = [spec.name for spec in live.fleet.instances]
    if name not in names:
        raise SettingError(f"instance = {name!r}: expected one of {', '.join(names)}")
    return names.index(name), name


def change_state(live: Live, command: Mapping[str, Any], allowed: tuple[int, ...], verb: str) -> tuple[int, str, str]:
    """Row, name and old state of the instance, which must be in one of the `allowed` states.

    Raises:
        SettingError: it is in another state.
    """
    i, name = instance_row(live, command)
    old = INSTANCE_STATES[int(live.world.instances[i]["state"])]
    compare(command, old)
    if live.world.instances[i]["state"] not in allowed:
        raise SettingError(f"{name} is {old}: cannot {verb} it")
    return i, name, old


def drain(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Give an instance no new calls; what it has it finishes."""
    i, name, old = change_state(live, command, (UP,), "drain")
    drain_instance(live.world, i)
    return applied("drain", f"drain {name}", old, "draining", name)


def undrain(live: Live, command: Mapping[str, Any]) -> Outcome:
    """End a drain."""
    i, name, old = change_state(live, command, (DRAINING,), "undrain")
    revive(live.world, i)
    return applied("undrain", f"undrain {name}", old, "up", name)


def kill_instance(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Fail an instance: its calls are placed anew from their beginning."""
    i, name, old = change_state(live, command, (UP, DRAINING), "kill")
    moved = int(live.world.instances[i]["n_running"] + live.world.instances[i]["n_waiting"])
    kill(live.world, i)
    return applied("kill", f"{name} lost, {moved} calls placed anew", old, "down", name)


def revive_instance(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Bring a failed instance back, empty."""
    i, name, old = change_state(live, command, (DOWN,), "revive")
    revive(live.world, i)
    return applied("revive", f"{name} is back", old, "up", name)


def tune(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Run the tuner now."""
    if live.tune_wanted:
        raise SettingError("a run is asked for already")
    live.tune_wanted = True
    return applied("tune", "tuning asked for", None, None)


def set_tuning_mode(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Whether the tuner rests, suggests or acts by itself."""
    old, new = live.tuning_mode, command["payload"]["mode"]
    compare(command, old)
    if new not in MODES:
        raise SettingError(f"mode = {new!r}: expected one of {', '.join(MODES)}")
    live.tuning_mode = new
    return applied("tuning_mode", f"tuning {old} → {new}", old, new)


def release_alpha(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Let the tuner move alpha again."""
    if not live.pinned:
        raise SettingError("alpha is not pinned")
    live.pinned = False
    return applied("release_alpha", f"alpha {live.alpha:.2f} released to the tuner", True, False)


ORDERS: dict[str, Callable[[Live, Mapping[str, Any]], Outcome]] = {
    "alpha": set_alpha,
    "policy": set_policy,
    "pause": pause,
    "resume": resume,
    "speed": set_speed,
    "step": step,
    "load_scale": set_load,
    "tune": tune,
    "tuning_mode": set_tuning_mode,
    "release_alpha": release_alpha,
    "drain": drain,
    "undrain": undrain,
    "kill": kill_instance,
    "revive": revive_instance,
}
KNOWN_POLICIES = tuple(POLICIES)
