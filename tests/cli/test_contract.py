"""What other tools rely on: one JSON object on stdout with these fields, the same for the same seed."""

import csv
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from numba.core.caching import _CacheLocator

from control.tuning.warmup import is_all_warm
from control.twin import kernel
from tests.cli.conftest import Headway
from tests.support.running import object_of

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
SIM_FIELDS = {
    "policy",
    "alpha",
    "form",
    "aging_s",
    "seed",
    "workflows",
    "calls",
    "completed",
    "p50_s",
    "p95_s",
    "p99_s",
    "mean_s",
    "refused",
    "throughput_wps",
    "slo_attainment",
    "slo_debt_s",
    "ttft_p95_s",
    "ttfet_p95_s",
    "tbt_p95_s",
    "tokens_per_joule",
    "tokens_per_joule_idle_billed",
    "energy_j",
    "preemptions",
    "kv_peak_fraction",
    "per_instance",
    "wall_s",
    "cpu_s",
    "events",
}
POLICIES = ("--policies", "rr-fcfs,rr-pq,hexgen")
TITLE = "text2sql on demo-mixed, policy hexgen, alpha 0.3, artifact form, aging 0.5 s"
COUNTS = {
    "azure_conv_2023.csv": (19_366, 19_366),
    "mooncake_synthetic.jsonl": (3_993, 3_993),
    "hexgen_t1.csv": (90, 1_732),
    "conserve_swebench.csv": (255, 2_526),
    "claude_code/requests.csv": (350, 21_850),
}


def json_of(headway: Headway, *arguments: object) -> dict[str, Any]:
    """The object a command prints; nothing else comes with it."""
    code, out, err = headway(*arguments)
    assert code == 0, err
    assert out.count("\n") == 1
    return object_of(out)


def test_sim_holds_its_fields(headway: Headway) -> None:
    run = json_of(headway, "sim", "--json", "--trace", "demo-mixed", "--workflows", 60, "--alpha", 0.3, "--seed", 4)
    assert set(run) >= SIM_FIELDS
    assert (run["policy"], run["alpha"], run["seed"], run["workflows"]) == ("hexgen", 0.3, 4, 60)
    assert (run["form"], run["aging_s"]) == ("paper", None)
    assert run["completed"] + run["refused"] + run["cancelled"] == run["calls"]
    assert len(run["per_instance"]) == 8
    assert sum(entry["finished"] for entry in run["per_instance"]) == run["completed"]
    assert run["p50_s"] <= run["p95_s"] <= run["p99_s"]
    assert 0.0 <= run["slo_attainment"] <= 1.0
    assert run["tokens_per_joule"] >= run["tokens_per_joule_idle_billed"] > 0.0


@pytest.mark.parametrize("policy", ["hexgen", "p2c", "rr-pq"])
def test_same_seed_same_bytes(headway: Headway, policy: str) -> None:
    arguments = ("sim", "--json", "--trace", "agents", "--workflows", 40, "--rate", 1, "--policy", policy)
    first, second, other = (
        {
            key: value
            for key, value in json_of(headway, *arguments, "--seed", seed).items()
            if key not in ("wall_s", "cpu_s")
        }
        for seed in (1, 1, 2)
    )
    assert first == second
    assert list(first) == list(second)
    assert first != other


def test_compare_holds_runs_and_ratios(headway: Headway) -> None:
    arguments = ("--trace", "text2sql", "--workflows", 50, "--rate", 1, "--policies", "rr-fcfs,hexgen", "--seeds", 2)
    both = json_of(headway, "compare", "--json", *arguments)
    runs, ratios = both["runs"], both["ratios"]
    assert [(run["policy"], run["seed"]) for run in runs] == [
        (policy, seed) for seed in (0, 1) for policy in ("rr-fcfs", "hexgen")
    ]
    assert all(set(run) >= SIM_FIELDS for run in runs)
    assert ratios["rr-fcfs"]["p95_gain"] == ratios["rr-fcfs"]["throughput_gain"] == 1.0
    p95_s = {policy: [run["p95_s"] for run in runs if run["policy"] == policy] for policy in ratios}
    assert ratios["hexgen"]["p95_gain"] == pytest.approx(sum(p95_s["rr-fcfs"]) / sum(p95_s["hexgen"]))
    alone = json_of(headway, "sim", "--json", "--policy", "hexgen", "--seed", 1, *arguments[:6])
    assert alone["p95_s"] == runs[3]["p95_s"]


def test_form_and_aging_reach_the_policies_they_are_about(headway: Headway) -> None:
    """The artifact's form moves calls of hexgen alone; aging moves calls of every least-laxity queue."""
    load = ("--trace", "text2sql", "--workflows", 60, "--rate", 2, "--alpha", 0.3)
    rules = ((), ("--aging", "inf"), ("--form", "artifact"), ("--aging", 0.5))
    usual, off, artifact, aged = (
        [run["p95_s"] for run in json_of(headway, "compare", "--json", *load, *POLICIES, *rule)["runs"]]
        for rule in rules
    )
    assert usual == off
    assert [a == b for a, b in zip(usual, artifact, strict=True)] == [True, True, False]
    assert [a == b for a, b in zip(usual, aged, strict=True)] == [True, False, False]
    alone = json_of(headway, "sim", "--json", *load, "--policy", "hexgen", "--form", "artifact", "--aging", 0.5)
    assert (alone["form"], alone["aging_s"]) == ("artifact", 0.5)
    code, out, _ = headway("sim", *load, "--form", "artifact", "--aging", 0.5)
    assert (code, out.splitlines()[0]) == (0, TITLE)


