"""The door through which requests enter the live world, and through which their answers move it.

One lock guards the world: the gateway's thread and the engine's loop both come through here. Every method tells the
world what happened and returns what is to be done: calls to be sent to real servers, or to be broken off there.
"""

import copy
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from control.engine import spare
from control.engine.spare import Spare, number_of
from control.engine.state import Flow, Live
from control.policy.codes import (
    ABANDON,
    ABORTED,
    ACTIVE,
    ANSWERED,
    CALL_ENDED,
    CANCELLED,
    CLOSE,
    COME_BACK,
    DECODE,
    DISPATCHED,
    DOWN,
    FAILED,
    FIRST_TOKEN,
    HELD,
    METER,
    PLACED,
    PREFILL,
    PREFILLED,
    REQUEST,
    RESTARTED,
    SEND_AGAIN,
    SUSPEND,
    TRANSFER,
    WAITING,
    WORKFLOW_ENDED_ENTRY,
)
from control.policy.tables import Ints, Record
from control.twin.acts import NOTHING, act
from control.twin.kernel import advance
from control.twin.world import fork

IDLE_S = 300.0  # a workflow without open calls for so long is taken to have ended


class Identity(NamedTuple):
    """Whose call a request is."""

    workflow: str | None = None  # None: a lone request
    kind: str = ""
    stage: str = ""
    tenant: str = ""
    slo_s: float | None = None  # from the workflow's first request to its deadline
    session: str | None = None  # conversation whose context it continues
    is_last: bool = False
    matched: str = ""  # the header or field that named the workflow


class Order(NamedTuple):
    """What is to be done about a call."""

    kind: int  # codes.DISPATCHED, ABORTED; PLACED where it went to a simulated instance; CALL_ENDED
    call: int  # its number
    instance: int  # row
    cause: int
    is_prefill: bool = False  # only to prefill there


