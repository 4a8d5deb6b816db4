"""Calibrated profiles: what a file says is what an instance costs, and a wrong file is answered in one line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from control.errors import CatalogueError, FleetError, SettingError
from control.model.calibrated import Calibrated, Power, as_fields, as_profile, read_profile, write_profile
from control.model.costs import cost_table
from control.model.fleet import capacity, load_fleet, profile_of
from control.model.hardware import adopt, drop, profile
from control.model.names import find_gpu, find_model
from control.model.profile import Curve, DecodeLine, MixedCost

LIMITS = {"kv_tokens": 4096, "block_size": 16, "max_num_seqs": 8, "max_num_batched_tokens": 512, "max_model_len": 2048}
SMALL = Calibrated(
    gpu="cpu-small",
    model="tiny-llama",
    decode=DecodeLine(Curve((0.0, 1.0), (20.0, 22.5)), 0.01),
    mixed=MixedCost(Curve((0.0, 1.0), (18.0, 18.5)), 1e-5, kv_ms=0.012, seq_ms=0.3, ctx_ms=0.001),
    engine_version="0.19.0",
    date="2026-01-02T03:04:05Z",
    limits=LIMITS,
    fit={"decode": {"points": 9, "mean_error": 0.02, "p95_error": 0.04}},
    intervals={"a0_ms": [19.0, 21.0]},
)


def test_a_file_holds_all_that_was_measured(tmp_path: Path) -> None:
    path = str(tmp_path / "small.json")
    write_profile(SMALL, path)
    assert read_profile(path) == SMALL
    bent = replace(
        SMALL, decode=DecodeLine(Curve((0.0, 4.0, 8.0), (20.0, 24.0, 32.0)), 0.0), power=Power(70, 9, 30, 60, 68)
    )
    write_profile(bent, path)
    assert read_profile(path) == bent
    assert not list(tmp_path.glob("*.part"))


def test_a_fleet_takes_from_the_file_what_it_does_not_say(tmp_path: Path) -> None:
    write_profile(SMALL, str(tmp_path / "small.json"))
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[instance]]\nprofile = "small.json"\ncount = 2\nmax_num_seqs = 4\n')
    first, second = load_fleet(str(fleet)).instances
    assert (first.name, second.name) == ("cpu-small-0", "cpu-small-1")
    assert (first.gpu, first.model, first.max_num_seqs, first.max_num_batched_tokens) == (
        "cpu-small",
        "tiny-llama",
        4,
        512,
    )
    assert first.host_overhead_ms == 0.0  # measured with the rest
    assert capacity(first) == (4096, 2048)
    costs = profile_of(first)
    assert (costs.provenance, costs.source) == ("calibrated", f"calibrated: {tmp_path / 'small.json'}")
    table = cost_table(costs, 8, 512)
    assert table.decode_ms[0, 4] == pytest.approx(30.0)
    assert table.mix_ms[100] == pytest.approx(68.0)


def test_what_a_request_costs_outside_the_iterations_comes_with_its_prefill() -> None:
    table = cost_table(as_profile(replace(SMALL, fit={"request_ms": 7.0}), "test"), 8, 512)
    assert table.mix_ms[100] == pytest.approx(68.0 + 7.0)
    assert table.decode_ms[0, 4] == pytest.approx(30.0)


def test_a_gpu_of_unknown_power_counts_nothing_and_takes_no_cap(tmp_path: Path) -> None:
    costs = as_profile(SMALL, "test")
    table = cost_table(costs, 8, 512)
    assert (table.idle_w, table.prefill_w, table.power_w.max()) == (0.0, 0.0, 0.0)
    with pytest.raises(SettingError, match="the power of a cpu-small is not known"):
        cost_table(costs, 8, 512, 50.0)
    write_profile(SMALL, str(tmp_path / "small.json"))
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[instance]]\nprofile = "small.json"\npower_cap_w = 50\n')
    with pytest.raises(FleetError, match="the power of a cpu-small is not known"):
        load_fleet(str(fleet))


def test_measured_power_is_used_and_a_known_gpu_falls_back_to_the_catalogue() -> None:
    metered = as_profile(replace(SMALL, power=Power(100.0, 10.0, 40.0, 80.0, 95.0)), "test")
    table = cost_table(metered, 256, 512)
    assert (table.idle_w, table.prefill_w) == (10.0, 95.0)
    assert (table.power_w[1], table.power_w[256]) == (pytest.approx(40.0), pytest.approx(80.0))
    known = as_profile(replace(SMALL, gpu="H100", model="Llama-3.1-8B"), "test")
    assert known.tdp_w == 700.0
    assert known.kv_bytes_per_token == 131_072


def test_an_adopted_profile_goes_before_the_catalogue() -> None:
    mine = as_profile(replace(SMALL, gpu="H100", model="Llama-3.1-8B"), "test")
    adopt(mine)
    try:
        assert profile("H100", "Llama-3.1-8B") is mine
        assert profile("H100", "Llama-3.1-8B", 2).provenance != "calibrated"
    finally:
        drop(mine)
    assert profile("H100", "Llama-3.1-8B").provenance == "fitted"


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"headway_profile": 2}, "headway_profile = 2: version 1 is accepted"),
    ({"gpu": "two words"}, "gpu = 'two words': 1 to 32 letters"),
    ({"model": ""}, "model = '': a non-empty string"),
    ({"decode": {"a0_ms": -1.0, "a1_ms": 0.0, "a2_ms": 0.0}}, "decode: a0_ms = -1.0: a finite number from 0"),
    ({"decode": {"a0_ms": 1.0, "a2_ms": 0.0}}, "decode: a1_ms is missing"),
    ({"mixed": {"knots": [0, 8], "ms": [1.0]}}, "mixed: ms = .*two or more ascending numbers"),
    ({"mixed": 3}, "mixed: 3: a JSON object"),
    ({"limits": {"kv_tokens": 0}}, "limits: kv_tokens = 0: a whole number from 1"),
    ({"power": {"tdp_w": 0}}, "power: idle_w is missing"),
]


@pytest.mark.parametrize(("change", "what"), BROKEN)
def test_a_wrong_file_is_answered_by_name(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(as_fields(SMALL) | change))
    with pytest.raises(CatalogueError, match=what):
        read_profile(str(path))


def test_a_fleet_names_the_profile_that_it_cannot_read(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[instance]]\nprofile = "gone.json"\n')
    with pytest.raises(FleetError, match=r"fleet.toml: instance 1: profile: .*gone.json: cannot be read"):
        load_fleet(str(fleet))
    (tmp_path / "text.json").write_text("no json")
    fleet.write_text('[[instance]]\nprofile = "text.json"\n')
    with pytest.raises(FleetError, match="not JSON"):
        load_fleet(str(fleet))
    fleet.write_text("[[instance]]\nprofile = 3\n")
    with pytest.raises(FleetError, match="profile = 3: the file of a calibrated profile is accepted"):
        load_fleet(str(fleet))


@pytest.mark.parametrize(
    ("name", "memory_gib", "key"),
    [
        ("NVIDIA H100 80GB HBM3", None, "H100"),
        ("H100", 63.7, "H100-64GB"),
        ("NVIDIA RTX A6000", None, "A6000"),
        ("NVIDIA A100-SXM4-80GB", 80.0, "A100"),
        ("Radeon", None, None),
        ("", None, None),
    ],
)
def test_gpus_are_known_by_what_drivers_call_them(name: str, memory_gib: float | None, key: str | None) -> None:
    assert find_gpu(name, memory_gib) == key


def test_models_are_known_by_their_repositories() -> None:
    assert find_model("meta-llama/Meta-Llama-3.1-8B-Instruct") == "Llama-3.1-8B"
    assert find_model("Qwen/Qwen3-30B-A3B") == "Qwen3-30B-A3B"
    assert find_model("gpt-5") is None
