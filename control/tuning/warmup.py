"""Have every kernel compiled and loaded by running a tiny world through each."""

import numpy as np

from control.jit import is_warm
from control.model.fleet import load_fleet
from control.model.hexgen_profile import linear_fits
from control.policy.cost import chunk_area, decode_run_ms, mixed_ms
from control.policy.urgency import urgency_s
from control.twin.acts import kill, revive
from control.twin.artifact import replay
from control.twin.artifact_build import build_artifact
from control.twin.batching import cut_run
from control.twin.conversations import retry_held
from control.twin.heap import schedule, unschedule
from control.twin.kernel import advance, settle_energy
from control.twin.kv import install_kv
from control.twin.observe import VIEW, emitted_by, view_all
from control.twin.pack import build_world
from control.workload.generate import generate


def warm_up() -> None:
    """Compile (first time) or load every kernel that the live engine and runs of the twin call, the small ones too."""
    world = build_world(generate("text2sql", 2, 0), load_fleet("demo-mixed"), "hexgen", journal=True)
    advance(world, 1.0)
    kill(world, 0)
    revive(world, 0)
    settle_energy(world)
    retry_held(world)
    cut_run(world, 0, 1.0)
    view_all(world, 1.0, np.zeros(len(world.instances), VIEW))
    schedule(world.expiries, 0, 1.0)
    unschedule(world.expiries, 0)
    urgency_s(world.calls[0], 1.0)
    emitted_by(world, 0, 1.0)
    world.calls[0]["moving"] = 0
    install_kv(world, 0, 0)
    chunk_area(0, 1)
    mixed_ms(world.costs, 0, 1.0, 0, 0, 1, 0.0, 0.5)
    decode_run_ms(world.costs, 0, 1.0, 1, 1, 1)


def warm_up_replay() -> None:
    """Compile (first time) or load the replay of HexGen-Flow's simulator, which a live engine never calls."""
    work, fleet = generate("text2sql", 2, 0), load_fleet("hexgen-homo")
    replay(build_artifact(work, fleet, linear_fits(), "hexgen", alpha=0.0, rate=1.0, seed=0))


def is_all_warm() -> bool:
    """Whether neither of the two would compile."""
    return is_warm("advance", "act", "replay")
