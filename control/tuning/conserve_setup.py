"""What ConServe's evaluation runs on: its fleet by policy and power caps, and every conversation alone.

The paper's conventions are one set of settings (ConServe, section 2): the need is the oracle's, and what turn 1 waits
to be let in is no latency. Beside them stand the settings of a service that knows no lengths and counts every wait.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from control.errors import SettingError
from control.metrics.conversations import Times, conversation_times
from control.model.fleet import Fleet, InstanceSpec, load_fleet
from control.model.hardware import profile
from control.model.power import checked_cap
from control.model.workload import Workload
from control.policy.rules import Conversations
from control.twin.simulate import simulate
from control.twin.world import World
from control.workload.conserve_runs import apart

FLEET: Final = "conserve-a40"
POLICIES: Final = ("collocated", "full-disagg", "ampd", "conserve")
MIXED: Final = (
    "collocated",
    "session-affinity",
    "prefix-affinity",
)  # policies without tiers: every engine of the decode kind, and all do everything


class Convention(NamedTuple):
    """How a run is set up and what of it counts as latency."""

    need: str  # KV a decoder must have free, see policy.rules.Conversations
    prefill_queue: bool  # whether the time that turn 1 waits to be let in is latency


PAPER: Final = Convention("oracle", prefill_queue=False)
SERVICE: Final = Convention("observed", prefill_queue=True)


class Caps(NamedTuple):
    """Power caps of the prefill tier and of the decode tier, W per GPU."""

    prefill_w: float
    decode_w: float

    def __str__(self) -> str:
        """As the paper writes them, e.g. "300/200"."""
        return f"{self.prefill_w:g}/{self.decode_w:g}"


def fleet_of(policy: str, caps: Caps) -> Fleet:
    """The paper's four GPUs under `policy` and `caps`.

    Without tiers all four are engines of the decode kind, the first under the prefill cap.
    """
    known = load_fleet(FLEET)
    specs = known.instances
    if policy in MIXED:
        kind = decode_kind(known)
        specs = tuple(replace(kind, name=spec.name, role="mixed") for spec in specs)
    first = specs[0].name
    capped = [
        replace(spec, power_cap_w=caps.prefill_w if spec.role == "prefill" or spec.name == first else caps.decode_w)
        for spec in specs
    ]
    return Fleet(known.name, tuple(capped))


def decode_kind(fleet: Fleet) -> InstanceSpec:
    """An instance of the fleet's decode tier."""
    return next(spec for spec in fleet.instances if spec.role == "decode")


def check_caps(caps: Caps) -> None:
    """Refuse caps that the GPU does not take.

    Raises:
        SettingError: naming the cap and what is accepted.
    """
    kind = decode_kind(load_fleet(FLEET))
    for cap_w in caps:
        try:
            checked_cap(profile(kind.gpu, kind.model, kind.gpus, kind.kv_tokens), cap_w)
        except SettingError as error:
            raise SettingError(f"--caps = {caps}: {error}") from error


def standalone_world(work: Workload) -> World:
    """Every conversation alone on one idle, uncapped engine, run to its end.

    All its turns stay there and find what the turns before them left. The engine takes as many tokens an iteration as
    the prefiller: alone nobody waits for its iterations, and the paper's ratios are met more closely (4.0 % off on
    average) than with the decoders' smaller batch (4.4 %).
    """
    kind = max(load_fleet(FLEET).instances, key=lambda spec: spec.max_num_batched_tokens)
    alone = Fleet("alone", (replace(kind, name="alone", role="mixed"),))
    return simulate(apart(work), alone, "collocated", conversations=Conversations(need="oracle"))


def standalone(work: Workload) -> Times:
    """Times of every conversation alone, s: what ratios and SLOs are measured by, whatever the caps."""
    world = standalone_world(work)
    return conversation_times(world.workflows, world.calls)
