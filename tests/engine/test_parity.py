"""The engine, moved in steps, repacked and restarted, does exactly what `headway sim` says of the same arrivals."""

from pathlib import Path

import numpy as np
import pytest

from control.engine.source import Source
from control.model.fleet import Fleet
from control.model.workload import Workload
from control.workload.arrivals import arrange
from control.workload.build import dense_streams, merge
from control.workload.generate import generate
from control.workload.load import load_trace
from control.workload.scenarios import scenario, window
from tests.support.live import (
    check_live,
    driven,
    ends,
    ledgers,
    placements,
    started,
    twin_ends,
    twin_ledgers,
    twin_placements,
)

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
TRACES = {"hexgen_t1.csv": 400.0, "conserve_swebench.csv": 500.0, "mooncake_synthetic.jsonl": 600.0}


def check_parity(fleet: Fleet, source: Source, work: Workload, end_s: float, policy: str = "hexgen") -> None:
    """Placements, times, scores, ends and joules up to `end_s` are those of the twin, to the bit."""
    engine = driven(fleet, source, end_s, policy)
    assert placements(engine.decisions, end_s) == twin_placements(work, fleet, policy, end_s)
    found, expected = ends(engine.workflows, end_s), twin_ends(work, fleet, policy, end_s)
    assert {key: row[:2] for key, row in found.items()} == {key: row[:2] for key, row in expected.items()}
    assert len(found) == len(engine.workflows)
    joules = [(found[key][2], expected[key][2]) for key in found]
    assert np.allclose(*zip(*joules, strict=True), rtol=1e-12)
    mine, twins = ledgers(engine.workflows, end_s), twin_ledgers(work, fleet, policy, end_s)
    assert mine.keys() == twins.keys()
    assert np.allclose([mine[key] for key in mine], [twins[key] for key in mine], rtol=0.0, atol=2e-6)
    check_live(engine.live.world)


@pytest.mark.parametrize("policy", ["hexgen", "p2c", "rr-pq", "vtc", "qlm", "plas"])
def test_generated_text_to_sql_runs_as_simulated(demo_fleet: Fleet, policy: str) -> None:
    work = generate("text2sql", 300, 3, 1.2)
    check_parity(demo_fleet, Source("t", 3, trace=work), work, 320.0, policy)


def test_conversations_find_their_caches_as_simulated(demo_fleet: Fleet) -> None:
    work = generate("agents", 120, 5, 0.4)
    assert (work.calls["stream"] >= 0).any()
    check_parity(demo_fleet, Source("t", 5, trace=work), work, 600.0, "hexgen")


def test_scenario_runs_as_its_windows_simulated_in_one(demo_fleet: Fleet, demo_source: Source) -> None:
    known = scenario("demo-mixed")
    windows = [window(known, 0, index) for index in range(10)]
    work = dense_streams(merge(windows, "demo", one_prompt_set=True))
    check_parity(demo_fleet, demo_source, work, 540.0)


@pytest.mark.parametrize("name", TRACES)
def test_recorded_trace_runs_as_simulated(demo_fleet: Fleet, name: str) -> None:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    work = arrange(load_trace(str(path)), rate=None if name.startswith("moon") else 1.0, seed=2)
    check_parity(demo_fleet, Source(name, 2, trace=work), work, TRACES[name])


def test_trace_ends_finished_and_lawful(demo_fleet: Fleet) -> None:
    work = generate("text2sql", 60, 1, 1.0)
    engine = driven(demo_fleet, Source("t", 1, trace=work), 400.0)
    assert engine.live.is_finished
    assert engine.ended == 60
    check_live(engine.live.world)


@pytest.mark.slow
def test_world_stays_small_however_long_it_runs(demo_fleet: Fleet, demo_source: Source) -> None:
    engine = started(demo_fleet, demo_source)
    sizes = []
    for minute in range(1, 76):
        engine.run(60.0 * minute)
        sizes.append((len(engine.live.world.calls), engine.live.world.slots.shape[1], len(engine.live.streams)))
    early, late = np.array(sizes[15:40]).max(axis=0), np.array(sizes[50:]).max(axis=0)
    assert (late <= 2 * early).all()
    assert len({row["id"] for row in engine.workflows}) == engine.ended
