"""Commands: what each does, and the reason each refusal gives."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from control.engine.orders import ORDERS, Outcome, obey
from control.engine.source import Source
from control.model.fleet import Fleet
from control.policy.codes import ACTIVE, DOWN, DRAINING, UP
from control.workload.generate import generate
from tests.support.live import Driven, check_live, started


def ask(engine: Driven, kind: str, payload: Any = None, expected: Any = None) -> Outcome:
    """Give one command; the journal is drained as the engine does."""
    outcome = obey(engine.live, {"kind": kind, "payload": {} if payload is None else payload, "expected": expected})
    engine.note()
    return outcome


APPLIED = [
    ("alpha", {"alpha": 0.75}, None, "α 0.30 → 0.75"),
    ("alpha", {"alpha": 0}, 0.3, "α 0.30 → 0.00"),
    ("alpha", {"alpha": 1.0}, 0.3 + 1e-12, "α 0.30 → 1.00"),
    ("alpha", {"alpha": 0.5}, {"alpha": 0.3}, "α 0.30 → 0.50"),
    ("policy", {"policy": "rr-fcfs"}, "hexgen", "policy hexgen → rr-fcfs"),
    ("pause", {}, None, "paused"),
    ("speed", {"speed": 60.0}, 1.0, "speed ×1 → ×60"),
    ("speed", {"speed": 0.1}, None, "speed ×1 → ×0.1"),
    ("load_scale", {"load_scale": 3.0}, 1.0, "load ×1 → ×3"),
    ("load_scale", {"load_scale": 0}, None, "load ×1 → ×0"),
    ("drain", {"instance": "h100-0"}, "up", "drain h100-0"),
]


@pytest.mark.parametrize(("kind", "payload", "expected", "text"), APPLIED)
def test_applied(demo: Driven, kind: str, payload: Any, expected: Any, text: str) -> None:
    outcome = ask(demo, kind, payload, expected)
    assert outcome.applied
    assert outcome.reason == ""
    assert outcome.event is not None
    assert outcome.event["text"] == text
    assert outcome.event["kind"] == kind
    demo.run(150.0)
    check_live(demo.live.world)


BOUNDS = {"alpha": "0 to 1", "speed": "0.1 to 60", "load_scale": "0 to 3", "step": "0.001 to 3600"}
NO_NUMBERS = (math.nan, math.inf, -math.inf, -0.01, 1e308, 10**400, True, "0.5", None, [0.5], {"alpha": 0.5})
REFUSED = [
    *((kind, {kind if kind != "step" else "step_s": odd}, None, BOUNDS[kind]) for kind in BOUNDS for odd in NO_NUMBERS),
    *((kind, payload, None, "payload") for kind in BOUNDS for payload in ({}, {"other": 1}, [], "x", 5)),
    ("alpha", {"alpha": 0.5}, 0.4, "it is 0.3 now, not 0.4"),
    ("alpha", {"alpha": 0.5}, "hexgen", "it is 0.3 now, not hexgen"),
    ("alpha", {"alpha": 0.5}, [0.3], "it is 0.3 now"),
    ("policy", {"policy": "rr-fcfs"}, "vtc", "it is hexgen now, not vtc"),
    ("policy", {"policy": "nope"}, None, "expected one of hexgen"),
    ("policy", {"policy": 5}, None, "expected one of hexgen"),
    ("policy", {"policy": ["hexgen"]}, None, "expected one of hexgen"),
    ("policy", {}, None, "payload"),
    ("speed", {"speed": 5.0}, 2.0, "it is 1.0 now, not 2.0"),
    ("load_scale", {"load_scale": 2.0}, 0.5, "it is 1.0 now, not 0.5"),
    ("resume", {}, None, "running already"),
    ("step", {"step_s": 10.0}, None, "only a paused engine steps"),
    ("step", {"step_s": 3601.0}, None, "0.001 to 3600"),
    *(
        (kind, {"instance": "b200-0"}, None, "expected one of h100-0")
        for kind in ("drain", "undrain", "kill", "revive")
    ),
    *(
        (kind, {"instance": odd}, None, "expected one of h100-0")
        for kind in ("drain", "kill")
        for odd in (0, None, [], {})
    ),
    ("kill", {}, None, "payload"),
    ("undrain", {"instance": "h100-0"}, None, "h100-0 is up: cannot undrain it"),
    ("revive", {"instance": "h100-0"}, None, "h100-0 is up: cannot revive it"),
    ("drain", {"instance": "h100-0"}, "down", "it is up now, not down"),
    ("retrain", {}, None, "unknown command 'retrain'"),
]


@pytest.mark.parametrize(("kind", "payload", "expected", "reason"), REFUSED)
def test_refused_with_a_reason_and_nothing_changed(
    demo: Driven, kind: str, payload: Any, expected: Any, reason: str
) -> None:
    live, before = demo.live, demo.live.world
    was = (live.alpha, live.policy, live.speed, live.paused, live.load_scale, before.instances.tobytes())
    outcome = ask(demo, kind, payload, expected)
    assert not outcome.applied
    assert outcome.event is None
    assert reason in outcome.reason
    assert "\n" not in outcome.reason
    now = (live.alpha, live.policy, live.speed, live.paused, live.load_scale, live.world.instances.tobytes())
    assert now == was


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        (["drain", "drain"], "is draining: cannot drain it"),
        (["drain", "undrain", "undrain"], "is up: cannot undrain it"),
        (["kill", "kill"], "is down: cannot kill it"),
        (["kill", "drain"], "is down: cannot drain it"),
        (["drain", "kill", "undrain"], "is down: cannot undrain it"),
        (["drain", "revive"], "is draining: cannot revive it"),
    ],
)
def test_instance_states_follow_their_order(demo: Driven, steps: list[str], refused: str) -> None:
    *first, last = steps
    assert all(ask(demo, kind, {"instance": "l4-0"}).applied for kind in first)
    assert refused in ask(demo, last, {"instance": "l4-0"}).reason


def test_every_kind_the_store_takes_is_obeyed() -> None:
    from control.engine.lab import KINDS as FORKS
    from storage.commands import KINDS

    assert set(KINDS) == {*ORDERS, *FORKS, "shadows"}


def test_alpha_shows_in_the_next_decisions(demo: Driven) -> None:
    ask(demo, "alpha", {"alpha": 0.9})
    seen = len(demo.decisions)
    demo.run(140.0)
    assert {row["alpha"] for row in demo.decisions[seen:]} == {0.9}


def test_policy_decides_from_now_on(demo: Driven) -> None:
    ask(demo, "policy", {"policy": "rr-fcfs"})
    seen = len(demo.decisions)
    demo.run(180.0)
    places = [row["instance"] for row in demo.decisions[seen:]]
    assert {row["policy"] for row in demo.decisions[seen:]} == {"rr-fcfs"}
    names = [spec.name for spec in demo.live.fleet.instances]
    turns = [(names.index(b) - names.index(a)) % 8 for a, b in pairwise(places)]
    assert turns.count(1) > 0.95 * len(turns)


def test_a_trace_keeps_its_own_arrivals(demo_fleet: Fleet) -> None:
    engine = started(demo_fleet, Source("t", 0, trace=generate("text2sql", 5, 0, 1.0)))
    assert "replayed trace" in ask(engine, "load_scale", {"load_scale": 2.0}).reason


class TestKill:
    def test_calls_are_placed_anew_elsewhere_and_complete(self, demo: Driven) -> None:
        world = demo.live.world
        i = int(np.argmax(world.instances["n_running"]))
        name = demo.live.fleet.instances[i].name
        on_it = world.calls["uid"][(world.calls["instance"] == i) & np.isin(world.calls["state"], (1, 2, 3))].tolist()
        assert on_it
        seen = len(demo.decisions)
        outcome = ask(demo, "kill", {"instance": name})
        assert outcome.event is not None
        assert outcome.event["text"] == f"{name} lost, {len(on_it)} calls placed anew"
        again = {row["call"]: row["instance"] for row in demo.decisions[seen:]}
        assert set(again) == set(on_it)
        assert name not in again.values()
        involved = {row["workflow"] for row in demo.decisions[seen:]}
        demo.run(900.0)
        states = {row["id"]: row["state"] for row in demo.workflows}
        assert {states[workflow] for workflow in involved} == {"completed"}
        check_live(demo.live.world)

    def test_its_memory_is_gone_and_it_draws_nothing(self, demo: Driven) -> None:
        ask(demo, "kill", {"instance": "a100-0"})
        i = [spec.name for spec in demo.live.fleet.instances].index("a100-0")
        row = demo.live.world.instances[i]
        assert (row["free"], row["n_running"], row["n_waiting"], row["evictable"]) == (row["blocks"], 0, 0, 0)
        assert (demo.live.world.slots[i] == -1).all()
        joules = float(row["energy_j"])
        demo.run(300.0)
        assert demo.live.world.instances[i]["energy_j"] == joules
        ask(demo, "revive", {"instance": "a100-0"})
        seen = len(demo.decisions)
        demo.run(400.0)
        assert "a100-0" in {row["instance"] for row in demo.decisions[seen:]}

    def test_the_whole_fleet_down_refuses_and_recovers(self, demo: Driven) -> None:
        names = [spec.name for spec in demo.live.fleet.instances]
        assert all(ask(demo, "kill", {"instance": name}).applied for name in names)
        demo.run(240.0)
        refused = [row for row in demo.workflows if row["state"] == "refused"]
        assert {row["cause"] for row in refused} == {"no_instance"}
        assert len(refused) > 100
        assert demo.live.rolling.refused >= len(refused)
        check_live(demo.live.world)
        assert all(ask(demo, "revive", {"instance": name}).applied for name in names)
        seen = demo.ended
        demo.run(480.0)
        late = [row for row in demo.workflows[seen:] if row["arrival_sim_s"] > 240.0]
        assert len(late) > 100
        assert {row["state"] for row in late} == {"completed"}
        check_live(demo.live.world)


class TestDrain:
    def test_it_finishes_what_it_has_and_gets_nothing_new(self, demo: Driven) -> None:
        ask(demo, "drain", {"instance": "h100-1"})
        i = [spec.name for spec in demo.live.fleet.instances].index("h100-1")
        had = int(demo.live.world.instances[i]["n_running"] + demo.live.world.instances[i]["n_waiting"])
        finished, seen = int(demo.live.world.instances[i]["finished"]), len(demo.decisions)
        assert had > 0
        demo.run(300.0)
        row = demo.live.world.instances[i]
        assert row["state"] == DRAINING
        assert row["finished"] == finished + had
        assert row["n_running"] + row["n_waiting"] == 0
        assert "h100-1" not in {d["instance"] for d in demo.decisions[seen:]}
        ask(demo, "undrain", {"instance": "h100-1"})
        demo.run(360.0)
        assert row["state"] != DOWN
        assert demo.live.world.instances[i]["state"] == UP
        assert "h100-1" in {d["instance"] for d in demo.decisions[seen:]}


class TestLoad:
    def active(self, engine: Driven) -> dict[int, float]:
        """Arrival time by id of every workflow under way."""
        rows = engine.live.world.workflows
        return {int(r["id"]): float(r["arrival_s"]) for r in rows if r["state"] == ACTIVE}

    def test_what_has_arrived_stays_and_ids_stay_unique(self, demo: Driven) -> None:
        demo.run(130.0)
        before = self.active(demo)
        for scale in (3.0, 0.0, 0.5, 2.0):
            ask(demo, "load_scale", {"load_scale": scale})
            assert self.active(demo) == before
            ids = demo.live.world.workflows["id"]
            assert len(np.unique(ids)) == len(ids)
        demo.run(400.0)
        ids = [row["id"] for row in demo.workflows]
        assert len(set(ids)) == len(ids)
        check_live(demo.live.world)

    def test_more_load_brings_more_and_none_brings_none(self, demo: Driven) -> None:
        counts = {}
        for scale, end_s in ((1.0, 240.0), (3.0, 360.0), (0.0, 480.0)):
            ask(demo, "load_scale", {"load_scale": scale})
            start_s = demo.live.now_s
            demo.run(end_s)
            demo.run(end_s)
            seen = {row["workflow"] for row in demo.decisions if start_s < row["sim_s"]}
            counts[scale] = len([w for w in seen if self.born_s(demo, w) > start_s])
        assert counts[0.0] == 0
        assert counts[3.0] > 2 * counts[1.0] > 100

    def born_s(self, engine: Driven, workflow: int) -> float:
        """When a workflow arrived."""
        found = [row["arrival_sim_s"] for row in engine.workflows if row["id"] == workflow]
        rows = engine.live.world.workflows
        found += rows["arrival_s"][rows["id"] == workflow].tolist()
        return float(found[0])

    def test_conversations_that_go_on_share_no_cache_with_new_ones(self, demo: Driven) -> None:
        for at_s, scale in ((130.0, 0.5), (140.0, 1.0), (150.0, 0.25), (170.0, 3.0)):
            demo.run(at_s)
            ask(demo, "load_scale", {"load_scale": scale})
            calls = demo.live.world.calls
            owners: dict[int, set[int]] = {}
            for key, workflow in zip(calls["stream_key"].tolist(), calls["workflow"].tolist(), strict=True):
                owners.setdefault(key, set()).add(workflow)
            owners.pop(-1)
            assert max(map(len, owners.values())) == 1

    def test_streams_do_not_run_out(self, demo: Driven) -> None:
        demo.live.next_window = 30_000
        demo.live.next_stream = 1_000_000
        demo.live.world.clock[0]["now_s"] = 60.0 * 29_999
        demo.run(60.0 * 30_001)
        assert demo.live.next_window >= 30_002
