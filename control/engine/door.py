"""The door through which requests enter the live world, and through which their answers move it.

One lock guards the world: the gateway's thread and the engine's loop both come through here. Every method tells the
world what happened and returns what is to be done: calls to be sent to real servers, or to be broken off there.
"""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from control.engine import spare
from control.engine.entries import fill_call, fill_workflow
from control.engine.spare import Spare
from control.engine.state import Flow, Live
from control.engine.still import break_off, is_at_server, still_life, take_capacity
from control.engine.tickets import ASKED, Identity, Order, numbers
from control.policy import codes
from control.policy.codes import CALL_ENDED, DOWN, DRAINING
from control.policy.tables import Ints
from control.twin.acts import NOTHING, act
from control.twin.kernel import advance

MANY_FLOWS = 1000  # open workflows that are kept for the whole of their idle time
LEAST_IDLE_S = 10.0
IDLE_S = 300.0  # a workflow without open calls for so long is taken to have ended


@dataclass
class Door:
    """The live world as requests see it."""

    live: Live
    drain: Callable[[], None]  # have the journal drained into the record
    clock: Callable[[], float] = time.monotonic
    lock: threading.RLock = field(default_factory=threading.RLock)
    origin_s: float = 0.0
    seen: int = 0  # journal entries taken
    draining: set[int] = field(default_factory=set)  # servers that were draining when they were taken to be dead
    spare: Spare = field(default_factory=Spare)
    keys: dict[int, str] = field(default_factory=dict)  # of flows, by number
    rows: dict[int, int] = field(default_factory=dict)  # of open calls, by number
    numbers: dict[int, int] = field(default_factory=dict)  # of open calls, by row
    on_orders: Callable[[list[Order]], None] = lambda orders: None  # for what the engine's own deeds ask for
    notes: deque[tuple[str, str]] = field(default_factory=deque)  # kind and text, for the audit
    draws: random.Random = field(default_factory=lambda: random.Random(0))

    def __post_init__(self) -> None:
        """Time goes on from where the world stands."""
        self.origin_s = self.clock() - self.live.now_s
        self.keys = {flow.number: key for key, flow in self.live.flows.items()}
        break_off(self.live)
        self.simulated = bool((self.live.world.instances["remote"] == 0).any())
        self.refill(spare.make_room)

    # ---- what the gateway tells

    def enter(self, who: Identity, input_tokens: int, output_tokens: int) -> tuple[int, list[Order]]:
        """A request has come: the number of its call, and what is to be done now.

        `output_tokens` is what a simulated instance will generate; nothing that decides reads it.
        """
        with self.lock:
            self.move()
            w, c = self.place_for(who)
            self.live.counted[0] += 1
            uid = self.live.counted[0]
            self.rows[uid], self.numbers[c] = c, uid
            fill_call(self.live, c, w, who, uid, (input_tokens, output_tokens), self.draws)
            return uid, self.tell(codes.REQUEST, w, c)

    def first_token(self, uid: int, tokens: int = 1, ago_s: float = 0.0) -> None:
        """Call `uid` has generated `tokens` tokens by now, the first of them `ago_s` ago."""
        with self.lock:
            self.move()
            c = self.rows.get(uid, -1)
            if c >= 0 and is_at_server(self.live.world, c):
                act(self.live.world, codes.FIRST_TOKEN, c, 0, numbers(tokens, int(ago_s * 1e6)))

    def ends(
        self,
        uid: int,
        state: int,
        cause: int,
        input_tokens: int = -1,
        generated: int = -1,
        cached: int = -1,
        ago_s: float = 0.0,
    ) -> list[Order]:
        """Call `uid` has ended (codes COMPLETED, CANCELLED, FAILED), at a real server or wherever else it was.

        Its first token came `ago_s` ago.
        """
        with self.lock:
            self.move()
            c = self.rows.get(uid, -1)
            if c < 0:
                return []
            if is_at_server(self.live.world, c):
                values = numbers(state, cause, input_tokens, generated, cached, int(ago_s * 1e6))
                return self.tell(codes.ANSWERED, c, 0, values, about=uid)
            return self.tell(codes.ABANDON, c, 0, about=uid)

    def give_up(self, uid: int) -> list[Order]:
        """The client of call `uid` has gone."""
        return self.ends(uid, codes.CANCELLED, codes.BY_CLIENT)

    def prefilled(self, uid: int) -> list[Order]:
        """The prefill leg of call `uid` has been answered."""
        with self.lock:
            self.move()
            if uid not in self.rows:
                return []
            orders = self.tell(codes.PREFILLED, self.rows[uid], 0)
            advance(self.live.world, self.live.now_s)
            return orders + self.take()

    def again(self, uid: int, tried: Sequence[int]) -> list[Order]:
        """The real server of call `uid` failed before the first byte; it may go to any but the instances `tried`."""
        with self.lock:
            self.move()
            c = self.rows.get(uid, -1)
            if c < 0:
                return []
            if self.live.world.calls[c]["cause"] == codes.BY_CLIENT:  # given up meanwhile
                return self.tell(codes.ANSWERED, c, 0, numbers(codes.CANCELLED, codes.BY_CLIENT))
            return self.tell(codes.SEND_AGAIN, c, 0, numbers(*tried[-len(NOTHING) :]))

    def suspend(self, i: int) -> list[Order]:
        """Real server `i` is taken to be dead."""
        with self.lock:
            self.move()
            if self.live.world.instances[i]["state"] == DRAINING:
                self.draining.add(i)
            return self.tell(codes.SUSPEND, i, 0)

    def resume(self, i: int) -> list[Order]:
        """Real server `i` answers again; a drain that was under way goes on."""
        with self.lock:
            self.move()
            if self.live.world.instances[i]["state"] != DOWN:
                return []
            if i in self.draining:
                self.draining.discard(i)
                act(self.live.world, codes.COME_BACK, i, 0, NOTHING)
                return self.tell(codes.BEGIN_DRAIN, i, 0)
            return self.tell(codes.COME_BACK, i, 0)

    def close_idle(self, idle_s: float = IDLE_S) -> list[Order]:
        """End the workflows that nothing was heard of for `idle_s`; sooner, the more than MANY_FLOWS are open."""
        with self.lock:
            self.move()
            now_s, world, orders = self.live.now_s, self.live.world, []
            if len(self.live.flows) > MANY_FLOWS:
                idle_s = max(min(LEAST_IDLE_S, idle_s), idle_s * MANY_FLOWS / len(self.live.flows))
            for flow in list(self.live.flows.values()):
                row = world.workflows[flow.row]
                if row["open_calls"] == 0 and row["group_done_s"] <= now_s - idle_s:
                    orders += self.tell(codes.CLOSE, flow.row, 0)
            return orders

    def meter(self, watts: Sequence[float | None]) -> None:
        """Readings of the meters of all instances, W; None: no meter."""
        with self.lock:
            self.move()
            act(self.live.world, codes.METER, 0, 0, NOTHING)
            self.live.world.instances["measured_w"] = [-1.0 if w is None else w for w in watts]

    def has_room(self, i: int, kv_tokens: float | None) -> None:
        """Real server `i` says how many tokens of KV it has room for; None: it does not say."""
        with self.lock:
            told = take_capacity(self.live, i, kv_tokens)
        if told:
            self.notes.append(("kv_capacity", told))

    # ---- how it is done

    def now_s(self) -> float:
        """Time of the world, s."""
        return max(self.clock() - self.origin_s, float(self.live.world.clock[0]["now_s"]))

    def move(self) -> None:
        """Bring the world to now."""
        world = self.live.world
        if self.simulated or world.transfers.size[0] > 0 or world.expiries.size[0] > 0:
            while not advance(world, self.now_s()):
                self.drain()
        else:
            world.clock[0]["now_s"] = self.now_s()

    def tell(self, deed: int, row: int, other: int, values: Ints = NOTHING, about: int = 0) -> list[Order]:
        """Have the world take in what happened; what is to be done, but for the end of call `about`, which was told."""
        world = self.live.world
        act(world, deed, row, other, values)
        if self.simulated:
            advance(world, float(world.clock[0]["now_s"]))
        orders = [order for order in self.take() if order.kind != CALL_ENDED or order.call != about]
        if 4 * int(world.clock[0]["n_journal"]) >= len(world.journal):
            self.drain()
        return orders

    def take(self) -> list[Order]:
        """What the journal's new entries ask for."""
        world = self.live.world
        entries = world.journal[self.seen : int(world.clock[0]["n_journal"])]
        self.seen += len(entries)
        orders = []
        for _, kind, row, instance, _ in entries.tolist():
            if kind == codes.WORKFLOW_ENDED_ENTRY:
                key = self.keys.pop(int(world.workflows[row]["id"]), None)
                if key is not None:
                    self.live.flows.pop(key, None)
            elif kind in ASKED and row in self.numbers:
                uid = self.numbers[row]
                if kind == CALL_ENDED:
                    del self.numbers[row], self.rows[uid]
                elif kind == codes.PLACED and world.instances[instance]["remote"] == 1:
                    continue  # it will be sent there in its turn
                call = world.calls[row]
                orders.append(Order(kind, uid, instance, int(call["cause"]), bool(call["handoff"] == 1)))
        return orders

    def hear(self) -> None:
        """The journal is about to be drained: pass on what its new entries ask for."""
        orders = self.take()
        self.seen = 0
        if orders:
            self.on_orders(orders)

    def still(self) -> Live:
        """The live state as it stands now, to be looked at in peace; its world is a copy."""
        with self.lock:
            self.move()
            act(self.live.world, codes.METER, 0, 0, NOTHING)
            self.drain()
            return still_life(self.live)

    def place_for(self, who: Identity) -> tuple[int, int]:
        """Rows of the workflow and of the call that a request becomes."""
        flow = self.live.flows.get(who.workflow) if who.workflow is not None else None
        if flow is None:
            return self.new_flow(who)
        world = self.live.world
        if world.workflows[flow.row]["n_calls"] == flow.room:
            self.outgrow(flow)
            world = self.live.world
        if who.is_last:
            world.workflows[flow.row]["open_end"] = 0
        row = world.workflows[flow.row]
        return flow.row, int(row["first_call"] + row["n_calls"])

    def outgrow(self, flow: Flow) -> None:
        """Give a workflow more room: a larger place that is kept ready, else after making room."""
        size = spare.next_size(flow.room)
        if not self.spare.long.get(size):
            self.refill(lambda live: spare.make_room(live, (size,)))
        world, old, new = self.live.world, flow.row, self.spare.long[size].pop()
        first, n = int(world.workflows[old]["first_call"]), int(world.workflows[old]["n_calls"])
        shift = spare.exchange_places(world, old, new)
        moved = [(c, self.numbers.pop(c)) for c in range(first, first + n) if c in self.numbers]
        for c, uid in moved:
            self.numbers[c + shift] = uid
            self.rows[uid] = c + shift
        flow.room = size

    def new_flow(self, who: Identity) -> tuple[int, int]:
        """A workflow's first request."""
        goes_on = who.workflow is not None and not who.is_last
        size = spare.SIZES[0] if goes_on else 1
        if not self.spare.long.get(size):
            self.refill(spare.make_room)
        w = self.spare.long[size].pop()
        self.live.counted[1] += 1
        number = self.live.counted[1]
        fill_workflow(self.live, w, who, number, goes_on)
        if goes_on and who.workflow is not None:
            self.live.flows[who.workflow] = Flow(number, w, size, who.session)
            self.keys[number] = who.workflow
        return w, int(self.live.world.workflows[w]["first_call"])

    def refill(self, how: Callable[[Live], Spare]) -> None:
        """Make room by `how`, which renumbers all rows."""
        if self.live.world.clock[0]["n_journal"] > 0:
            self.drain()
        self.spare = how(self.live)
        self.rows = spare.renumber(self.live)
        self.numbers = {c: uid for uid, c in self.rows.items()}
