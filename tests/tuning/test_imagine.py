"""A fork of a live fleet of real servers runs on in the twin, and a tuning run replays its past."""

import numpy as np

from control.engine.door import Door, Identity
from control.engine.history import History
from control.engine.record import Most, rows_of, take
from control.engine.spare import start_gateway
from control.engine.tuner import Tuner
from control.metrics.stages import UNDER_WAY
from control.model.fleet import Fleet, InstanceSpec
from control.policy.codes import ACTIVE, COMPLETED
from control.tuning.decide import TunerSettings
from control.tuning.imagine import imagined, unplugged
from control.twin.kernel import advance
from control.twin.world import fork


class Clock:
    """Time that moves when told."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def opened(clock: Clock, history: History) -> Door:
    """A door to two unlike real servers, whose ended workflows go to the history."""
    specs = (
        InstanceSpec("fast", "H100", "Llama-3.1-8B", url="http://fast", window=8),
        InstanceSpec("slow", "L4", "Llama-3.1-8B", url="http://slow", window=8),
    )
    live = start_gateway(Fleet("two", specs), "hexgen", 0.5)

    def drain() -> None:
        door.hear()
        rows_of(live, take(live), history, Most())

    door = Door(live, drain, clock)
    return door


def serve(door: Door, clock: Clock, uids: list[int]) -> None:
    """Answer these calls, and those that get their seats."""
    while uids:
        uid = uids.pop(0)
        door.first_token(uid)
        clock.now_s += 0.05
        uids += [order.call for order in door.ends(uid, COMPLETED, 0, 200, 20, 0)]


def test_a_fork_of_real_servers_goes_on_in_the_twin() -> None:
    clock = Clock()
    door = opened(clock, History())
    sent = [door.enter(Identity(f"w{k % 5}", "report", "write", slo_s=30.0), 300, 1)[0] for k in range(40)]
    door.first_token(sent[0], 5)
    clock.now_s += 0.2
    copy = imagined(fork(door.live.world))
    assert np.isin(copy.calls["state"], UNDER_WAY).sum() == 40
    assert advance(copy, 1e6) or True
    assert not np.isin(copy.calls["state"], UNDER_WAY).any()
    assert (copy.calls["state"] == COMPLETED).sum() == 40
    assert not (copy.workflows["state"] == ACTIVE).any()
    assert np.isin(door.live.world.calls["state"], UNDER_WAY).sum() == 40  # the live one has not moved
    assert door.live.world.instances["remote"].all()


def test_alpha_is_tuned_on_what_real_servers_were_asked() -> None:
    clock, history = Clock(), History()
    door = opened(clock, history)
    history.keep_state(door.still())
    for _ in range(400):
        clock.now_s += 0.5
        uid, orders = door.enter(Identity(kind="report", stage="write", slo_s=30.0), 300, 1)
        assert [order.call for order in orders] == [uid]
        serve(door, clock, [uid])
    live = door.still()
    tuner = Tuner(TunerSettings())
    assert tuner.start(live, history, "button") == ""
    tuner.wait()
    ended = tuner.poll(live)
    tuner.close()
    assert ended is not None
    assert 0.0 <= ended.result["alpha"] <= 1.0


def test_a_fleet_of_real_servers_is_simulated_with_the_seats_of_its_windows() -> None:
    specs = (
        InstanceSpec("windowed", "H100", "Llama-3.1-8B", url="http://a", window=8),
        InstanceSpec("wide", "H100", "Llama-3.1-8B", url="http://b", window=512, max_num_seqs=64),
        InstanceSpec("open", "H100", "Llama-3.1-8B", url="http://c"),
        InstanceSpec("planned", "L40S", "Llama-3.1-8B", window=8),
    )
    found = unplugged(Fleet("mixed", specs)).instances
    assert [spec.url for spec in found] == [None] * 4
    assert [spec.max_num_seqs for spec in found] == [8, 64, 256, 256]
    assert found[3] is specs[3]