def rows_of(path: Path, key: str | None) -> tuple[int, int]:
    """Workflows and calls by Python's own CSV reader."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return len({row[key] for row in rows}) if key else len(rows), len(rows)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_a_recorded_trace(headway: Headway, name: str) -> None:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    facts = json_of(headway, "trace", "describe", path, "--json")
    assert {"format", "workflows", "calls", "input_tokens", "output_tokens", "span_s", "problems"} <= set(facts)
    assert (facts["workflows"], facts["calls"]) == COUNTS[name]
    if name == "hexgen_t1.csv":
        assert rows_of(path, "workflow") == COUNTS[name]
    if name == "azure_conv_2023.csv":
        assert rows_of(path, None) == COUNTS[name]
    run = json_of(headway, "sim", "--json", "--trace", path)
    assert (run["workflows"], run["calls"]) == COUNTS[name]
    assert run["completed"] + run["refused"] + run["cancelled"] == run["calls"]


def test_generated_and_imported_traces_simulate_alike(headway: Headway, tmp_path: Path) -> None:
    made = json_of(headway, "trace", "generate", "text2sql", "--n", 30, "--rate", 1, "--out", "a.jsonl", "--json")
    assert (made["workflows"], made["path"]) == (30, "a.jsonl")
    again = json_of(headway, "trace", "import", "a.jsonl", "--out", "b.jsonl", "--json")
    assert again["calls"] == made["calls"]
    figures = [json_of(headway, "sim", "--json", "--trace", name)["p95_s"] for name in ("a.jsonl", "b.jsonl")]
    assert figures[0] == figures[1]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl"]
    assert headway("trace", "generate", "text2sql", "--n", 5, "--out", "a.jsonl", "--force")[0] == 0


def test_doctor_and_warm(headway: Headway) -> None:
    found = json_of(headway, "doctor", "--json")
    assert found["ok"] is True
    assert {"Python", "numba", "kernels", "store", "disk", "GPUs"} <= {check["name"] for check in found["checks"]}
    assert {"was_warm", "took_s", "cache"} <= set(json_of(headway, "warm", "--json"))
    assert is_all_warm()
    assert json_of(headway, "warm", "--json")["was_warm"] is True


def test_warm_compiles_the_replay_too_and_says_that_it_does(
    headway: Headway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that holds the twin alone is not warm: the command says that it compiles."""
    monkeypatch.setattr("control.jit.cache_folder", lambda: tmp_path / "kernels")
    kernels = tmp_path / "kernels" / _CacheLocator.get_suitable_cache_subpath(kernel.__file__)  # this checkout's
    kernels.mkdir(parents=True)
    monkeypatch.setattr("control.cli.precompile.cores", lambda: 1)
    for name in ("phases.advance_meters-1.nbi", "kernel.advance-1.nbi", "acts.act-1.nbi"):
        assert headway("warm") == (0, ANY, "compiling the simulator (once; a minute or two) ...\n")
        (kernels / name).touch()
    (kernels / "artifact.replay-1.nbi").touch()
    assert headway("warm") == (0, ANY, "")


def test_doctor_says_what_is_broken(headway: Headway, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"no database at all" * 100)
    code, out, err = headway("doctor", "--db", "bad.db")
    assert (code, err) == (1, "")
    assert "BAD  store: bad.db: file is not a database" in out


def test_figures_for_people_have_their_units(headway: Headway) -> None:
    code, out, err = headway("sim", "--trace", "text2sql", "--workflows", 20)
    assert (code, err) == (0, "")
    for unit in (" s\n", " %\n", "workflows/s", "kJ", "tok/J"):
        assert unit in out


@pytest.mark.parametrize(
    "policy", ["conserve", "ampd", "collocated", "full-disagg", "session-affinity", "prefix-affinity"]
)
def test_every_conversation_policy_runs_on_two_tiers(headway: Headway, policy: str) -> None:
    fleet = ("--fleet", "conserve-a40", "--trace", "agents", "--workflows", "10", "--rate", "0.2")
    code, out, _ = headway("sim", *fleet, "--policy", policy, "--need", "oracle", "--idle-ttl", "30", "--json")
    run = object_of(out)
    assert code == 0
    assert run["completed"] + run["refused"] + run["cancelled"] == run["calls"]
    assert (run["need"], run["idle_ttl_s"]) == ("oracle", 30.0)
    assert (run["kv_transfers"] > 0) == (policy in ("conserve", "ampd", "full-disagg"))
    assert run.get("error") == (10.0 if policy == "ampd" else None)


@pytest.mark.parametrize(
    ("option", "value", "accepted"),
    [
        ("--need", "guessed", "need = 'guessed': expected one of observed, oracle"),
        ("--router", "best", "router = 'best': expected one of injected, slack"),
        ("--error", "101", "error = 1.01: expected a share from 0 to 1"),
        ("--error", "nan", "error = nan: expected a share from 0 to 1"),
        ("--idle-ttl", "0", "idle_ttl_s = 0.0: expected a number of seconds > 0"),
        ("--idle-ttl", "nan", "idle_ttl_s = nan: expected a number of seconds > 0"),
    ],
)
def test_settings_of_conversations_out_of_bounds_are_refused(
    headway: Headway, option: str, value: str, accepted: str
) -> None:
    code, out, err = headway("sim", "--trace", "agents", "--policy", "ampd", option, value)
    assert (code, out) == (2, "")
    assert accepted in err
    assert err.count("\n") == 1
