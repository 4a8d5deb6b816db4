"""What each reader makes of the rows: groups, streams, shared prefixes, tool time, mended oddities."""

import csv
import json

import numpy as np
import pytest

from control.workload.load import load_trace


def test_azure_sorts_requests_and_counts_an_empty_answer_as_one_token(file, laws):
    rows = "2023-11-16 18:00:02+00:00,10,0\n2023-11-16 18:00:01+00:00,20,5\n"
    workload = load_trace(file("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows))
    laws(workload)
    assert workload.workflows["arrival_s"].tolist() == [0.0, 1.0]
    assert workload.calls["input_tokens"].tolist() == [20, 10]
    assert workload.calls["output_tokens"].tolist() == [5, 1]
    assert len(workload.problems) == 2


def _mooncake(*requests):
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in requests)


def test_mooncake_follows_a_conversation_and_shares_a_prompt(file, laws):
    workload = load_trace(
        file(
            _mooncake(
                (0, 1100, 5, [1, 2, 3]),  # a conversation: two whole blocks
                (1000, 2100, 5, [1, 2, 4, 5, 6]),  # its next request
                (2000, 1600, 5, [1, 7, 8, 9]),  # another with the same first block
                (3000, 700, 5, [10, 11]),  # alone
            )
        )
    )
    laws(workload)
    calls = workload.calls
    assert calls["stream"].tolist() == [0, 0, -1, -1]
    assert calls["history_tokens"].tolist() == [0, 1024, 0, 0]
    assert calls["shared_tokens"].tolist() == [512, 512, 512, 0]
    assert calls["shared_key"].tolist() == [0, 0, 0, -1]
    assert workload.workflows["arrival_s"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_mooncake_history_is_what_the_streams_last_request_left(file):
    workload = load_trace(
        file(
            _mooncake(
                (0, 512, 5, [1]),
                (1, 1024, 5, [1, 2]),
                (2, 1024, 5, [1, 3]),  # branches off the first
                (3, 1536, 5, [1, 2, 4]),  # goes on from the second, but the third came last
            )
        )
    )
    assert workload.calls["stream"].tolist() == [0, 0, 0, 0]
    assert workload.calls["history_tokens"].tolist() == [0, 512, 512, 512]


def test_mooncake_never_reuses_the_last_token(file):
    workload = load_trace(file(_mooncake((0, 512, 5, [1]), (1, 512, 5, [1]))))
    assert workload.calls["history_tokens"].tolist() == [0, 511]


def test_hexgen_runs_candidates_and_evaluations_in_parallel(file, laws):
    steps = [
        ("Information Retriever", 301),
        ("extract_keywords", 649),
        ("generate_candidate_llama-agent", 11909),
        ("generate_candidate_llama-agent", 8043),
        ("revise", 5859),
        ("revise", 5969),
        ("evaluate", 958),
        ("evaluate", 200),
        ("unit_tester", 278),
    ]
    rows = "".join(f"q7,{i},{step},{tokens},5\n" for i, (step, tokens) in enumerate(steps))
    workload = load_trace(file("workflow,position,step,input_tokens,output_tokens\n" + rows))
    laws(workload)
    assert workload.ids == ("q7",)
    assert [workload.steps[i] for i in workload.calls["step"][:4]] == [
        "information_retriever",
        "extract_keywords",
        "generate_candidate",
        "generate_candidate",
    ]
    assert workload.calls["group"].tolist() == [0, 1, 2, 2, 3, 4, 5, 5, 6]
    assert workload.calls["shared_tokens"].tolist() == [0, 611, 9430, 5416, 2960, 2960, 224, 199, 0]
    keys = workload.calls["shared_key"]
    assert keys[2] != keys[3]  # the second candidate has a prompt of its own
    assert np.isnan(workload.workflows["arrival_s"]).all()
    assert workload.workflows["go_on"].tolist() == [0]


def test_hexgen_names_with_a_number_are_the_same_step(file):
    rows = "0,0,generate_candidate_1,9500,5\n0,1,generate_candidate_2,5500,5\n"
    workload = load_trace(file("workflow,position,step,input_tokens,output_tokens\n" + rows))
    assert workload.calls["group"].tolist() == [0, 0]
    assert len(set(workload.calls["step"].tolist())) == 1


def test_hexgen_rows_out_of_order_are_sorted_and_told(file, laws):
    rows = "1,1,revise,20,5\n0,0,revise,30,5\n1,0,revise,10,5\n"
    workload = load_trace(file("workflow,position,step,input_tokens,output_tokens\n" + rows))
    laws(workload)
    assert workload.calls["input_tokens"].tolist() == [10, 20, 30]
    assert workload.problems == ("line 2: rows are out of order; sorted by workflow and position",)


CONSERVE = "conv_id,iter_id,appended_input,total_input,out_token_size,carried_over\n"


def test_conserve_history_stops_where_a_turn_shrinks_the_context(file, laws):
    rows = "0,0,1000,1000,50,0\n0,1,67,1117,40,1050\n0,2,67,500,30,1157\n0,3,67,597,30,530\n"
    workload = load_trace(file(CONSERVE + rows))
    laws(workload)
    assert workload.calls["history_tokens"].tolist() == [0, 1050, 0, 530]
    assert workload.calls["group"].tolist() == [0, 1, 2, 3]
    assert workload.workflows["go_on"].tolist() == [1]


def test_conserve_claims_no_more_than_the_turn_before_left(file):
    workload = load_trace(file(CONSERVE + "0,0,1000,1000,50,900\n0,1,67,5000,40,4933\n"))
    assert workload.calls["history_tokens"].tolist() == [0, 1050]


def test_conserve_history_is_carried_over_on_the_published_trace(shared):
    workload = load_trace(str(shared / "conserve_swebench.csv"))
    with (shared / "conserve_swebench.csv").open(newline="") as rows:
        assert workload.calls["history_tokens"].tolist() == [int(row["carried_over"]) for row in csv.DictReader(rows)]


AGENTS = "trace,agent,i,t,in_tok,out_tok,shared_prefix_blocks,think_time,api_time,stop\n"


def test_sub_agents_run_in_lockstep_in_the_tool_gap_that_holds_them(file, laws):
    rows = (
        "a,main,0,0,1000,10,0,0,2,tool_use\n"
        "a,main,1,5,1100,10,15,3,2,tool_use\n"  # 3 s of tools: too short for 25 s of sub-agent
        "a,main,2,50,1200,10,17,40,2,end_turn\n"
        "a,s1,0,0,640,10,0,0,4,tool_use\n"
        "a,s1,1,10,700,10,10,6,15,tool_use\n"
        "a,s2,0,0,640,10,0,0,4,tool_use\n"
    )
    workload = load_trace(file(AGENTS + rows))
    laws(workload)
    calls = workload.calls
    assert [workload.steps[i] for i in calls["step"]] == ["main"] * 2 + ["sub_agent"] * 3 + ["main"]
    assert calls["group"].tolist() == [0, 1, 2, 2, 3, 4]
    assert calls["tool_s"].tolist() == [3.0, 15.0, 6.0, 0.0, 0.0, 0.0]
    assert calls["history_tokens"].tolist() == [0, 960, 0, 0, 640, 1088]
    assert workload.n_streams == 3


def test_agents_mend_blank_pauses_and_empty_answers(file, laws):
    workload = load_trace(file(AGENTS + "a,main,0,0,1000,0,0,0,,\na,main,1,5,300,9,99,,,\n"))
    laws(workload)
    assert workload.calls["history_tokens"].tolist() == [0, 299]
    assert workload.calls["tool_s"].tolist() == [0.0, 0.0]
    assert len(workload.problems) == 2


def test_agents_without_the_optional_columns_still_load(file, laws):
    header = "trace,agent,i,t,in_tok,out_tok,shared_prefix_blocks,think_time\n"
    workload = load_trace(file(header + "a,s1,0,0,10,1,0,0\na,s1,1,4,20,1,0,2\n"))
    laws(workload)
    assert workload.calls["tool_s"].tolist() == [2.0, 0.0]


def test_the_coding_traces_keep_their_reuse(shared):
    workload = load_trace(str(shared / "claude_code" / "requests.csv"))
    with (shared / "claude_code" / "requests.csv").open(newline="") as rows:
        reuse = sum(64 * int(row["shared_prefix_blocks"]) for row in csv.DictReader(rows))
    assert workload.calls["history_tokens"].sum(dtype=np.int64) == pytest.approx(reuse, rel=1e-3)
    assert sorted(set(workload.calls["stream"].tolist())) == list(range(389))


def test_tau_history_is_all_but_the_appended_tokens(file, laws):
    header = "task,trial,call,in_tok,out_tok,append_tok,kind\n"
    workload = load_trace(file(header + "0,0,0,1294,25,1294,reply\n0,0,1,1337,113,18,tool_call\n"))
    laws(workload)
    assert workload.calls["history_tokens"].tolist() == [0, 1319]
    assert workload.steps == ("reply", "tool_call")
    assert workload.ids == ("0/0",)


def test_lmcache_sessions_arrive_at_their_wall_clock_time(file, laws):
    header = "session,i,abs_ts_us,in_tok,out_tok,shared_prefix_tok\n"
    rows = "b,0,1760995776000000,306,5,0\na,0,1760995775000000,0,5,0\na,1,1760995778000000,20,5,1\n"
    workload = load_trace(file(header + rows))
    laws(workload)
    assert workload.ids == ("a", "b")
    assert workload.workflows["arrival_s"].tolist() == [0.0, 1.0]
    assert workload.problems == ("1 calls with in_tok = 0; counted as one token each",)
