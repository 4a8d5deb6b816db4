"""`trace describe`: the counts a user checks first."""

import json

import pytest

from control.workload.agents import agents
from control.workload.arrivals import arrange
from control.workload.describe import describe
from control.workload.load import load_trace


def test_a_trace_is_described_by_its_counts_and_means(file):
    rows = "0,0,revise,10,1\n0,1,revise,30,3\n1,0,evaluate,5,2\n"
    told = describe(load_trace(file("workflow,position,step,input_tokens,output_tokens\n" + rows)))
    assert told["format"] == "hexgen"
    assert (told["workflows"], told["calls"]) == (2, 3)
    assert (told["input_tokens"], told["output_tokens"]) == (45, 6)
    assert told["span_s"] is None
    assert told["problems"] == []
    assert told["kinds"] == {"text2sql": 2}
    revise = next(step for step in told["steps"] if step["step"] == "revise")
    assert (revise["calls"], revise["mean_input_tokens"], revise["mean_output_tokens"]) == (2, 20.0, 2.0)
    json.dumps(told, allow_nan=False)


def test_span_is_from_the_first_arrival_to_the_last():
    workload = arrange(agents(10, 1), rate=1.0, seed=1)
    arrivals = workload.workflows["arrival_s"]
    assert describe(workload)["span_s"] == pytest.approx(arrivals[-1] - arrivals[0])


def test_sums_do_not_overflow(shared):
    told = describe(load_trace(str(shared / "claude_code" / "requests.csv")))
    assert told["input_tokens"] > 2**31
    assert told["problems"] == [
        "9 calls with out_tok = 0; counted as one token each",
        "51 requests without think_time; counted as 0 s",
    ]
