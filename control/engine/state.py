"""The live state: the world, where its work comes from, how fast it runs."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from control.engine.books import Books
from control.engine.rolling import Rolling
from control.engine.source import Source, after
from control.model.fleet import Fleet
from control.model.workload import Workload
from control.policy.tables import Ints, Table
from control.tuning.decide import SUGGEST, Memory
from control.tuning.served import Served
from control.tuning.whatif.promise import Guard
from control.twin.caps import Cap, Switch, at_cost, begin_switches, live_costs, with_caps
from control.twin.kernel import advance
from control.twin.pack import build_world, refresh_steps, step_table
from control.twin.repack import repack
from control.twin.world import World
from control.workload.windows import WINDOW_S


@dataclass
class Flow:
    """A workflow of requests that may go on."""

    number: int
    row: int
    room: int  # calls it has room for
    session: str | None


LOOKAHEAD_S = 5.0  # a window is taken in this long before it begins, simulated s


@dataclass
class Live:
    """Everything the engine moves. `world` is replaced when it is repacked."""

    fleet: Fleet  # under the caps and at the speeds in force
    source: Source
    world: World
    streams: Ints  # stream of each stream key of the world
    declared: Table  # STEP rows before any history
    names: tuple[Sequence[str], Sequence[str], Sequence[str]]  # kinds, tenants, steps
    policy: str
    next_window: int = 0
    next_stream: int = 0  # first number no stream of a scenario has had
    speed: float = 1.0
    paused: bool = False
    load_scale: float = 1.0
    tuning_mode: str = SUGGEST
    pinned: bool = False  # an operator set alpha: the tuner leaves it alone until it is released
    guard: Guard | None = None  # a setting that was applied from a what-if, under watch
    tune_wanted: bool = False  # an operator asked for a run
    regrets: list[int] = field(default_factory=list)  # placements whose regret an operator asked for
    rolling: Rolling = field(default_factory=Rolling)
    tuner: Memory = field(default_factory=Memory)
    switches: list[Switch] = field(default_factory=list)  # instances about to take the cost of another cap
    flows: dict[str, Flow] = field(default_factory=dict)  # by the name that their requests give
    counted: list[int] = field(default_factory=lambda: [0, 0])  # calls and workflows of requests so far
    gateway_url: str | None = None  # where requests come in
    refined: dict[int, int] = field(default_factory=dict)  # times the costs of a real server were refined, by row
    served: dict[int, deque[Served]] = field(default_factory=dict)  # what real servers answered of late, by row
    compared: dict[int, dict[str, Any]] = field(default_factory=dict)  # that beside the twin's replay, by row
    observed: dict[int, dict[str, Any]] = field(default_factory=dict)  # what is seen of real servers, by row
    broken: dict[int, int] = field(default_factory=dict)  # why a call found its conversation's KV gone, by uid
    begun_as: list[Any] | None = None  # `origin` of the engine, where another scenario was chosen since
    given_rows: list[list[Any]] | None = None  # `given` as checkpoints have it, once it is known
    given: Fleet = field(init=False)  # as the engine was started with it
    books: Books = field(init=False)

    def __post_init__(self) -> None:
        """Open the books."""
        self.given = self.fleet
        self.books = Books(self.names[1], self.names[2], [spec.name for spec in self.fleet.instances])

    @property
    def origin(self) -> list[Any]:
        """What names the fleet and the work that the engine was started with."""
        return self.begun_as or origin_of(self.given, self.source)

    @property
    def now_s(self) -> float:
        """Simulated time, s."""
        return float(self.world.clock[0]["now_s"])

    @property
    def alpha(self) -> float:
        """The alpha in force."""
        return float(self.world.policy[0]["alpha"])

    @property
    def is_finished(self) -> bool:
        """Whether a finite source has run out and nothing is left to do."""
        return not self.source.is_gateway and self.source.is_over(self.next_window) and not self.has_work

    @property
    def has_work(self) -> bool:
        """Whether any workflow is still to arrive or to end."""
        clock = self.world.clock[0]
        return bool(clock["open_workflows"] > 0 or clock["next_workflow"] < len(self.world.workflows))


def origin_of(fleet: Fleet, source: Source) -> list[Any]:
    """What names a fleet and work: the names of both, and the seed."""
    return [fleet.name, source.name, source.seed]


def start(fleet: Fleet, source: Source, policy: str, alpha: float, speed: float) -> Live:
    """A live state at time 0, with the first window about to arrive."""
    first = source.window(0, 1.0)
    streams = np.unique(first.calls["stream"][first.calls["stream"] >= 0]).astype(np.int64)
    empty = first._replace(workflows=first.workflows[:0], calls=first.calls[:0], n_streams=0, ids=(), problems=())
    settings = source.conversations
    world = build_world(empty, fleet, policy, alpha, journal=True, form=source.form, conversations=settings)
    declared = step_table(first.steps)
    refresh_steps(world.costs, world.instances, declared)
    names = (first.kinds, first.tenants, first.steps)
    live = Live(fleet, source, world, streams[:0], declared, names, policy, speed=speed)
    take_windows(live, 0.0)
    return live


def take_windows(live: Live, until_s: float) -> None:
    """Take in every window that begins before `until_s` (plus a little), forgetting what has ended."""
    while not live.source.is_over(live.next_window):
        if live.source.window_start_s(live.next_window) > until_s + LOOKAHEAD_S:
            return
        take_in(live, live.source.window(live.next_window, live.load_scale))
        live.next_window += 1


def take_in(live: Live, more: Workload, drop_future: bool = False) -> None:
    """Take in the workflows of `more`, which arrive after all that is kept.

    A scenario's streams are renumbered: no conversation ever finds the cached context of another one.
    """
    if live.source.scenario is not None:
        calls = more.calls.copy()
        calls["stream"][calls["stream"] >= 0] += live.next_stream
        live.next_stream += more.n_streams
        more = more._replace(calls=calls)
    was = live.world
    packed, live.streams = repack(at_given_cost(live), live.streams, more, live.declared, drop_future)
    packed.instances["profile"] = was.instances["profile"]
    live.world = packed._replace(costs=was.costs)


def at_given_cost(live: Live) -> World:
    """The world at the cost of the fleet as it was given: a cap or another speed moves no deadline."""
    if live.fleet == live.given and not live.switches:
        return live.world
    costs, rows = live_costs(live.given, ())
    instances = live.world.instances.copy()
    instances["profile"] = rows
    return live.world._replace(costs=costs, instances=instances)


def set_caps(live: Live, caps: Sequence[Cap]) -> None:
    """Put one power cap an instance (W per GPU) in force."""
    change_fleet(live, with_caps(live.fleet, caps))


def change_fleet(live: Live, fleet: Fleet) -> None:
    """Put the caps and speeds of `fleet`, else the same, in force: each instance from the end of what it is at."""
    live.switches = begin_switches(live.world, live.fleet.instances, fleet.instances, live.switches)
    live.fleet = fleet
    take_costs(live)


def take_costs(live: Live) -> None:
    """Bring the world to the costs of the caps in force; instances still to switch keep theirs."""
    live.world = at_cost(live.world, *live_costs(live.fleet, live.switches))


def rescale(live: Live, load_scale: float) -> None:
    """Arrivals from now on come `load_scale` times as thick; what has arrived stays."""
    live.load_scale = load_scale
    live.next_window = max(1, live.next_window)
    first = int(live.now_s // WINDOW_S)
    for index in range(first, live.next_window):
        more = after(live.source.window(index, load_scale), live.now_s)
        take_in(live, more, drop_future=index == first)


def move(live: Live, until_s: float) -> bool:
    """Let the world run to `until_s`; False: its journal must be drained first, then call again."""
    while live.switches and live.switches[0].at_s <= until_s:
        before_s = float(np.nextafter(live.switches[0].at_s, -np.inf))
        if before_s > live.now_s and not advance(live.world, before_s):
            return False
        live.switches.pop(0)
        take_costs(live)
    return bool(advance(live.world, until_s))
