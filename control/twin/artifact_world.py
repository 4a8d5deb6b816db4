"""Tables of the replay of HexGen-Flow's own simulator (HexGen-Flow, section 7)."""

from typing import Final, NamedTuple

import numpy as np

from control.errors import SettingError
from control.policy.tables import Floats, Ints, Table

# Dispatch: which instance takes a call.
ROTATION: Final = 0  # round-robin, from instance 0
BALANCE: Final = 1  # workload-balanced: section 1, artifact form

# Queue order: which waiting call an instance looks at first.
FIRST: Final = 0  # first come, first served
URGENT: Final = 1  # largest urgency, section 3
COUNTER: Final = 2  # smallest virtual counter of the workflow, section 6
SHORTEST: Final = 3  # smallest estimate

#: Policy -> (dispatch, queue order).
ARTIFACT_POLICIES: Final = {
    "rr-fcfs": (ROTATION, FIRST),
    "vtc": (ROTATION, COUNTER),
    "rr-pq": (ROTATION, URGENT),
    "wb-fcfs": (BALANCE, FIRST),
    "hexgen": (BALANCE, URGENT),
    "sjf": (ROTATION, SHORTEST),
}

BLOCK_TOKENS: Final = 16
WATERMARK: Final = 0.05  # share of the blocks left free on admission
SCORE_TIE: Final = 1e-11  # scores closer than this are equal: sums in another order differ by some 1e-15
IDLE_TICK_S: Final = 1e-4  # what an idle instance's clock moves on by

#: One row: the policy and where the replay stands.
STATE = np.dtype(
    [
        ("dispatch", "i8"),  # ROTATION or BALANCE
        ("queue", "i8"),  # FIRST ... SHORTEST
        ("alpha", "f8"),  # 1: cheapest instance, 0: least loaded
        ("turn", "i8"),  # instance that takes the next call by rotation
        ("n_pending", "i8"),  # calls in `pending`
        ("n_open", "i8"),  # workflows that have not ended
    ]
)

#: One row per instance.
INSTANCE = np.dtype(
    [
        ("clock_s", "f8"),  # its own time, s
        ("decode_s", "f8"),  # time of one decode iteration, s
        ("load_weight", "f8"),  # k_e
        ("dispatched_s", "f8"),  # W_e: estimates of all calls ever dispatched here, s
        ("free", "i8"),  # free KV blocks
        ("kept", "i8"),  # KV blocks that an admission must leave free
        ("n_waiting", "i8"),
        ("n_running", "i8"),
        ("n_seen", "i8"),  # workflows that have had a call here
    ]
)

#: One row per workflow, in order of arrival.
WORKFLOW = np.dtype(
    [
        ("arrival_s", "f8"),
        ("slo_s", "f8"),  # from arrival to deadline, s
        ("first_call", "i8"),
        ("n_calls", "i8"),
        ("next_call", "i8"),  # first call of the stage that follows
        ("n_stage", "i8"),  # calls of the present stage that have not ended
        ("finished_s", "f8"),  # latest end of a call so far
    ]
)

#: One row per call, grouped by workflow, in order of stages.
CALL = np.dtype(
    [
        ("workflow", "i8"),
        ("group", "i8"),  # stage
        ("step", "i8"),
        ("input_tokens", "i8"),
        ("output_tokens", "i8"),
        ("ready_s", "f8"),  # when the stage before ended, s
        ("budget_s", "f8"),  # slo_ij, section 2
        ("t_comp_s", "f8"),  # T(e, step) on the instance it went to, s
        ("generated", "i8"),  # tokens generated so far
        ("blocks", "i8"),  # KV blocks held
        ("finished_s", "f8"),
    ]
)

#: One row per step.
STEP = np.dtype(
    [
        ("mean_exec_s", "f8"),  # t_k: T averaged over the fleet, s
        ("drops", "i8"),  # step whose planned repeats end when this one first runs, -1: none
    ]
)


class ArtifactWorld(NamedTuple):
    """Tables of n instances, w workflows, c calls and s steps."""

    state: Table  # STATE [1]
    instances: Table  # INSTANCE [n]
    workflows: Table  # WORKFLOW [w]
    calls: Table  # CALL [c]
    steps: Table  # STEP [s]
    remaining: Floats  # [w, s] entries left of each workflow's template
    step_s: Floats  # [n, s] T(e, step)
    prefill_s: Floats  # [n, c]
    pending: Ints  # [c] calls not dispatched yet, in order of ready_s
    waiting: Ints  # [n, c] calls in each queue, in order of arrival there
    running: Ints  # [n, c] calls in each batch, in order of admission
    counters: Floats  # [n, w] virtual counter of each workflow at each instance
    seen: Ints  # [n, w] place of the workflow in the order of first calls there, -1: none yet
    queued: Ints  # [n, w] waiting calls of the workflow there


def artifact_codes(policy: str) -> tuple[int, int]:
    """(dispatch, queue order) of a policy of the replay.

    Raises:
        SettingError: the name is not one of ARTIFACT_POLICIES.
    """
    if policy not in ARTIFACT_POLICIES:
        raise SettingError(f"policy = {policy!r}: expected one of {', '.join(ARTIFACT_POLICIES)}")
    return ARTIFACT_POLICIES[policy]
