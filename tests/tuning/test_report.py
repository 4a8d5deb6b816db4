"""The reproduction report: every policy is in it, losses are told, and the committed document is what it writes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control.cli.rehearse import pair
from control.model.hexgen_profile import linear_fits, read_profile
from control.policy.codes import POLICIES
from control.tuning.report import conserve, conserve_text, hexgen_mixes, hexgen_replays, hexgen_tuner, hexgen_twin
from control.tuning.report.base import FIGURES, Inputs, spread
from control.tuning.report.document import PARTS, measure, render, renewed, sections
from control.tuning.report.hexgen import shortfalls
from control.tuning.report.hexgen_replay_text import replay_sections
from control.tuning.report.hexgen_replays import counted, replays
from control.tuning.report.hexgen_twin import gains, losses
from control.tuning.report.hexgen_twin_text import loss_section
from control.tuning.report.markdown import listed, signed_percent, span, table
from control.workload.load import load_trace
from control.workload.text2sql import text2sql

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "docs" / "reproduction.md"
DATA = ROOT.parent / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the authors' trace is not on this machine")


def tiny(said: list[str]) -> dict[str, Any]:
    """Everything measured on a dozen workflows and one seed."""
    inputs = Inputs(text2sql(12, 0), linear_fits(), seeds=1, say=said.append, rehearse=pair)
    return measure(inputs, "headway reproduce report")


@pytest.fixture(scope="module")
def document() -> Iterator[dict[str, Any]]:
    """The object of a tiny report: two rates, a minute of the mix."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hexgen_replays, "GRID", (0.0, 0.1))
        patch.setattr(hexgen_twin, "TWIN_RATES", (0.1, 0.5))
        patch.setattr(hexgen_mixes, "TENANT_RATES", (0.1,))
        patch.setattr(hexgen_mixes, "MIX_WINDOWS", 1)
        patch.setattr(hexgen_tuner, "MINUTES", 5)
        for module in (conserve, conserve_text):
            patch.setattr(module, "RATES", (1.634,))
        patch.setattr(conserve, "ERRORS", (0.0, 10.0))
        said: list[str] = []
        first = tiny(said)
        assert any("hexgen-homo" in line for line in said), "progress is told while it runs"
        assert render(tiny([])) == render(first), "the same inputs give the same document"
        yield first


def lines_under(text: str, heading: str) -> str:
    """What stands between a heading and the next of any level."""
    return text.split(f"{heading}\n", 1)[1].split("\n#", 1)[0]


@pytest.mark.slow
def test_every_policy_has_its_line_in_every_table_of_the_twin(document: dict[str, Any]) -> None:
    text = render(document)
    headings = ("#### Full twin: hexgen-hetero-1", "### Two tenants with unlike SLOs", "### Agents beside text-to-SQL")
    for heading in headings:
        part = lines_under(text, heading)
        for policy in (*POLICIES, hexgen_twin.TUNED):
            assert f"| {policy} |" in part, (heading, policy)


@pytest.mark.slow
def test_a_trace_that_is_not_the_authors_is_never_compared_with_their_rows(document: dict[str, Any]) -> None:
    text = render(document)
    assert "No row of the artifact's rerun belongs to this trace." in text
    assert "The trace used is not the authors' T1" in text
    assert document["hexgen"]["artifact"]["met"]["figures"] == 0


@pytest.mark.slow
def test_the_committed_document_has_the_sections_that_the_command_writes(document: dict[str, Any]) -> None:
    written = [line for line in COMMITTED.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    assert written == [section.heading for section in sections(document)]


def test_the_committed_document_names_its_files_without_folders() -> None:
    head = COMMITTED.read_text(encoding="utf-8").split("\n## ", 1)[0]
    assert "--trace hexgen_t1.csv --profile hexgen_profile_t1.csv" in head
    assert "/hexgen" not in head


@needs_data
def test_the_committed_rows_of_artifact_mode_are_those_of_this_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hexgen_replays, "GRID", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5))  # the alphas that have a reference
    work, times = load_trace(str(DATA / "hexgen_t1.csv")), read_profile(str(DATA / "hexgen_profile_t1.csv"))
    found = replays(Inputs(work, times, seeds=1, say=lambda line: None))
    text = COMMITTED.read_text(encoding="utf-8")
    for section in (section for section in replay_sections(found) if not section.title.startswith("Alpha")):
        assert section.text() in text, f"{section.title}: write the document again"


def row(name: str, policy: str, p95_s: list[float], throughput: list[float]) -> dict[str, Any]:
    """A measured line of the full twin."""
    figures = {"p95_s": p95_s, "throughput_wps": throughput, "slo_attainment": [0.5, 0.5], "slo_debt_s": [9.0, 9.0]}
    return {"fleet": "f", "rate": 0.1, "name": name, "policy": policy} | {k: spread(v) for k, v in figures.items()}


