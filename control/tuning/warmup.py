"""Have every kernel compiled and loaded by running a tiny world through each."""

from control.model.fleet import load_fleet
from control.twin.handlers import kill, revive
from control.twin.kernel import advance, settle_energy
from control.twin.pack import build_world
from control.workload.generate import generate


def warm_up() -> None:
    """Compile (first time) or load every kernel that the engine and the command line call."""
    world = build_world(generate("text2sql", 2, 0), load_fleet("demo-mixed"), "hexgen", journal=True)
    advance(world, 1.0)
    kill(world, 0)
    revive(world, 0)
    settle_energy(world)
