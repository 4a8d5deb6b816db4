"""What fills the KV caches: running calls, idle conversations, other cached prefixes; and who holds most."""

from typing import Any

import numpy as np

from control.engine.conversations import Talks
from control.engine.state import Live
from control.policy.codes import CALL_STATES, COLLOCATED, INSTANCE_STATES, PREFILL_ROLE, ROLES, UP
from control.policy.tables import Ints, Table
from control.twin.world import World

Row = dict[str, Any]
MOST_HOLDERS = 10


def pinned_blocks(world: World, views: Table) -> Ints:
    """KV blocks of cached contexts of pinned conversations that no call uses, by instance [n]."""
    pinned = np.flatnonzero(world.pins["instance"] >= 0)
    places = world.pins["instance"][pinned]
    slots = world.slots[places, pinned + int(world.clock[0]["n_shared"])]
    entries = world.prefixes[slots]
    blocks = np.where((slots >= 0) & (entries["refs"] == 0), entries["blocks"], 0)
    sums = np.zeros(len(world.instances), np.int64)
    np.add.at(sums, places, blocks)
    return np.asarray(np.minimum(sums, views["cached_blocks"]))


def occupancy(live: Live, talks: Talks, views: Table, pinned: Ints) -> Row:
    """The KV caches by instance, tokens; `pinned` as `pinned_blocks` gives it."""
    holding = talks.kv_tokens[talks.kv_tokens > 0]
    mean_tokens = float(holding.mean()) if len(holding) else None
    rows = [cache(live, i, views[i], int(pinned[i]), mean_tokens) for i in range(len(views))]
    order = np.argsort(-talks.kv_tokens, kind="stable")[:MOST_HOLDERS]
    return {
        "rows": rows,
        "mean_context_tokens": mean_tokens,
        "holders": [holder(live, talks, int(k)) for k in order if talks.kv_tokens[k] > 0],
    }


def cache(live: Live, i: int, view: Any, pinned: int, mean_tokens: float | None) -> Row:
    """One instance's KV cache, tokens, and how many more conversations of mean size it has room for.

    Room is what is not set aside under policies that set KV aside for conversations, else what no running call uses;
    the prefill tier keeps none, nor does an instance that is down or drains.
    """
    row, spec = live.world.instances[i], live.fleet.instances[i]
    size, places = int(row["block_size"]), int(live.world.policy[0]["dispatch"]) >= COLLOCATED
    room = int(row["blocks"]) - (int(row["reserved"]) if places else int(view["used_blocks"]))
    keeps = int(row["state"]) == UP and (places is False or int(row["role"]) != PREFILL_ROLE)
    return {
        "instance": spec.name,
        "role": ROLES[int(row["role"])],
        "state": INSTANCE_STATES[int(row["state"])],
        "capacity_tokens": int(row["blocks"]) * size,
        "running_tokens": int(view["used_blocks"]) * size,
        "pinned_tokens": pinned * size,
        "cached_tokens": (int(view["cached_blocks"]) - pinned) * size,
        "free_tokens": (int(row["blocks"]) - int(view["used_blocks"]) - int(view["cached_blocks"])) * size,
        "reserved_tokens": int(row["reserved"]) * size,
        "conversations": int(row["pinned"]),
        "headroom": max(0, room) * size / mean_tokens if keeps and mean_tokens else None,
        "preemptions": int(row["preemptions"]),
        "evicted_tokens": int(row["evicted_blocks"]) * size,
        "sent": int(row["sent"]),
        "sent_tokens": int(row["sent_tokens"]),
    }


def holder(live: Live, talks: Talks, k: int) -> Row:
    """A conversation that holds much KV."""
    latest = live.world.calls[talks.latest[k]]
    workflow = live.world.workflows[latest["workflow"]]
    home = int(talks.homes[k])
    return {
        "workflow": int(workflow["id"]),
        "tenant": live.names[1][int(workflow["tenant"])],
        "instance": live.fleet.instances[home].name if home >= 0 else None,
        "kv_tokens": int(talks.kv_tokens[k]),
        "state": CALL_STATES[int(latest["state"])] if talks.is_turn[k] else "idle",
    }
