"""Every real trace keeps all its rows; every broken one is refused with its line and what was expected."""

import contextlib
import csv
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.errors import SettingError, TraceError
from control.workload.load import load_trace

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
HEXGEN = "workflow,position,step,input_tokens,output_tokens\n"
MOONCAKE = '{"timestamp": 0, "input_length": 600, "output_length": 3, "hash_ids": [1, 2]}\n'

REAL = {
    "azure_conv_2023.csv": ("azure", 19_366, 19_366, "ContextTokens", "GeneratedTokens"),
    "hexgen_t1.csv": ("hexgen", 90, 1_732, "input_tokens", "output_tokens"),
    "conserve_swebench.csv": ("conserve", 255, 2_526, "total_input", "out_token_size"),
    "claude_code/requests.csv": ("agents", 350, 21_850, "in_tok", "out_tok"),
    "lmcache_magagent/turns.csv": ("lmcache", 25, 746, "in_tok", "out_tok"),
    "tau_bench/calls.csv": ("tau", 200, 2_454, "in_tok", "out_tok"),
}


@pytest.mark.parametrize("name", REAL)
def test_a_real_trace_keeps_every_row_and_token(name, shared, laws):
    format_name, workflows, calls, input_column, output_column = REAL[name]
    with (shared / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    workload = load_trace(str(shared / name))
    laws(workload)
    assert workload.format == format_name
    assert (len(workload.workflows), len(workload.calls)) == (workflows, calls) == (workflows, len(rows))
    for column, field in ((input_column, "input_tokens"), (output_column, "output_tokens")):
        expected = sorted(max(1, int(row[column])) for row in rows)
        assert sorted(workload.calls[field].tolist()) == expected


def test_mooncake_keeps_every_row(shared, laws):
    workload = load_trace(str(shared / "mooncake_synthetic.jsonl"))
    laws(workload)
    assert workload.format == "mooncake"
    assert len(workload.workflows) == len(workload.calls) == 3_993
    assert workload.span_s == pytest.approx(1022.025)
    assert workload.n_streams > 0
    assert workload.n_shared > 0


def test_a_day_of_requests_loads_in_seconds(file):
    stamps = [f"2023-11-16 {h:02d}:{m:02d}:{s:02d}" for h in range(24) for m in range(60) for s in range(60)]
    began = time.process_time()
    workload = load_trace(file(AZURE + "".join(f"{stamp},100,10\n" for stamp in stamps)))
    assert time.process_time() - began < 5.0
    assert workload.span_s == 86_399.0


AGENTS = "trace,agent,i,t,in_tok,out_tok,shared_prefix_blocks,think_time\n"

BROKEN = [
    (AGENTS + "a,main,0,0,9,9,0,1\na,main,1,soon,9,9,0,1\n", 3, "t = 'soon': expected a number >= 0"),
    (AGENTS + "a,main,0,0,9,9,0,-3\n", 2, "think_time = '-3': expected a finite number >= 0"),
    (AGENTS + "a,main,0,0,9,9,0,nan\n", 2, "think_time = 'nan': expected a finite number >= 0"),
    (AGENTS + "a,main,0,0,9,9,0,\na,main,1,0,9,9,0,1_0\n", 3, "think_time = '1_0': expected a number >= 0"),
    (AGENTS + "a,main,0,0,9,9,0,1\n ,main,0,0,9,9,0,1\n", 3, "trace = ' ': expected a name"),
    (AZURE + "2023-11-16 18:15:46,1,1\n2023-02-30 18:15:46,1,1\n", 3, "TIMESTAMP = '2023-02-30 18:15:46'"),
    ("", None, "empty"),
    ("\n\n", None, "empty"),
    (AZURE, None, "no row"),
    (AZURE + "2023-11-16 18:15:46.68,374\n", 2, "2 columns: expected 3"),
    (AZURE + "2023-11-16 18:15:46.68,374,4,5\n", 2, "4 columns: expected 3"),
    (AZURE + "2023-11-16 18:15:46.68,1,1\n\nyesterday,374,44\n", 4, "TIMESTAMP = 'yesterday'"),
    (AZURE + "2023-13-16 18:15:46,1,1\n", 2, "TIMESTAMP = '2023-13-16 18:15:46'"),
    (AZURE + "2023-11-16 18:15:46,0,1\n", 2, "ContextTokens = '0': expected a whole number >= 1"),
    (AZURE + "2023-11-16 18:15:46,5,-1\n", 2, "GeneratedTokens = '-1': expected a whole number >= 0"),
    (HEXGEN + "0,0,revise,10,1\n0,1,revise,x,1\n", 3, "input_tokens = 'x': expected a whole number >= 1"),
    (HEXGEN + "0,0,revise,,1\n", 2, "input_tokens = '': expected a whole number >= 1"),
    (HEXGEN + "0,0,revise,nan,1\n", 2, "input_tokens = 'nan'"),
    (HEXGEN + "0,0,revise,1_0,1\n", 2, "input_tokens = '1_0': expected a whole number >= 1"),
    (HEXGEN + "0,0,revise,٣,1\n", 2, "input_tokens = '٣': expected a whole number >= 1"),
    (HEXGEN + "0,0,revise,1.5,1\n", 2, "input_tokens = '1.5'"),
    (HEXGEN + "0,0,revise,99999999999999999999,1\n", 2, "input_tokens = '99999999999999999999'"),
    (HEXGEN + "0,0,revise,3000000000,1\n", 2, "expected a whole number <= 1000000000"),
    (HEXGEN + "0,0,revise,10,0\n", 2, "output_tokens = '0': expected a whole number >= 1"),
    (HEXGEN + "0,0,revise,10,1\n0,0,revise,10,1\n", 3, "position = '0': expected each number once"),
    ("\n" + HEXGEN + "\n0,0,revise,x,1\n", 4, "input_tokens = 'x'"),
    (HEXGEN + "0,0,dance,10,1\n", 2, "step = 'dance': expected one of information_retriever"),
    (HEXGEN + '0,0,"revise,10,1\n', 2, "expected"),
    ("workflow,position,step,input_tokens,input_tokens,output_tokens\n", 1, "'input_tokens' is there twice"),
    (b"workflow,position\xff\xfe\n", 1, "binary data"),
    (b"TIMESTAMP,a\n\0\0\0", 2, "binary data"),
    (b"\x1f\x8b\x08\x00", 1, "binary data"),
    ("a,b,c\n1,2,3\n", 1, "azure (TIMESTAMP,ContextTokens,GeneratedTokens)"),
    ('{"a": 1}\n', 1, "mooncake (timestamp"),
    ('{"timestamp": 0, "input_len', 1, "not JSON"),
    (MOONCAKE + MOONCAKE[:40], 2, "not JSON"),
    (MOONCAKE + "[1]\n", 2, "expected a JSON object"),
    (MOONCAKE.replace("600", '600, "input_length": 7'), 1, "'input_length' is there twice"),
    (MOONCAKE.replace("600", "NaN"), 1, "NaN: expected a finite number"),
    (MOONCAKE.replace("600", "true"), 1, "input_length = True: expected a whole number >= 1"),
    (MOONCAKE.replace("600", "1e999"), 1, "input_length = inf: expected a whole number >= 1"),
    (MOONCAKE.replace("[1, 2]", '["a"]'), 1, "hash_ids = ['a']: expected a list of whole numbers"),
    (MOONCAKE.replace('"timestamp": 0', '"timestamp": -5'), 1, "timestamp = -5"),
    (MOONCAKE.replace('"timestamp": 0', '"timestamp": 1' + "0" * 5000), 1, "not JSON"),
]


@pytest.mark.parametrize(("content", "line", "what"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_refused_in_one_line(content, line, what, file):
    path = file(content)
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert caught.value.line == line
    assert what in caught.value.what
    assert "expected" in caught.value.what
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(TraceError, match="expected a readable trace file"):
            load_trace(str(path))


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(file):
    plain = AZURE + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
    expected = load_trace(file(plain))
    got = load_trace(file(b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode()))
    assert np.array_equal(got.workflows["arrival_s"], [0.0, 4.314579])
    assert np.array_equal(got.calls, expected.calls)


def test_a_named_format_names_the_missing_column(file):
    with pytest.raises(TraceError, match="column GeneratedTokens is missing"):
        load_trace(file("TIMESTAMP,ContextTokens\n"), format="azure")


def test_an_unknown_format_name_lists_the_known_ones(file):
    with pytest.raises(SettingError, match="expected one of azure, mooncake, hexgen"):
        load_trace(file(AZURE), format="excel")


SMALL = [
    AZURE + "2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50.99,396,109\n",
    HEXGEN + "0,0,Information Retriever,301,26\n0,1,evaluate,649,21\n0,2,evaluate,650,5\n",
    MOONCAKE + MOONCAKE.replace("[1, 2]", "[1, 3]"),
    '{"id": "a", "arrival_s": 1.5, "calls": [{"stage": "x", "input_tokens": 9, "output_tokens": 2}]}\n',
]
JUNK = ["", "nan", "-1", "0", '"', "\0", "1e400", "{", "]", ",", "\n", "\r", "null", "\u2028", "9" * 30]


@given(st.sampled_from(SMALL), st.lists(st.tuples(st.integers(0, 400), st.sampled_from(JUNK)), max_size=3))
def test_a_damaged_file_is_read_or_refused_but_never_crashes(content, damage):
    for place, junk in damage:
        content = content[:place] + junk + content[place + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_bytes(content.encode())
        with contextlib.suppress(TraceError):
            assert len(load_trace(str(path)).calls)
