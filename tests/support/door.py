"""A door to real servers that are not there: tests say what they answer."""

import numpy as np

from control.engine.door import Door
from control.engine.record import drain_journal
from control.engine.spare import start_gateway
from control.engine.tickets import Identity, Order
from control.model.fleet import Fleet, InstanceSpec
from control.policy.codes import COMPLETED, DISPATCHED

LONE = Identity()


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Scene:
    """A door to some real servers, and what the record got."""

    def __init__(self, policy: str = "hexgen", window: int = 2, n: int = 2, **settings: object) -> None:
        specs = tuple(
            InstanceSpec(f"s{i}", "A100", "Llama-3.1-8B", url=f"http://s{i}", window=window, **settings)  # type: ignore[arg-type]
            for i in range(n)
        )
        self.clock = Clock()
        self.ended: list[dict[str, object]] = []
        self.live = start_gateway(Fleet("two", specs), policy, 0.5)
        self.door = Door(self.live, self.drain, self.clock)

    def drain(self) -> None:
        self.door.hear()
        self.ended += drain_journal(self.live)[1]

    def enter(self, who: Identity = LONE, tokens: int = 100) -> tuple[int, list[Order]]:
        return self.door.enter(who, tokens, 1)

    def finish(self, uid: int, tokens: int = 10) -> list[Order]:
        self.door.first_token(uid)
        self.clock.now_s += 1.0
        return self.door.ends(uid, COMPLETED, 0, 100, tokens, 0)

    def check_closed(self) -> None:
        """Everything charged was released."""
        rows = self.live.world.instances
        assert not self.door.rows
        assert not self.door.numbers
        for name in ("n_waiting", "n_running", "queued_work_s", "reserved", "pinned"):
            assert not rows[name].any(), name
        np.testing.assert_array_equal(rows["free"] + rows["evictable"], rows["blocks"])
        assert self.live.world.clock[0]["n_held"] == 0


def sent(orders: list[Order]) -> dict[int, int]:
    return {order.call: order.instance for order in orders if order.kind == DISPATCHED}
