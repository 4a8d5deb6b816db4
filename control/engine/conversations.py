"""The open conversations as they are shown: where each is kept, what it holds, how its turns went."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from control.engine.state import Live
from control.metrics.stages import UNDER_WAY
from control.policy.codes import ACTIVE, BREAKS, CALL_STATES, COMPLETED, DECODE, DECODING, HELD, PREFILL, TRANSFER
from control.policy.tables import Ints, Table
from control.present.gantt import TURN

Row = dict[str, Any]
MOST_ROWS = 120  # conversations listed
MOST_TURNS = 8  # newest turns listed of each


class Talks(NamedTuple):
    """Open conversations, m of them, by stream key."""

    keys: Ints  # [m] stream key
    pins: Table  # [m] their PIN rows
    latest: Ints  # [m] row of their newest call
    is_turn: npt.NDArray[np.bool_]  # [m] whether a turn is under way
    homes: Ints  # [m] where the context is kept, or the turn runs; -1: nowhere
    kv_tokens: Ints  # [m]


def talks_of(live: Live, views: Table) -> Talks:
    """The streams of active workflows that have begun; `views` are of now."""
    world = live.world
    begun = (world.calls["stream_key"] >= 0) & (world.calls["ready_s"] >= 0.0)
    rows = np.flatnonzero(begun & (world.workflows["state"][world.calls["workflow"]] == ACTIVE))
    keys, back = np.unique(world.calls["stream_key"][rows][::-1], return_index=True)
    latest = rows[::-1][back]
    pins = world.pins[keys - int(world.clock[0]["n_shared"])]
    state = world.calls["state"][latest]
    is_turn = np.isin(state, UNDER_WAY)
    cached, where = cached_tokens(live, keys, pins)
    homes = np.where(pins["instance"] >= 0, pins["instance"], where)
    running = np.isin(state, (PREFILL, DECODE))
    homes = np.where(running & (pins["instance"] < 0), world.calls["instance"][latest], homes)
    kv = np.where(running | (state == HELD), world.calls["kv"][latest], cached)
    kv = np.where(state == TRANSFER, world.calls["moving"][latest], kv)
    kv = kv + np.where(state == DECODE, grown(live, views)[world.calls["instance"][latest]], 0)
    return Talks(keys, pins, latest, is_turn, homes, kv)


def cached_tokens(live: Live, keys: Ints, pins: Table) -> tuple[Ints, Ints]:
    """Tokens of each stream's context in a cache, where most of it is, or where it is pinned; and where (-1: nowhere).

    [m] each.
    """
    world = live.world
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    slots = world.slots[:, keys]
    entries = world.prefixes[slots]
    tokens = np.where(slots >= 0, entries["base"] + entries["blocks"], 0) * world.instances["block_size"][:, None]
    where = np.where(pins["instance"] >= 0, pins["instance"], tokens.argmax(axis=0))
    found = tokens[where, np.arange(len(keys))]
    held = np.minimum(found, np.where(pins["tokens"] > 0, pins["tokens"], found))
    return held, np.where(found > 0, where, -1)


def grown(live: Live, views: Table) -> Ints:
    """Tokens that each sequence of an instance has gained in the run under way [n]."""
    rows = live.world.instances
    one = (views["generated"] - rows["decode_tokens"]) // np.maximum(rows["run_b"], 1)
    return np.where(rows["run"] == DECODING, one, 0)


def conversations(live: Live, talks: Talks) -> Row:
    """The conversations, those held first, then those that lost their KV, then by the KV they hold; and totals."""
    world = live.world
    held = world.calls["state"][talks.latest] == HELD
    lost = talks.pins["breaks"] + (talks.pins["lost_cause"] >= 0)
    order = np.lexsort((-talks.kv_tokens, -lost, ~held))[:MOST_ROWS]
    return {
        "rows": [conversation(live, talks, int(k)) for k in order],
        "open": len(talks.keys),
        "pinned": int(world.instances["pinned"].sum()),
        "held": int(world.clock[0]["n_held"]),
        "moving": int((world.calls["state"] == TRANSFER).sum()),
        "breaks": int(world.clock[0]["breaks"]),
        "transfers": int(world.instances["sent"].sum()),
        "transferred_tokens": int(world.instances["sent_tokens"].sum()),
    }


def conversation(live: Live, talks: Talks, k: int) -> Row:
    """One open conversation."""
    world, pin = live.world, talks.pins[k]
    latest = world.calls[talks.latest[k]]
    workflow = world.workflows[latest["workflow"]]
    home, pinned_to = int(talks.homes[k]), int(pin["instance"])
    size = int(world.instances[pinned_to]["block_size"]) if pinned_to >= 0 else 0
    first_s = max(float(pin["first_token_s"]), float(latest["first_token_s"]))
    idle = not talks.is_turn[k] and pin["last_s"] >= 0.0
    lost = int(pin["lost_cause"])  # its next turn will count it
    cause = lost if lost >= 0 else int(pin["break_cause"])
    return {
        "workflow": int(workflow["id"]),
        "tenant": live.names[1][int(workflow["tenant"])],
        "decoder": live.fleet.instances[home].name if home >= 0 else None,
        "pinned": pinned_to >= 0,
        "state": CALL_STATES[int(latest["state"])] if talks.is_turn[k] else "idle",
        "kv_tokens": int(talks.kv_tokens[k]),
        "reserved_tokens": int(pin["reserved"]) * size,
        "idle_s": round(live.now_s - float(pin["last_s"]), 3) if idle else None,
        "turns": int(pin["turns"]),
        "of_turns": int(workflow["n_calls"]),
        "cached_share": float(pin["cached_tokens"] / pin["input_tokens"]) if pin["input_tokens"] > 0 else None,
        "ttfet_s": round(first_s - float(workflow["arrival_s"]), 3) if first_s >= 0.0 else None,
        "breaks": int(pin["breaks"]) + (lost >= 0),
        "break_cause": BREAKS[cause] if cause >= 0 else None,
        "recomputed_tokens": int(pin["recomputed"]),
        "moved": int(pin["sent"]),
        "elapsed_s": round(live.now_s - float(workflow["arrival_s"]), 3),
        "turn_rows": turns(live, int(talks.keys[k]), workflow),
    }


def turns(live: Live, key: int, workflow: Any) -> list[list[Any]]:
    """The newest turns of a stream that have begun, oldest first, as TURN columns."""
    first, n = int(workflow["first_call"]), int(workflow["n_calls"])
    calls = live.world.calls[first : first + n]
    mine = calls[(calls["stream_key"] == key) & (calls["ready_s"] >= 0.0)][-MOST_TURNS:]
    arrival_s = float(workflow["arrival_s"])
    names = mine.dtype.names or ()
    return [turn(live, dict(zip(names, row, strict=True)), arrival_s) for row in mine.tolist()]


def turn(live: Live, call: Row, arrival_s: float) -> list[Any]:
    """One turn; a phase or a tool under way is counted up to now: what is still to come is nobody's to know."""
    where, cause = call["instance"], live.broken.get(call["uid"])
    call["queue_s"] = call["queue_own_s"] + call["queue_other_s"] - call["hold_s"]
    if call["state"] in UNDER_WAY:
        call[PHASES[call["phase"]]] += max(0.0, live.now_s - call["phase_s"])
    moments = [round(call[name] - arrival_s, 2) if call[name] >= 0.0 else None for name in TURN[2:5]]
    tool_s = min(call["tool_s"], live.now_s - call["finished_s"]) if call["state"] == COMPLETED else 0.0
    return [
        call["uid"],
        live.fleet.instances[where].name if where >= 0 else None,
        *moments,
        *(round(call[name], 2) for name in TURN[5:12]),
        round(tool_s, 2),
        CALL_STATES[call["state"]],
        None if cause is None else BREAKS[cause],
    ]


#: The timer that each phase of a call counts on, in order of its number.
PHASES = ("queue_s", "prefill_s", "decode_s", "preempted_s", "transfer_s", "hold_s")