@dataclass
class Door:
    """The live world as requests see it."""

    live: Live
    drain: Callable[[], None]  # have the journal drained into the record
    clock: Callable[[], float] = time.monotonic
    lock: threading.RLock = field(default_factory=threading.RLock)
    origin_s: float = 0.0
    seen: int = 0  # journal entries taken
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
        self.simulated = bool((self.live.world.instances["remote"] == 0).any())
        self.break_off()
        self.refill(spare.make_room)

    def break_off(self) -> None:
        """End the calls that an earlier process had: their clients' connections went with it."""
        world = self.live.world
        world.instances["remote"] = [spec.url is not None for spec in self.live.fleet.instances]
        for states, deed in (((WAITING, HELD, TRANSFER), ABANDON), ((PREFILL, DECODE), ANSWERED)):
            for c in np.flatnonzero(np.isin(world.calls["state"], states)):
                remote = world.instances[int(world.calls[c]["instance"])]["remote"] == 1
                how = deed if remote else ABANDON
                act(world, how, int(c), 0, numbers(FAILED, RESTARTED) if how == ANSWERED else NOTHING)
                if how == ABANDON and world.calls[c]["state"] == CANCELLED:
                    world.calls[c]["state"], world.calls[c]["cause"] = FAILED, RESTARTED

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
            self.fill(self.live.world.calls[c], w, who, uid, input_tokens, output_tokens)
            return uid, self.tell(REQUEST, w, c)

    def first_token(self, uid: int, tokens: int = 1) -> None:
        """Call `uid` has generated `tokens` tokens by now, its first ones perhaps."""
        with self.lock:
            c = self.rows.get(uid)
            if c is not None:
                self.move()
                act(self.live.world, FIRST_TOKEN, c, 0, numbers(tokens))

    def ends(
        self, uid: int, state: int, cause: int, input_tokens: int = -1, generated: int = -1, cached: int = -1
    ) -> list[Order]:
        """The answer of call `uid`, which was sent to a real server, has ended (codes COMPLETED, CANCELLED, FAILED)."""
        with self.lock:
            c = self.rows.get(uid)
            if c is None:
                return []
            self.move()
            values = numbers(state, cause, input_tokens, generated, cached)
            return self.tell(ANSWERED, c, 0, values, about=uid)

    def prefilled(self, uid: int) -> list[Order]:
        """The prefill leg of call `uid` has been answered."""
        with self.lock:
            self.move()
            orders = self.tell(PREFILLED, self.rows[uid], 0)
            advance(self.live.world, self.live.now_s)
            return orders + self.take()

    def again(self, uid: int, tried: Sequence[int]) -> list[Order]:
        """The real server of call `uid` failed before the first byte; it may go to any but the instances `tried`."""
        with self.lock:
            self.move()
            return self.tell(SEND_AGAIN, self.rows[uid], 0, numbers(*tried[-len(NOTHING) :]))

    def give_up(self, uid: int) -> list[Order]:
        """The client of call `uid`, which waits here, has gone."""
        with self.lock:
            self.move()
            return self.tell(ABANDON, self.rows[uid], 0, about=uid) if uid in self.rows else []

    def suspend(self, i: int) -> list[Order]:
        """Real server `i` is taken to be dead."""
        with self.lock:
            self.move()
            return self.tell(SUSPEND, i, 0)

    def resume(self, i: int) -> list[Order]:
        """Real server `i` answers again."""
        with self.lock:
            self.move()
            return self.tell(COME_BACK, i, 0) if self.live.world.instances[i]["state"] == DOWN else []

    def close_idle(self, idle_s: float = IDLE_S) -> list[Order]:
        """End the workflows that nothing was heard of for `idle_s`."""
        with self.lock:
            self.move()
            now_s, world, orders = self.live.now_s, self.live.world, []
            for flow in list(self.live.flows.values()):
                row = world.workflows[flow.row]
                if row["open_calls"] == 0 and row["group_done_s"] <= now_s - idle_s:
                    orders += self.tell(CLOSE, flow.row, 0)
            return orders

    def meter(self, watts: Sequence[float | None]) -> None:
        """Readings of the meters of all instances, W; None: no meter."""
        with self.lock:
            self.move()
            act(self.live.world, METER, 0, 0, NOTHING)
            self.live.world.instances["measured_w"] = [-1.0 if w is None else w for w in watts]

    # ---- how it is done

    def now_s(self) -> float:
        """Time of the world, s."""
        return max(self.clock() - self.origin_s, float(self.live.world.clock[0]["now_s"]))

    def move(self) -> None:
        """Bring the world to now."""
        world = self.live.world
        if self.simulated or world.transfers.size[0] > 0 or world.expiries.size[0] > 0:
            while not advance(world, self.now_s()):
                self.drain_now()
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
            self.drain_now()
        return orders

    def take(self) -> list[Order]:
        """What the journal's new entries ask for."""
        world = self.live.world
        entries = world.journal[self.seen : int(world.clock[0]["n_journal"])]
        self.seen += len(entries)
        orders = []
        for _, kind, row, instance in entries.tolist():
            if kind == WORKFLOW_ENDED_ENTRY:
                key = self.keys.pop(int(world.workflows[row]["id"]), None)
                if key is not None:
                    self.live.flows.pop(key, None)
            elif kind in ASKED and row in self.numbers:
                uid = self.numbers[row]
                if kind == CALL_ENDED:
                    del self.numbers[row], self.rows[uid]
                elif kind == PLACED and world.instances[instance]["remote"] == 1:
                    continue  # it will be sent there in its turn
                call = world.calls[row]
                orders.append(Order(kind, uid, instance, int(call["cause"]), bool(call["handoff"] == 1)))
        return orders

    def drain_now(self) -> None:
        """Have the record take the journal over; what it asks for has been taken."""
        self.drain()

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
            act(self.live.world, METER, 0, 0, NOTHING)
            self.drain()
            copied = copy.copy(self.live)
            copied.world, copied.streams = fork(self.live.world), self.live.streams.copy()
            return copied

    def place_for(self, who: Identity) -> tuple[int, int]:
        """Rows of the workflow and of the call that a request becomes."""
        flow = self.live.flows.get(who.workflow) if who.workflow is not None else None
        if flow is None:
            return self.new_flow(who)
        world = self.live.world
        if world.workflows[flow.row]["n_calls"] == flow.room:
            number = flow.number
            self.refill(lambda live: spare.outgrow(live, number))
            world = self.live.world
        if who.is_last:
            world.workflows[flow.row]["open_end"] = 0
        row = world.workflows[flow.row]
        return flow.row, int(row["first_call"] + row["n_calls"])

    def new_flow(self, who: Identity) -> tuple[int, int]:
        """A workflow's first request."""
        goes_on = who.workflow is not None and not who.is_last
        if not (self.spare.long if goes_on else self.spare.lone):
            self.refill(spare.make_room)
        w = (self.spare.long if goes_on else self.spare.lone).pop()
        workflow, names = self.live.world.workflows[w], self.live.names
        self.live.counted[1] += 1
        number = self.live.counted[1]
        workflow["id"] = number
        workflow["arrival_s"] = self.live.world.clock[0]["now_s"]
        workflow["granted"] = who.slo_s is None
        workflow["slo_s"] = 0.0 if who.slo_s is None else who.slo_s
        workflow["tenant"] = number_of(names[1], who.tenant or spare.OTHER)
        workflow["kind"] = number_of(names[0], who.kind or spare.OTHER)
        workflow["go_on"], workflow["open_end"] = 1, goes_on
        if goes_on and who.workflow is not None:
            self.live.flows[who.workflow] = Flow(number, w, spare.LONG_CALLS, who.session)
            self.keys[number] = who.workflow
        return w, int(workflow["first_call"])

    def fill(self, call: Record, w: int, who: Identity, uid: int, input_tokens: int, output_tokens: int) -> None:
        """What is known of a call when it comes."""
        world = self.live.world
        call["uid"] = uid
        call["tenant"] = world.workflows[w]["tenant"]
        call["step"] = number_of(self.live.names[2], who.stage or spare.OTHER)
        call["input_tokens"], call["output_tokens"] = input_tokens, output_tokens
        call["draw_a"], call["draw_b"] = self.draws.random(), self.draws.random()
        flow = self.live.flows.get(who.workflow) if who.workflow is not None else None
        continues = flow is not None and who.session is not None and who.session == flow.session
        if call["stream_key"] < 0 or not continues or world.workflows[w]["open_calls"] > 0:
            call["stream_key"] = -1
            return
        pin = world.pins[int(call["stream_key"]) - int(world.clock[0]["n_shared"])]
        call["history_tokens"] = min(int(pin["tokens"]), input_tokens)

    def refill(self, how: Callable[[Live], Spare]) -> None:
        """Make room by `how`, which renumbers all rows."""
        if self.live.world.clock[0]["n_journal"] > 0:
            self.drain_now()
        self.spare = how(self.live)
        world = self.live.world
        open_rows = np.flatnonzero(np.isin(world.calls["uid"], np.fromiter(self.rows, np.int64, len(self.rows))))
        self.rows = {int(world.calls[c]["uid"]): int(c) for c in open_rows}
        self.numbers = {c: uid for uid, c in self.rows.items()}
        active = {int(world.workflows[w]["id"]): int(w) for w in np.flatnonzero(world.workflows["state"] == ACTIVE)}
        room = np.bincount(world.calls["workflow"], minlength=len(world.workflows))
        for flow in self.live.flows.values():
            flow.row = active[flow.number]
            flow.room = int(room[flow.row])


ASKED = (DISPATCHED, ABORTED, CALL_ENDED, PLACED)


def numbers(*values: int) -> Ints:
    """The numbers that go with a deed."""
    array = NOTHING.copy()
    array[: len(values)] = values
    return array
