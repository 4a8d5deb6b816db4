"""Our own format: nothing is lost on the way out and back, and a wrong key or value is refused by name."""

import json

import numpy as np
import pytest

from control.errors import TraceError
from control.workload.agents import agents
from control.workload.arrivals import arrange
from control.workload.generate import generate
from control.workload.load import load_trace
from control.workload.text2sql import text2sql
from control.workload.write import trace_lines, write_trace

CALL = {"stage": "revise", "group": 0, "input_tokens": 100, "output_tokens": 5}


def _line(**changes):
    return json.dumps({"id": 1, "kind": "text2sql", "calls": [CALL], **changes})


def _same(got, expected):
    """All columns equal, names resolved; draws belong to a run, not to a trace."""
    for table, names in (("workflows", ("kinds", "tenants")), ("calls", ("steps",))):
        a, b = getattr(got, table), getattr(expected, table)
        indexed = {"kinds": "kind", "tenants": "tenant", "steps": "step"}
        columns = {indexed[name]: name for name in names}
        for field in a.dtype.names:
            if field in columns:
                left = np.array(getattr(got, columns[field]))[a[field]]
                right = np.array(getattr(expected, columns[field]))[b[field]]
                assert left.tolist() == right.tolist()
            elif not field.startswith("draw_"):
                assert np.array_equal(a[field], b[field], equal_nan=a[field].dtype.kind == "f"), field


@pytest.mark.parametrize(
    "workload",
    [
        arrange(text2sql(40, 3, tenants=("a", "b"), slo_scales=(1.0, 2.0)), rate=0.7, seed=3),
        arrange(agents(20, 4), rate=0.3, seed=4, slo_scale=1.5),
        text2sql(5, 1),
        generate("demo-mixed", 80, 5),
    ],
    ids=["text2sql", "agents", "without times", "scenario"],
)
def test_writing_and_reading_gives_the_same_tables(workload, tmp_path, laws):
    path = str(tmp_path / "trace.jsonl")
    write_trace(workload, path)
    got = load_trace(path)
    laws(got)
    _same(got, workload)
    assert list(trace_lines(got)) == list(trace_lines(workload))


@pytest.mark.parametrize(
    "name", ["hexgen_t1.csv", "conserve_swebench.csv", "mooncake_synthetic.jsonl", "claude_code/requests.csv"]
)
def test_a_real_trace_survives_the_way_through_our_format(name, shared, tmp_path):
    workload = load_trace(str(shared / name))
    write_trace(workload, str(tmp_path / "trace.jsonl"))
    got = load_trace(str(tmp_path / "trace.jsonl"))
    _same(got, workload)
    assert got.ids == workload.ids


def test_optional_keys_may_be_absent(file, laws):
    workload = load_trace(file('{"calls": [{"input_tokens": 10, "output_tokens": 2}]}\n'))
    laws(workload)
    assert (workload.kinds, workload.tenants, workload.steps) == (("chat",), ("default",), ("call",))
    assert np.isnan(workload.workflows["arrival_s"][0])
    assert np.isnan(workload.workflows["slo_s"][0])


def test_prefixes_are_shared_by_kind_and_stage(file, laws):
    first = {**CALL, "shared_prefix_tokens": 40}
    other = {**first, "stage": "evaluate", "group": 1}
    lines = [
        _line(id=1, calls=[first, other]),
        _line(id=2, calls=[first]),
        _line(id=3, kind="x", calls=[first]),
    ]
    workload = load_trace(file("\n".join(lines)))
    laws(workload)
    assert workload.calls["shared_key"].tolist() == [0, 1, 0, 2]
    assert workload.n_shared == 3


def test_groups_may_be_numbered_from_any_number_with_gaps(file, laws):
    calls = [{**CALL, "group": group} for group in (3, 3, 7, 9)]
    workload = load_trace(file(_line(calls=calls)))
    laws(workload)
    assert workload.calls["group"].tolist() == [0, 0, 1, 2]


def test_a_prefix_as_long_as_the_input_leaves_one_token(file, laws):
    workload = load_trace(file(_line(calls=[{**CALL, "shared_prefix_tokens": 100}])))
    laws(workload)
    assert workload.calls["shared_tokens"].tolist() == [99]
    assert workload.problems == ("1 calls whose prefix is the whole input; cut by one token",)


def test_large_stream_numbers_take_no_room(file, laws):
    calls = [{**CALL, "stream": 900_000_000}, {**CALL, "group": 1, "stream": 5, "history_tokens": 50}]
    workload = load_trace(file(_line(calls=calls)))
    laws(workload)
    assert workload.calls["stream"].tolist() == [1, 0]
    assert workload.n_streams == 2


def test_names_as_ids_are_kept(file):
    workload = load_trace(file(_line(id="q-1", arrival_s=5) + "\n" + _line(id=7, arrival_s=2)))
    assert workload.ids == ("7", "q-1")


REFUSED = [
    (_line(colour="red"), 1, "unknown key 'colour' in a workflow"),
    (_line(calls=[{**CALL, "size": 1}]), 1, "unknown key 'size' in a call"),
    (_line(calls=[]), 1, "calls = []: expected a list of at least one call"),
    (_line(calls=None), 1, "calls = None"),
    (_line(calls=[3]), 1, "calls[0] = 3: expected an object"),
    (_line(calls=[{**CALL, "output_tokens": 0}]), 1, "output_tokens = 0: expected a whole number >= 1"),
    (_line(calls=[{**CALL, "input_tokens": "x"}]), 1, "input_tokens = 'x': expected a whole number >= 1"),
    (_line(calls=[{**CALL, "input_tokens": 1.5}]), 1, "input_tokens = 1.5"),
    (_line(calls=[{"output_tokens": 1}]), 1, "input_tokens is missing"),
    (_line(calls=[{**CALL, "shared_prefix_tokens": 101}]), 1, "shared_prefix_tokens = 101: expected"),
    (_line(calls=[{**CALL, "history_tokens": 5}]), 1, "calls[0] has history_tokens: expected a stream"),
    (_line(calls=[{**CALL, "tool_s": -1}]), 1, "tool_s = -1: expected a finite number >= 0"),
    (_line(calls=[{**CALL, "shared_key": 10**7}]), 1, "shared_key = 10000000: expected"),
    (_line(calls=[{**CALL, "group": 1}, CALL]), 1, "group = [1, 0]: expected groups in rising order"),
    (_line(slo_s=0), 1, "slo_s = 0: expected a finite number > 0"),
    (_line(slo_scale="2"), 1, "slo_scale = '2': expected a finite number > 0"),
    (_line(go_on=2), 1, "go_on = 2: expected a whole number <= 1"),
    (_line(kind=""), 1, "kind = '': expected a name"),
    (_line(arrival_s=10**400), 1, "arrival_s = 1000"),
    (_line() + "\n\n" + _line(), 3, "id = 1: expected an id other than that of line 1"),
    (_line(arrival_s=1) + "\n" + _line(id=2), 2, "arrival_s is missing"),
]


@pytest.mark.parametrize(("content", "line", "what"), REFUSED, ids=range(len(REFUSED)))
def test_a_wrong_key_or_value_is_refused_by_name(content, line, what, file):
    with pytest.raises(TraceError) as caught:
        load_trace(file(content))
    assert caught.value.line == line
    assert what in caught.value.what
    assert "\n" not in str(caught.value)
