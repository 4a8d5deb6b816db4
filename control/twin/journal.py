"""What happened, in order, for whoever drives the world to read and drain."""

from control.jit import compiled
from control.policy.codes import PLACED
from control.twin.world import World


@compiled
def note(world: World, kind: int, row: int, instance: int) -> None:
    """Write one entry at the present time; a world with an empty journal keeps none."""
    if len(world.journal) == 0:
        return
    entry = world.journal[world.clock[0]["n_journal"]]
    entry["at_s"] = world.clock[0]["now_s"]
    entry["kind"] = kind
    entry["row"] = row
    entry["instance"] = instance
    entry["receipt"] = world.calls[row]["receipt"] if kind == PLACED else -1
    world.clock[0]["n_journal"] += 1


@compiled
def is_journal_half_full(world: World) -> bool:
    """Whether the journal must be drained; the other half holds whatever one event can write."""
    return len(world.journal) > 0 and 2 * world.clock[0]["n_journal"] >= len(world.journal)