def test_a_policy_that_beats_hexgen_is_named_with_how_much_and_how_often() -> None:
    rows = [
        row("hexgen", "hexgen", [100.0, 100.0], [0.2, 0.2]),
        row("edf", "edf", [70.0, 110.0], [0.1, 0.1]),
        row("sjf", "sjf", [100.0, 100.05], [0.2, 0.2]),
    ]
    found = losses(rows)
    assert [(loss["figure"], loss["to"], loss["seeds"]) for loss in found] == [("p95_s", "edf", 1)]
    assert found[0]["by"] == pytest.approx(0.1)
    text = loss_section({"runs": rows, "losses": found}).text()
    assert "f, 0.1/s: loses P95 workflow latency to edf by 10.0 % (1 of 2)." in text
    assert "beaten by another policy in 1 of 4 cells" in text
    assert "sjf" not in text  # closer than what counts as a difference


def test_hexgen_ahead_everywhere_is_beaten_by_none() -> None:
    rows = [row("hexgen", "hexgen", [1.0], [2.0]), row("edf", "edf", [2.0], [1.0])]
    for one in rows:
        one["slo_attainment"] = one["slo_debt_s"] = spread([1.0])
    assert "f, 0.1/s: beaten by none." in loss_section({"runs": rows, "losses": losses(rows)}).text()
    assert [(g["p95_gain"], g["throughput_gain"]) for g in gains(rows)] == [(2.0, 2.0)]


def test_a_figure_that_a_run_lacks_beats_nobody() -> None:
    rows = [row("hexgen", "hexgen", [1.0], [2.0]), row("edf", "edf", [0.5], [3.0])]
    for figure in FIGURES:
        rows[1][figure.key] = spread([None])
    assert losses(rows) == []


@pytest.mark.slow
def test_a_reference_row_that_is_missed_is_counted_and_named(document: dict[str, Any]) -> None:
    where = {"fleet": "f", "rate": 0.5, "policy": "rr-pq", "alpha": None}
    near = where | {"figure": "p95_s", "reference": 100.0, "ours": 100.4, "difference": 0.004}
    far = where | {"figure": "throughput_wps", "reference": 0.2, "ours": 0.19, "difference": -0.05}
    met = counted([near, far])
    assert (met["points"], met["points_met"], met["figures"], met["figures_met"]) == (1, 0, 2, 1)
    part = document["hexgen"]
    said = shortfalls(part | {"artifact": part["artifact"] | {"reference": [near, far]}})
    assert "Figures off the artifact's by more than 0.5 %: 1 of 2." in said
    assert said[-1] == "f at 0.5/s, rr-pq: throughput_wps 0.19 against 0.2 (-5.00 %)."


@pytest.mark.slow
def test_the_headline_is_told_as_missed_where_it_is(document: dict[str, Any]) -> None:
    part = document["hexgen"]
    poor = [gain | {"p95_gain": 1.1} for gain in part["twin"]["gains"]]
    said = " ".join(shortfalls(part | {"twin": part["twin"] | {"gains": poor}}))
    assert "1.42x is reached in" in said
    assert "0 of 8 comparisons in our full twin (hexgen)" in said
    assert "QLM and Ray Serve" in said


@pytest.mark.slow
def test_conserve_on_another_trace_is_never_compared_with_the_paper(document: dict[str, Any]) -> None:
    text = render(document)
    assert text.count(conserve_text.NO_REFERENCE) == 3
    assert "No trace of coding agents was given." in text
    for policy in ("collocated", "full-disagg", "ampd", "conserve"):
        assert f"| {policy} | ours |" in lines_under(text, "### SLO violations under ConServe's policies")


@pytest.mark.slow
def test_a_part_is_renewed_in_its_place_and_the_others_stay(document: dict[str, Any]) -> None:
    text, last = render(document), [part for part in PARTS if part.key == "conserve"]
    assert renewed(text, document, last) == text
    stale = text.replace("Four A40", "Five A40")
    assert renewed(stale, document, last) == text
    without = text.split("\n## ConServe", 1)[0]
    assert renewed(without, document, last) == text
    mine = text.replace("no prefix reuse", "NO PREFIX REUSE")
    assert renewed(mine, document, last) == mine


def test_a_violation_is_missed_by_points_and_a_time_by_its_share() -> None:
    time = {"figure": "ttfet_p95", "reference": 4.0, "ours": 4.7, "difference": 0.175}
    assert conserve_text.is_far(time)
    assert not conserve_text.is_far(time | {"ours": 4.4, "difference": 0.1})
    share = {"figure": "violations.ttfet", "reference": 0.0, "ours": 4.0, "difference": None}
    assert not conserve_text.is_far(share)
    assert conserve_text.is_far(share | {"ours": 6.0})


def test_markdown_pieces() -> None:
    assert table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("none", "a", "a, b and c")
    assert (signed_percent(-0.00001), signed_percent(0.0123)) == ("0.00 %", "+1.23 %")
    assert (span([]), span([1.0, 3.0, 1.5])) == ("–", "1.00–3.00x (median 1.50x)")
