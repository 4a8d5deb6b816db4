"""The tables that the twin and the live engine both hold: one row per instance, call, workflow, step.

Index as `table[i]["field"]`: attribute access works only inside compiled code. Integers are 8 bytes wide so that
plain Python and compiled runs never differ by an overflow.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.void]
Record: TypeAlias = Any  # one row of a table: NumPy cannot type the fields of a record
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: One row: the policy in force.
POLICY = np.dtype(
    [
        ("dispatch", "i8"),  # codes.ROUND_ROBIN ...
        ("queue", "i8"),  # codes.FCFS ...
        ("alpha", "f8"),  # 0: balance the load, 1: fastest instance
        ("floor", "f8"),  # t_queue is floored at floor x t_comp in the dispatch score
        ("aging_s", "f8"),  # under LLF a call that waited longer is served first come first; inf: off
        ("need", "i8"),  # codes.OBSERVED, ORACLE: KV a decoder must have free to take a conversation
        ("router", "i8"),  # codes.INJECTED, BY_SLACK: how AMPD routes later turns
        ("error", "f8"),  # AMPD: share of wrong turns (INJECTED), relative error of predicted lengths (BY_SLACK)
        ("idle_ttl_s", "f8"),  # a pinned context that was idle for longer is dropped, s; inf: never
    ]
)

#: One row per distinct (GPU, model, GPUs, cap): what an iteration costs and draws.
PROFILE = np.dtype(
    [
        ("kv_ms_0", "f8"),  # ms per KV token of decoding sequences, first decode line
        ("kv_ms_1", "f8"),  # same, second line (a knee); 0 with a base of 0 where there is one line
        ("mix_kv_ms", "f8"),  # c2: ms per KV token of decoding sequences in a mixed iteration
        ("mix_area_ms", "f8"),  # c3: ms per token^2 of attention area
        ("mix_seq_ms", "f8"),  # c4: ms per decoding sequence
        ("mix_ctx_ms", "f8"),  # c5: ms per token of context held by prefilling sequences
        ("additive", "i8"),  # 1: mixed = decode step + increments
        ("mix_base_ms", "f8"),  # c0 of the additive form, when nothing decodes
        ("mix_token_ms", "f8"),  # c1 of the additive form, per prefill token
        ("prefill_w", "f8"),  # W of the whole instance while prefilling
        ("idle_w", "f8"),  # W of the whole instance while idle
        ("link_ms", "f8"),  # fixed part of a KV transfer from here, ms
        ("link_token_ms", "f8"),  # ms per KV token moved
        ("send_ms", "f8"),  # ms an instance is held up by handing over one call's KV, fixed part
        ("send_token_ms", "f8"),  # same, per KV token; both 0 where sending goes on beside the next batch
    ]
)

#: One row per instance.
INSTANCE = np.dtype(
    [
        ("profile", "i8"),  # row in PROFILE
        ("max_num_seqs", "i8"),
        ("max_num_batched_tokens", "i8"),
        ("block_size", "i8"),  # tokens a KV block
        ("blocks", "i8"),  # KV blocks in all
        ("watermark", "i8"),  # KV blocks kept free on admission
        ("max_model_len", "i8"),  # tokens of context it accepts
        ("caching", "i8"),  # 1: prefix caching on
        ("host_ms", "f8"),  # ms of host overhead an iteration
        ("state", "i8"),  # codes.UP, DRAINING, DOWN
        ("role", "i8"),  # codes.MIXED_ROLE, PREFILL_ROLE, DECODE_ROLE
        ("remote", "i8"),  # 1: a real server, moved by its answers; its max_num_seqs is the window of calls in flight
        ("measured_w", "f8"),  # W that a meter reads on a remote instance, -1: no meter
        ("pinned", "i8"),  # conversations pinned here
        ("reserved", "i8"),  # KV blocks set aside for conversations and for calls on their way here
        ("ready_s", "f8"),  # time from which it may run again after handing over KV, s
        ("sent", "i8"),  # KV transfers begun from here
        ("sent_tokens", "i8"),  # KV tokens of those
        ("evicted_blocks", "i8"),  # KV blocks of cached contexts given up for others
        ("n_waiting", "i8"),
        ("n_running", "i8"),
        ("share_weight", "f8"),  # k_e of the artifact's dispatch score
        ("dispatched_s", "f8"),  # W_e: estimated execution time of all calls ever dispatched here, s
        ("seen", "i8"),  # workflows whose calls have come here, for the order of the virtual counters
        ("queued_work_s", "f8"),  # t_queue: estimated execution time of all unfinished calls here, s
        ("wait_head", "i8"),  # first waiting call, -1: none
        ("wait_tail", "i8"),
        ("free", "i8"),  # KV blocks that hold nothing
        ("evictable", "i8"),  # KV blocks of cached prefixes that no running call uses
        ("lru_head", "i8"),  # least recently used cached prefix, -1: none
        ("lru_tail", "i8"),
        ("run", "i8"),  # codes.IDLE, DECODING, MIXED
        ("run_start_s", "f8"),
        ("run_lead_s", "f8"),  # s from there to the first iteration: KV is still being handed over
        ("run_n", "i8"),  # iterations until the end of the run
        ("run_b", "i8"),  # decoding sequences of the run
        ("run_kv", "i8"),  # KV tokens of those at the start of the run
        ("run_tokens", "i8"),  # tokens of one iteration of the run
        ("run_w", "f8"),  # W during the run
        ("dirty", "i8"),  # 1: at a batch boundary, to be planned before time moves on
        ("accounted_s", "f8"),  # time up to which energy is booked
        ("energy_j", "f8"),  # J drawn in all
        ("idle_j", "f8"),  # J of energy_j drawn while idle
        ("busy_s", "f8"),  # s spent in iterations
        ("last_busy_s", "f8"),  # time its last run ended
        ("idle_after_j", "f8"),  # J of idle_j drawn since last_busy_s
        ("prefill_j", "f8"),  # J of energy_j drawn for prefill tokens
        ("iterations", "i8"),
        ("prefill_tokens", "i8"),  # prompt tokens computed
        ("cached_tokens", "i8"),  # prompt tokens found in the prefix cache
        ("decode_tokens", "i8"),  # tokens generated by decode iterations
        ("finished", "i8"),  # calls completed here
        ("preemptions", "i8"),
        ("kv_peak", "i8"),  # most KV blocks in use by running calls
    ]
)

#: One row per call: what arrives (see model.workload.CALL), then what happens to it.
CALL_STATE = np.dtype(
    [
        ("uid", "i8"),  # number of the call, unique in the run
        ("workflow", "i8"),  # row of its workflow
        ("group", "i8"),
        ("step", "i8"),
        ("tenant", "i8"),
        ("input_tokens", "i8"),
        ("output_tokens", "i8"),  # known to the world; a policy never reads it
        ("shared_key", "i8"),  # row in the prefix key space, -1: none
        ("shared_tokens", "i8"),
        ("stream_key", "i8"),  # row in the prefix key space, -1: none
        ("history_tokens", "i8"),
        ("tool_s", "f8"),
        ("draw_a", "f8"),
        ("draw_b", "f8"),
        ("state", "i8"),
        ("cause", "i8"),
        ("instance", "i8"),  # where it was placed, -1: nowhere yet
        ("next", "i8"),  # next waiting call in its queue, -1: last
        ("prev", "i8"),
        ("ready_s", "f8"),  # time its group became ready
        ("placed_s", "f8"),  # time of its latest placement
        ("started_s", "f8"),  # time of its first admission to a batch
        ("first_token_s", "f8"),
        ("finished_s", "f8"),
        ("t_comp_s", "f8"),  # estimated execution time on its instance when placed
        ("t_queue_s", "f8"),  # queued_work_s of its instance when placed
        ("score", "f8"),  # dispatch score of its instance (larger wins)
        ("runner_up", "i8"),  # second best instance, -1: no other
        ("runner_up_score", "f8"),
        ("receipt", "i8"),  # number of the receipt of its latest placement, -1: none
        ("wanted", "i8"),  # a replay has it go to this instance wherever that is a candidate, -1: to the best
        ("deadline_s", "f8"),  # deadline of its workflow, s on the clock
        ("budget_s", "f8"),  # SLO budget of this call, from its ready time
        ("target", "i8"),  # tokens whose KV prefill must reach
        ("kv", "i8"),  # tokens whose KV is held
        ("chunk", "i8"),  # prefill tokens of the iteration under way
        ("emitted", "i8"),  # tokens generated
        ("limit", "i8"),  # tokens it will generate here (output, cut at the context limit)
        ("base", "i8"),  # leading KV blocks borrowed from a shared prefix
        ("base_key", "i8"),  # that prefix, -1: none
        ("own", "i8"),  # KV blocks of its own
        ("remnant", "i8"),  # cached prefix left by a preemption, -1: none
        ("cached_tokens", "i8"),  # prompt tokens found in the prefix cache, all admissions
        ("preemptions", "i8"),
        ("restarts", "i8"),  # times it was placed anew because its instance went down
        ("energy_j", "f8"),
        ("prefill_j", "f8"),  # J of energy_j drawn for prefill tokens
        ("handoff", "i8"),  # 1: prefills here and decodes elsewhere
        ("dest", "i8"),  # where its KV is going, -1: nowhere
        ("moving", "i8"),  # leading KV tokens it will find there
        ("behind", "i8"),  # of those, tokens that did not move because they stand there
        ("source", "i8"),  # the prefiller its KV came from, -1: none
        ("reserved", "i8"),  # KV blocks set aside for this call alone, at `dest` or where it runs
        ("phase", "i8"),  # codes.IN_QUEUE ...: where its time goes now
        ("phase_s", "f8"),  # since when
        ("own_mark_s", "f8"),  # reading of its tenant's meter when it began to wait
        ("other_mark_s", "f8"),  # reading of the other tenants' meter then
        ("queue_own_s", "f8"),  # time it waited behind its own tenant's calls
        ("queue_other_s", "f8"),  # time it waited behind other tenants' calls
        ("prefill_s", "f8"),
        ("decode_s", "f8"),
        ("preempted_s", "f8"),
        ("transfer_s", "f8"),  # time its KV was on the way
        ("hold_s", "f8"),  # time it waited for a decoder with room, also part of queue_other_s
        ("failure_s", "f8"),  # time lost to instances that went down
        ("critical", "i8"),  # 1: the call its group waited for
    ]
)

#: One row per workflow.
WORKFLOW_STATE = np.dtype(
    [
        ("id", "i8"),
        ("arrival_s", "f8"),
        ("slo_s", "f8"),
        ("tenant", "i8"),
        ("kind", "i8"),
        ("first_call", "i8"),
        ("n_calls", "i8"),
        ("go_on", "i8"),
        ("open_end", "i8"),  # 1: more calls may come, nobody knows how many
        ("granted", "i8"),  # 1: it came without an SLO, each group of calls grants it one
        ("state", "i8"),
        ("cause", "i8"),
        ("next_call", "i8"),  # first call of the group after the one under way
        ("open_calls", "i8"),  # calls of the group under way that have not ended
        ("critical", "i8"),  # call whose end and tool time came last in the group under way, -1: none yet
        ("attained_s", "f8"),  # time its ended calls have run
        ("plan_prefill_s", "f8"),  # planned at arrival: fleet-mean at historical lengths over its template
        ("plan_decode_s", "f8"),
        ("plan_tool_s", "f8"),
        ("tool_s", "f8"),  # tool and think time it has waited for
        ("pins", "i8"),  # conversations of it that are pinned to an instance
        ("held", "i8"),  # calls of it that wait for a decoder with room
        ("group_done_s", "f8"),  # latest end of call and tool time in the group under way
        ("finished_s", "f8"),
    ]
)

#: One row per step (kind of call): what history says of it.
STEP = np.dtype(
    [
        ("seen", "f8"),  # weight of history: calls observed, plus the weight of what was declared
        ("mean_input", "f8"),  # tokens
        ("mean_output", "f8"),  # tokens
        ("mean_tool_s", "f8"),  # tool time after its calls, s
        ("mean_exec_s", "f8"),  # execution time at those lengths, averaged over the fleet, s
        ("mean_prefill_s", "f8"),  # the prefill part of it, s
        ("drops", "i8"),  # step whose planned repeats end when this one first runs, -1: none
    ]
)

#: One row per kind of workflow: how its template is known.
KIND = np.dtype(
    [
        ("declared", "i8"),  # 1: the template is given; 0: it is the mean of the workflows that ended
        ("seen", "f8"),  # workflows it was learned from
    ]
)

#: One row per instance and workflow: its virtual counter there (HexGen-Flow, section 6).
COUNTER = np.dtype(
    [
        ("tokens", "f8"),  # served: 1 per input token, 2 per generated token
        ("seen", "i8"),  # place in the order in which workflows came to the instance, 0: never
    ]
)


class Costs(NamedTuple):
    """Iteration cost and power of every profile in use; never changed by a run."""

    profiles: Table  # PROFILE [p]
    decode_ms: Floats  # [p, 2, max_num_seqs + 1] base of a decode iteration by B, two lines
    mix_ms: Floats  # [p, max_num_batched_tokens + 1] base of a mixed iteration by T
    power_w: Floats  # [p, max_num_seqs + 1] W of the instance while B sequences decode; [0] idle
