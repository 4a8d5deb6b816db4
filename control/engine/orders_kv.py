"""Orders about conversations: how long an idle context is kept, what a decoder must have free, giving a workflow up."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from control.engine.outcome import Outcome, applied, compare, value
from control.engine.state import Live
from control.errors import SettingError
from control.policy.codes import ACTIVE, NEEDS
from control.policy.rules import Conversations, check_conversations
from control.twin.acts import cancel
from control.twin.idle import retain
from control.twin.world import World


def retention_of(world: World) -> dict[str, Any]:
    """The settings in force; idle_ttl_s is None where an idle context is kept for good."""
    row = world.policy[0]
    idle_ttl_s = float(row["idle_ttl_s"])
    return {"need": NEEDS[int(row["need"])], "idle_ttl_s": idle_ttl_s if math.isfinite(idle_ttl_s) else None}


def set_retention(live: Live, command: Mapping[str, Any]) -> Outcome:
    """How long an idle context is kept (s; null: for good), and the KV a decoder must have free for a conversation."""
    old, given = retention_of(live.world), value(command, "retention")
    compare(command, old)
    if not isinstance(given, Mapping):
        raise SettingError(f"retention = {given!r:.80}: expected {{'need': ..., 'idle_ttl_s': ...}}")
    new = old | dict(given)
    if unknown := new.keys() - old.keys():
        raise SettingError(f"retention: {sorted(unknown)[0]!r} is not known: expected need, idle_ttl_s")
    ttl_s = math.inf if new["idle_ttl_s"] is None else new["idle_ttl_s"]
    if not isinstance(ttl_s, int | float) or isinstance(ttl_s, bool):
        raise SettingError(f"idle_ttl_s = {ttl_s!r:.80}: expected a number of seconds > 0, or null for no limit")
    check_conversations(Conversations(need=new["need"], idle_ttl_s=ttl_s))
    retain(live.world, new)
    text = f"retention {words(old)} → {words(new)}"
    return applied("kv_retention", text, {"retention": old}, {"retention": new})


def words(settings: Mapping[str, Any]) -> str:
    """The settings for the audit."""
    ttl_s = settings["idle_ttl_s"]
    return f"{settings['need']} need, {'no idle limit' if ttl_s is None else f'idle up to {ttl_s:g} s'}"


def cancel_workflow(live: Live, command: Mapping[str, Any]) -> Outcome:
    """The client gives up a workflow: its calls end at once, or at the next boundary of their batch."""
    number = value(command, "workflow")
    workflows = live.world.workflows
    rows = np.flatnonzero((workflows["id"] == number) & (workflows["state"] == ACTIVE))
    if isinstance(number, bool) or not isinstance(number, int) or not len(rows):
        raise SettingError(f"workflow = {number!r:.80}: no workflow of that number is under way")
    if not cancel(live.world, int(rows[0])):
        raise SettingError(f"workflow {number} has been given up already")
    return applied("cancel", f"workflow {number} given up", None, None, str(number))
