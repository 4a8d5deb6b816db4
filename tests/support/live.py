"""Drive a live state as the engine does, and put what it did beside the twin's run of the same arrivals."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from control.engine import checkpoint
from control.engine.record import drain_journal
from control.engine.source import Source
from control.engine.state import Live, move, start, take_windows
from control.metrics.ledger import debts_s, planned_s
from control.model.fleet import Fleet
from control.model.workload import Workload
from control.policy.codes import BROKEN, DECODE, DONE, PREFILL, WAITING
from control.twin.simulate import simulate
from control.twin.world import World
from tests.support import laws

Row = dict[str, Any]
BY_INSTANCE: tuple[Callable[[World, int], None], ...] = (
    laws.check_queue,
    laws.check_batch,
    laws.check_blocks,
    laws.check_work,
)
STEPS_S = (0.1, 0.37, 1.0, 6.0, 60.0)


@dataclass
class Driven:
    """A live state and all it has decided and ended."""

    live: Live
    decisions: list[Row] = field(default_factory=list)
    workflows: list[Row] = field(default_factory=list)

    def note(self) -> None:
        """Take over the journal."""
        decisions, workflows = drain_journal(self.live)
        self.decisions += decisions
        self.workflows += workflows

    def run(self, until_s: float) -> None:
        """Move to `until_s`, simulated s, by a minute at most at a time."""
        while self.live.now_s < until_s:
            next_s = min(until_s, self.live.now_s + 60.0)
            take_windows(self.live, next_s)
            while not move(self.live, next_s):
                self.note()
            self.note()

    def stop_and_go_on(self) -> None:
        """Through a checkpoint and back, as a killed engine does."""
        self.live = checkpoint.load(checkpoint.save(self.live), self.live.fleet, self.live.source)

    @property
    def ended(self) -> int:
        """Workflows that have ended."""
        return len(self.workflows)


def started(fleet: Fleet, source: Source, policy: str = "hexgen", alpha: float = 0.3) -> Driven:
    """A live state at time 0."""
    return Driven(start(fleet, source, policy, alpha, 1.0))


def driven(fleet: Fleet, source: Source, end_s: float, policy: str = "hexgen", seed: int = 1) -> Driven:
    """A live state moved to `end_s` in steps of chance, through a checkpoint now and then."""
    rng, engine, now_s = random.Random(seed), started(fleet, source, policy), 0.0
    while now_s < end_s:
        now_s = min(end_s, now_s + rng.choice(STEPS_S))
        engine.run(now_s)
        if rng.random() < 0.05:
            engine.stop_and_go_on()
    return engine


def placements(decisions: list[Row], before_s: float) -> dict[int, tuple[Any, ...]]:
    """Last placement of each call before a time: when, where, score, runner-up."""
    return {
        row["call"]: (row["sim_s"], row["instance"], row["score"], row["runner_up"], row["t_comp_s"])
        for row in decisions
        if row["sim_s"] < before_s
    }


def twin_placements(work: Workload, fleet: Fleet, policy: str, before_s: float) -> dict[int, tuple[Any, ...]]:
    """The same of the twin's run of `work`."""
    names = [spec.name for spec in fleet.instances]
    calls = simulate(work, fleet, policy, 0.3).calls
    calls = calls[(calls["placed_s"] >= 0) & (calls["placed_s"] < before_s)]
    return {
        int(row["uid"]): (
            float(row["placed_s"]),
            names[int(row["instance"])],
            float(row["score"]),
            names[int(row["runner_up"])] if row["runner_up"] >= 0 else None,
            float(row["t_comp_s"]),
        )
        for row in calls
    }


def ends(workflows: list[Row], before_s: float) -> dict[int, tuple[float, str, float]]:
    """When each workflow ended, how, and its joules."""
    return {
        row["id"]: (row["finished_sim_s"], row["state"], row["energy_j"])
        for row in workflows
        if row["finished_sim_s"] < before_s
    }


def twin_ends(work: Workload, fleet: Fleet, policy: str, before_s: float) -> dict[int, tuple[float, str, float]]:
    """The same of the twin's run of `work`."""
    world = simulate(work, fleet, policy, 0.3)
    rows = world.workflows[(world.workflows["finished_s"] < before_s)]
    words = {DONE: "completed", BROKEN: "refused"}
    return {
        int(row["id"]): (
            float(row["finished_s"]),
            words[int(row["state"])],
            float(world.calls["energy_j"][row["first_call"] : row["first_call"] + row["n_calls"]].sum()),
        )
        for row in rows
    }


def ledgers(workflows: list[Row], before_s: float) -> dict[int, list[float]]:
    """Plan and debts by cause of each workflow that ended before a time, s."""
    return {row["id"]: [row["plan_s"], *row["ledger"]] for row in workflows if row["finished_sim_s"] < before_s}


def twin_ledgers(work: Workload, fleet: Fleet, policy: str, before_s: float) -> dict[int, list[float]]:
    """The same of the twin's run of `work`."""
    world = simulate(work, fleet, policy, 0.3)
    plans, debts = planned_s(world.workflows).sum(axis=1), debts_s(world.workflows, world.calls)
    rows = np.flatnonzero(world.workflows["finished_s"] < before_s)
    return {int(world.workflows[w]["id"]): [float(plans[w]), *map(float, debts[w])] for w in rows}


def check_live(world: World) -> None:
    """The laws of a repacked world: all of them but the sums over calls that it has forgotten."""
    states = world.calls["state"]
    assert world.instances["n_waiting"].sum() == (states == WAITING).sum()
    assert world.instances["n_running"].sum() == np.isin(states, (PREFILL, DECODE)).sum()
    for i in range(len(world.instances)):
        for check in BY_INSTANCE:
            check(world, i)
    laws.check_pool(world)
    laws.check_causality(world)
    laws.check_phases(world)
    laws.check_ledger(world)
    booked_j = world.calls["energy_j"].sum() + world.instances["idle_j"].sum()
    assert booked_j <= world.instances["energy_j"].sum() * (1.0 + 1e-9)
