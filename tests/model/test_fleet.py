"""Fleets: what is built in, and how a wrong file is answered."""

from collections import Counter
from pathlib import Path

import pytest

from control.errors import FleetError
from control.model.fleet import InstanceSpec, capacity, fleet_names, load_fleet, parse_fleet

ONE = '[[instance]]\ngpu = "H100"\nmodel = "Llama-3.1-8B"\n'


def gpus(name: str) -> list[str]:
    return [spec.gpu for spec in load_fleet(name).instances]


def test_the_papers_fleets_are_built_in() -> None:
    assert gpus("hexgen-hetero-1") == ["A100", "A100", "A6000", "L40S"]
    assert gpus("hexgen-hetero-2") == ["A100", "A6000", "A100", "A6000"]
    assert gpus("hexgen-homo") == ["A100"] * 4
    assert Counter(gpus("demo-mixed")) == {"H100": 2, "A100": 2, "L40S": 2, "RTX4090": 1, "L4": 1}
    assert [spec.role for spec in load_fleet("conserve-a40").instances] == ["prefill"] + ["decode"] * 3


@pytest.mark.parametrize("name", fleet_names())
def test_every_built_in_fleet_loads_and_can_hold_its_context(name: str) -> None:
    fleet = load_fleet(name)
    assert fleet.name == name
    for spec in fleet.instances:
        kv_tokens, longest = capacity(spec)
        assert 0 < longest <= kv_tokens


def test_hexgen_instances_hold_the_kv_blocks_of_their_simulator() -> None:
    capacities = [capacity(spec)[0] for spec in load_fleet("hexgen-hetero-1").instances]
    assert capacities == [3603 * 16, 3603 * 16, 9707 * 16, 9707 * 16]


def test_numbers_go_on_across_tables_of_the_same_gpu() -> None:
    assert [spec.name for spec in load_fleet("hexgen-hetero-2").instances] == [
        "a100-0",
        "a6000-0",
        "a100-1",
        "a6000-1",
    ]


def test_a_name_is_a_prefix_with_count_and_the_whole_name_without() -> None:
    text = ONE + 'name = "front"\n' + ONE + 'name = "back"\ncount = 2\n'
    assert [spec.name for spec in parse_fleet(text, "f.toml").instances] == ["front", "back-0", "back-1"]


def test_a_fleet_file_sets_any_engine_setting(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n' + ONE + "count = 2\nhost_overhead_ms = 2\npower_cap_w = 500\n")
    fleet = load_fleet(str(path))
    assert (fleet.name, len(fleet.instances)) == ("mine", 2)
    assert isinstance(fleet.instances[0].host_overhead_ms, float)
    assert fleet.instances[1].power_cap_w == 500.0


def test_context_limit_is_the_models_cut_to_the_kv_capacity() -> None:
    small = InstanceSpec("x", "RTX4090", "Llama-3.1-8B")
    assert capacity(small)[0] == capacity(small)[1] < 131_072
    assert capacity(InstanceSpec("x", "H100", "Llama-3.1-8B"))[1] == 131_072


WRONG = {
    "unknown key": (ONE + "max_seqs = 3\n", ("instance 1", "'max_seqs'", "did you mean max_num_seqs?")),
    "unknown top key": ("fleet = 1\n" + ONE, ("'fleet'", "name, instance")),
    "unknown gpu": (ONE.replace("H100", "H1000"), ("gpu = 'H1000'", "did you mean H100?", "RTXPRO6000")),
    "unknown model": (ONE.replace("3.1-8B", "3-8B"), ("model = 'Llama-3-8B'", "Qwen3-0.6B")),
    "gpu of wrong type": (ONE.replace('"H100"', "100"), ("gpu = 100", "H100")),
    "no gpu": ('[[instance]]\nmodel = "Llama-3.1-8B"\n', ("gpu is missing", "H100")),
    "count too small": (ONE + "count = 0\n", ("count = 0", "1 to 1024")),
    "count too large": (ONE + "count = 1025\n", ("count = 1025", "1 to 1024")),
    "count true": (ONE + "count = true\n", ("count = True", "whole number")),
    "fraction": (ONE + "max_num_seqs = 1.5\n", ("max_num_seqs = 1.5", "whole number")),
    "nan": (ONE + "host_overhead_ms = nan\n", ("host_overhead_ms = nan", "0 to 1000")),
    "text for number": (ONE + 'watermark = "1%"\n', ("watermark = '1%'", "0 to 0.5")),
    "text for truth": (ONE + 'prefix_caching = "on"\n', ("prefix_caching = 'on'", "true or false")),
    "role": (ONE + 'role = "decoder"\n', ("role = 'decoder'", "did you mean decode?")),
    "empty name": (ONE + 'name = " "\n', ("name = ' '",)),
    "fleet name": ("name = 3\n" + ONE, ("name = 3",)),
    "no instance": ('name = "x"\n', ("empty", "[[instance]]")),
    "instance is no table": ("instance = 3\n", ("[[instance]]",)),
    "same name twice": (ONE + 'name = "a"\n' + ONE + 'name = "a"\n', ("name = 'a'", "two instances")),
    "too large": (ONE.replace("8B", "70B"), ("instance 1", "133.4 GiB", "kv_tokens")),
    "less KV than a block": (ONE + "kv_tokens = 8\n", ("kv_tokens = 8", "16")),
    "cap": (ONE + "power_cap_w = 900\n", ("power_cap_w = 900", "245 to 700 W")),
    "not TOML": ("name = \n", ("not valid TOML", "line 1")),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_answered_in_one_line(case: str) -> None:
    text, words = WRONG[case]
    with pytest.raises(FleetError) as caught:
        parse_fleet(text, "my.toml")
    message = str(caught.value)
    assert message.startswith("my.toml: ")
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_a_missing_file_and_an_unknown_name_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"gone\.toml: cannot be read: No such file"):
        load_fleet(str(tmp_path / "gone.toml"))
    with pytest.raises(FleetError, match=r"did you mean hexgen-homo\?.*demo-mixed"):
        load_fleet("hexgen-hom")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FleetError, match="not UTF-8"):
        load_fleet(str(path))
