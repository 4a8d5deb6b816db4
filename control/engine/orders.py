"""Commands to the live state: each is applied or refused with a reason; compare-and-set where it says so."""

from collections.abc import Callable, Mapping
from typing import Any

from control.config import LOAD_BOUNDS, SPEED_BOUNDS
from control.engine.orders_kv import cancel_workflow, set_retention
from control.engine.orders_power import set_power_cap, set_power_caps
from control.engine.orders_scenario import begin_scenario
from control.engine.orders_speed import set_slow
from control.engine.outcome import Outcome, applied, compare, instance_row, number, value
from control.engine.regret import ask_regret
from control.engine.state import Live, rescale
from control.errors import InputError, SettingError
from control.policy.codes import AMPD, DOWN, DRAINING, INSTANCE_STATES, POLICIES, UP, policy_codes
from control.tuning.decide import MODES
from control.twin.acts import change_policy, kill, revive
from control.twin.acts import drain as drain_instance

LONGEST_STEP_S = 3600.0


def obey(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Apply `command` (kind, payload, expected ...) to the live state, or refuse it with a reason."""
    order = ORDERS.get(command["kind"])
    if order is None:
        return Outcome(False, f"unknown command {command['kind']!r}: expected one of {', '.join(ORDERS)}")
    if live.source.is_gateway and command["kind"] in SIMULATED_ONLY:
        return Outcome(False, f"{command['kind']}: the fleet serves real requests; this is for simulated work only")
    try:
        return order(live, command)
    except (InputError, TypeError, ValueError) as error:
        return Outcome(False, str(error) or type(error).__name__)


def set_alpha(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Alpha of the dispatch score."""
    old = live.alpha
    compare(command, old)
    new = number(command, "alpha", 0.0, 1.0)
    live.world.policy[0]["alpha"] = new
    live.pinned = True
    return applied("alpha", f"α {old:.2f} → {new:.2f}", old, new)


def set_policy(live: Live, command: Mapping[str, Any]) -> Outcome:
    """The named policy; alpha stays."""
    old, new = live.policy, str(value(command, "policy"))
    compare(command, old)
    codes = policy_codes(new, live.source.form)
    if live.source.is_gateway and codes.dispatch == AMPD:
        raise SettingError("ampd moves KV back to the prefill tier, which real servers do not offer")
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
    if live.fleet.instances[i].url is not None:
        raise SettingError(f"{name} is a real server, which is not ended from here: drain it")
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
    return applied("release_alpha", f"α {live.alpha:.2f} released to the tuner", True, False)


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
    "power_cap": set_power_cap,
    "power_caps": set_power_caps,
    "retention": set_retention,
    "cancel": cancel_workflow,
    "slow": set_slow,
    "scenario": begin_scenario,
    "regret": ask_regret,
}
SIMULATED_ONLY = ("pause", "resume", "speed", "step", "load_scale", "scenario")
KNOWN_POLICIES = tuple(POLICIES)
