"""The twin as a server: continuous batching by a profile of the catalogue, moved by a clock instead of by itself.

One instance, whose world takes in every call as a workflow of one call that arrives now. Chunked prefill, KV blocks,
preemption and the prefix cache are the twin's.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from control.adapters.mock.core import SHARED, Admissions, Call, Cancellable, Clock, Flow, Load
from control.adapters.mock.settings import MockSettings
from control.model.fleet import Fleet
from control.model.workload import Workload, empty_calls, empty_workflows
from control.policy.codes import CANCELLED, COMPLETED, DECODE, DECODING, IDLE, PREFILL, REFUSED, WAITING
from control.policy.cost import decode_run_ms
from control.policy.tables import Ints
from control.twin.acts import cancel
from control.twin.kernel import advance
from control.twin.kv import install_kv
from control.twin.observe import VIEW, emitted_by, view_all
from control.twin.pack import build_world, refresh_steps, step_table
from control.twin.repack import repack
from control.twin.world import World, fork

A_PRIORITY_S = 1e6  # s of deadline for each step of priority: earliest deadline first is then order of priority
CALLS_PER_UID = 100_000  # see pack.call_table
OVER = (COMPLETED, CANCELLED, REFUSED)


def work_of(flows: Sequence[Flow], times: Sequence[float], first_id: int) -> Workload:
    """These calls as workflows of one call each, arriving at `times`, s."""
    workflows, calls = empty_workflows(len(flows)), empty_calls(len(flows))
    workflows["id"] = np.arange(first_id, first_id + len(flows))
    workflows["arrival_s"] = times
    workflows["first_call"] = calls["workflow"] = np.arange(len(flows))
    workflows["n_calls"] = 1
    workflows["slo_s"] = [flow.call.priority * A_PRIORITY_S for flow in flows]
    for column in ("output_tokens", "stream", "history_tokens", "shared_key", "shared_tokens"):
        calls[column] = [getattr(flow.call, column) for flow in flows]
    calls["input_tokens"] = [flow.call.prompt_tokens for flow in flows]
    streams = max((flow.call.stream for flow in flows), default=-1) + 1
    return Workload("mock", "mock", workflows, calls, ("call",), ("all",), ("call",), SHARED, streams)


class Twin:
    """A core that is an instance of the twin."""

    def __init__(self, settings: MockSettings, clock: Clock) -> None:
        policy = "edf" if settings.scheduling_policy == "priority" else "rr-fcfs"
        self.settings, self.clock = settings, clock
        self.admissions = Admissions()
        self.world = build_world(work_of((), (), 0), Fleet("mock", (settings.spec,)), policy)
        self.declared = step_table(("call",))
        refresh_steps(self.world.costs, self.world.instances, self.declared)
        self.streams: Ints = np.zeros(0, np.int64)
        self.rate = settings.speed
        self.zero_s, self.base_s = clock.now(), 0.0  # the world stood at base_s when the clock read zero_s
        self.flows: list[Flow] = []  # by row of the world's calls
        self.pending: list[Flow] = []
        self.next_id, self.held = 0, 0
        self.goal_s = 0.0  # time of the world that is waited for
        self.timer: Cancellable | None = None
        rehearse(self.world)

    def simulated_s(self, clock_s: float) -> float:
        """The world's time when the clock reads `clock_s`, s."""
        return self.base_s + (clock_s - self.zero_s) * self.rate

    def clock_s(self, simulated_s: float) -> float:
        """What the clock reads at a time of the world, s."""
        return self.zero_s + (simulated_s - self.base_s) / self.rate

    def submit(self, call: Call, on_tokens: Callable[[], None]) -> Flow:
        """As Core.submit. Calls that come in one turn of the event loop are taken in together."""
        flow = Flow(call, self.clock.now(), on_tokens)
        self.pending.append(flow)
        if len(self.pending) == 1:
            self.wake_at(flow.arrived_s)
        return flow

    def wake_at(self, at_s: float) -> None:
        """Have the world moved at `at_s`, and not before; inf: not at all."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None if at_s == math.inf else self.clock.call_at(at_s, self.turn)

    def turn(self) -> None:
        """Move the world to now, tell whose tokens came, and wait for the next ones."""
        grown = self.move()
        self.wake_at(self.next_s())
        for flow in grown:
            flow.on_tokens()

    def move(self) -> list[Flow]:
        """Take in what waits to be, move the world to now; the calls that generated or ended."""
        if self.pending:
            self.take_in()
        now_s = max(self.simulated_s(self.clock.now()), float(self.world.clock[0]["now_s"]))
        if self.clock.now() >= self.clock_s(self.goal_s):
            now_s = max(now_s, self.goal_s)  # rounding on the way from one time to the other must not fall short of it
        advance(self.world, now_s)
        return self.collect(now_s)

    def take_in(self) -> None:
        """Put the pending calls into the world; what has ended leaves it."""
        new = [flow for flow in self.pending if not flow.ended]
        self.pending = []
        floor_s = float(self.world.clock[0]["now_s"])
        times = [max(self.simulated_s(flow.arrived_s), floor_s) for flow in new]
        more = work_of(new, times, self.next_id)
        flow_of = dict(zip(self.world.calls["uid"].tolist(), self.flows, strict=True))
        flow_of |= {(self.next_id + k) * CALLS_PER_UID: flow for k, flow in enumerate(new)}
        self.next_id += len(new)
        self.world, self.streams = repack(self.world, self.streams, more, self.declared)
        self.flows = [flow_of[uid] for uid in self.world.calls["uid"].tolist()]
        for c, flow in enumerate(self.flows):
            if flow.call.external and flow.started_s < 0.0 and self.world.calls[c]["remnant"] < 0:
                self.install(c)

    def install(self, c: int) -> None:
        """The KV of the prompt of call `c` is here: it stands cached as its own, and a token is left to compute."""
        self.world.calls[c]["moving"] = self.world.calls[c]["input_tokens"]
        install_kv(self.world, 0, c)
        self.world.calls[c]["moving"] = 0

    def collect(self, now_s: float) -> list[Flow]:
        """Bring the flows up to the world at `now_s`; those with news."""
        calls, ahead, grown, started = self.world.calls, self.iterations(now_s), [], []
        columns = [calls[name].tolist() for name in ("state", "emitted", "started_s", "first_token_s", "finished_s")]
        for c, (state, tokens, started_s, first_s, finished_s) in enumerate(zip(*columns, strict=True)):
            flow = self.flows[c]
            if flow.ended:
                continue
            tokens += ahead if state == DECODE else 0
            if flow.started_s < 0.0 <= started_s:
                flow.started_s = self.clock_s(started_s)
                if not flow.call.external:
                    flow.cached_tokens = int(calls[c]["cached_tokens"])
                started.append((started_s, self.seat(c), flow))
            if flow.first_s < 0.0 <= first_s:
                flow.first_s = self.clock_s(first_s)
            if state in OVER:
                flow.ended, flow.finished_s = True, self.clock_s(finished_s)
            if tokens > flow.tokens or flow.ended:
                flow.tokens = tokens
                grown.append(flow)
        for _, _, flow in sorted(started, key=lambda entry: entry[:2]):
            self.admissions.note(flow.call)
        return grown

    def seat(self, c: int) -> int:
        """The place of call `c` in the batch, which is in order of admission."""
        places = np.flatnonzero(self.world.running[0, : self.world.instances[0]["n_running"]] == c)
        return int(places[0]) if len(places) else -1

    def iterations(self, now_s: float) -> int:
        """Iterations of the run under way that have ended by `now_s`: as many tokens each decoding call is ahead."""
        if self.world.instances[0]["run"] != DECODING:
            return 0
        c = int(np.flatnonzero(self.world.calls["state"] == DECODE)[0])
        return emitted_by(self.world, c, now_s) - int(self.world.calls[c]["emitted"])

    def next_s(self) -> float:
        """When the clock will read the time of the next token or batch boundary, s; inf: nothing runs."""
        instance = self.world.instances[0]
        if instance["run"] == IDLE:
            return math.inf
        at_s = float(self.world.runs.time[0])
        if instance["run"] == DECODING:
            n = self.iterations(float(self.world.clock[0]["now_s"])) + 1
            at_s = min(at_s, iteration_end_s(self.world, n))
        self.goal_s = at_s
        return self.clock_s(at_s)

    def cancel(self, flow: Flow) -> None:
        """As Core.cancel: at once where it waits, at the next batch boundary where it runs."""
        if flow.ended:
            return
        grown = self.move()
        if not flow.ended:
            flow.ended, flow.finished_s = True, self.clock.now()
            cancel(self.world, int(self.world.calls[self.flows.index(flow)]["workflow"]))
        self.wake_at(self.next_s())
        for other in grown:
            if other is not flow:
                other.on_tokens()

    def load(self) -> Load:
        """As Core.load, with KV growth inside the run under way."""
        instance, states = self.world.instances[0], self.world.calls["state"]
        views = np.zeros(1, VIEW)
        view_all(self.world, max(self.simulated_s(self.clock.now()), float(self.world.clock[0]["now_s"])), views)
        size = int(instance["block_size"])
        return Load(
            int(np.isin(states, (PREFILL, DECODE)).sum()),
            int((states == WAITING).sum()) + len(self.pending),
            int(views[0]["used_blocks"]) * size + self.held,
            int(instance["blocks"]) * size + self.held,
            int(instance["preemptions"]),
        )

    def transfer_s(self, tokens: int) -> float:
        """As Core.transfer_s, by the profile's link."""
        profile = self.world.costs.profiles[0]
        return float(profile["link_ms"] + profile["link_token_ms"] * tokens) * 1e-3 / self.rate

    def hold(self, tokens: int) -> int:
        """As Core.hold: the blocks are as good as not there. Enough are left for a call alone, however long it is."""
        instance = self.world.instances[0]
        size = int(instance["block_size"])
        spare = int(instance["blocks"]) - -(-int(instance["max_model_len"]) // size)
        blocks = max(0, min(-(-tokens // size), int(instance["free"]), spare))
        instance["free"] -= blocks
        instance["blocks"] -= blocks
        self.held += blocks * size
        return blocks * size

    def release(self, tokens: int) -> None:
        """As Core.release."""
        instance = self.world.instances[0]
        instance["free"] += tokens // int(instance["block_size"])
        instance["blocks"] += tokens // int(instance["block_size"])
        self.held -= tokens

    def slow_down(self, factor: float) -> None:
        """As Core.slow_down, at once and for all calls."""
        grown = self.move()
        now_s = self.clock.now()
        self.zero_s, self.base_s = now_s, self.simulated_s(now_s)
        self.rate = self.settings.speed / factor
        self.wake_at(self.next_s())
        for flow in grown:
            flow.on_tokens()


def iteration_end_s(world: World, n: int) -> float:
    """When iteration `n` of the decode run under way ends, s."""
    run = world.instances[0]
    ms = decode_run_ms(world.costs, run["profile"], run["host_ms"], run["run_b"], run["run_kv"], n)
    return float(run["run_start_s"] + run["run_lead_s"] + ms * 1e-3)


def rehearse(world: World) -> None:
    """Load, or the first time compile, all that a request may need, on a copy: no request must wait for it."""
    copy, declared = fork(world), step_table(("call",))
    refresh_steps(copy.costs, copy.instances, declared)
    streams: Ints = np.zeros(0, np.int64)
    call = Call("", prompt_tokens=2 * int(copy.instances[0]["block_size"]), output_tokens=100)
    copy, _ = repack(copy, streams, work_of([Flow(call, 0.0)], [0.0], 0), declared)
    copy.calls[0]["moving"] = call.prompt_tokens
    install_kv(copy, 0, 0)
    advance(copy, 0.1)
    iteration_end_s(copy, emitted_by(copy, 0, 0.1))
    view_all(copy, 0.1, np.zeros(1, VIEW))
    cancel(copy, 0)
