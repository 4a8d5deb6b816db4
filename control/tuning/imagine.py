"""A live world whose real servers are replaced by the twin's: what forks and replays run on."""

import numpy as np

from control.policy.codes import DECODE, HELD, IDLE, PREFILL, TRANSFER, WAITING
from control.twin.world import World

OPEN = (WAITING, PREFILL, DECODE, TRANSFER, HELD)


def imagined(world: World) -> World:
    """`world`, itself changed, with its real servers simulated from here on.

    How much an open call will still generate nobody knows: its step's mean, or one token more than it has. A workflow
    that may go on ends with the calls that it has open.
    """
    remote = world.instances["remote"] == 1
    if not remote.any():
        return world
    is_open = np.isin(world.calls["state"], OPEN)
    mean = np.rint(world.steps["mean_output"][world.calls["step"][is_open]]).astype(np.int64)
    lengths = np.maximum(mean, world.calls["emitted"][is_open] + 1)
    world.calls["output_tokens"][is_open] = lengths
    room = int(world.instances["max_model_len"].max()) - world.calls["input_tokens"][is_open]
    world.calls["limit"][is_open] = np.minimum(lengths, np.maximum(room, world.calls["emitted"][is_open] + 1))
    world.calls["chunk"][is_open] = 0
    world.workflows["open_end"] = 0
    world.instances["remote"][remote] = 0
    world.instances["run"][remote] = IDLE
    for i in np.flatnonzero(remote):
        if world.instances[i]["dirty"] == 0:
            world.instances[i]["dirty"] = 1
            world.dirty[world.clock[0]["n_dirty"]] = i
            world.clock[0]["n_dirty"] += 1
    return world
