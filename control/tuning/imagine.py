"""Real servers replaced by the twin's: what forks, replays and simulations of a real fleet run on."""

from dataclasses import replace

import numpy as np

from control.metrics.stages import UNDER_WAY
from control.model.fleet import Fleet, InstanceSpec
from control.policy.codes import IDLE
from control.twin.world import World


def unplugged(fleet: Fleet) -> Fleet:
    """`fleet` with its real servers simulated, each with no more seats than calls are sent there at once."""
    return replace(fleet, instances=tuple(_unplugged(spec) for spec in fleet.instances))


def _unplugged(spec: InstanceSpec) -> InstanceSpec:
    if spec.url is None:
        return spec
    return replace(spec, url=None, max_num_seqs=min(spec.max_num_seqs, spec.window or spec.max_num_seqs))


def imagined(world: World) -> World:
    """`world`, itself changed, with its real servers simulated from here on.

    How much an open call will still generate nobody knows: its step's mean, or one token more than it has. A workflow
    that may go on ends with the calls that it has open.
    """
    remote = world.instances["remote"] == 1
    if not remote.any():
        return world
    is_open = np.isin(world.calls["state"], UNDER_WAY)
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
