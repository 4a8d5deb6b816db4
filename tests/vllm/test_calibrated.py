"""Measured profiles of two real servers: what they state and predict, and the race that the scheduler wins by them."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from control.model.fleet import load_fleet, profile_of
from tests.vllm.conftest import Pair
from tests.vllm.race import Race, options
from tests.vllm.servers import BLOCK_TOKENS, CONTEXT_TOKENS, SEATS
from tests.vllm.stack import write_fleet

pytestmark = pytest.mark.vllm

BUDGET_S = 30.0
DURATION_S = 25.0
#: What a busy machine may add: the long figures, with tight bounds, are taken by race.py on a quiet one.
FACTOR = 2.5


@pytest.fixture(scope="module")
def learned() -> dict[str, Any]:
    """Kept between the tests: the folder of the profiles, and what was said of them."""
    return {}


@pytest.fixture
def race(pair: Pair, learned: dict[str, Any], logs: Path, tmp_path: Path) -> Race:
    """A race over the pair, whose servers are measured once."""
    mine = {"duration": DURATION_S, "load": 0.5, "budget_s": BUDGET_S, "profiles": str(logs / "profiles")}
    found = Race(tmp_path, pair, argparse.Namespace(**vars(options([])) | mine))
    learned.setdefault("told", found.learn())
    found.learn()
    return found


def test_the_profiles_tell_the_two_servers_apart(race: Race, learned: dict[str, Any], tmp_path: Path) -> None:
    for told in learned["told"].values():
        assert told["fit"]["all"]["mean_error"] < 0.25
        assert told["points"] > 10
    fleet = load_fleet(str(write_fleet(tmp_path / "fleet.toml", race.servers, race.profiles)))
    small, med = (profile_of(spec) for spec in fleet.instances)
    assert small.provenance == med.provenance == "calibrated"
    assert float(small.decode[0].base.at(1)) < float(med.decode[0].base.at(1))
    for spec in fleet.instances:
        assert (spec.block_size, spec.max_num_seqs, spec.max_model_len) == (BLOCK_TOKENS, SEATS, CONTEXT_TOKENS)
        assert spec.host_overhead_ms == 0.0


def test_the_scheduler_that_knows_the_speeds_beats_the_one_that_takes_turns(race: Race) -> None:
    race.choose_rate()
    hexgen, taking_turns = (race.run(policy, 1, DURATION_S) for policy in race.policies)
    assert hexgen["failures"] == {}
    assert hexgen["workflows"]["done"] == hexgen["workflows"]["planned"] > 5
    assert 1.0 / FACTOR < hexgen["predicted"]["mean_s"] / hexgen["mean_s"] < FACTOR
    assert hexgen["p95_s"] < taking_turns["p95_s"]
    for name, row in hexgen["observed"].items():
        assert row["compared"] >= 3, name
        for kind in ("ttft_s", "tpot_s"):
            assert 1.0 / FACTOR < row[f"predicted_{kind}"] / row[kind] < FACTOR, (name, kind)
