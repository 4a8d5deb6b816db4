"""Where a call goes, as a table of cases in words."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from control.policy.codes import DOWN, DRAINING, HEXGEN, HEXGEN_ARTIFACT, LEAST_LOADED, POWER_OF_TWO, ROUND_ROBIN, UP
from control.policy.dispatch import (
    best_instance,
    beta_s2,
    estimate_all,
    floored_queue_s,
    hexgen_score,
    queue_length,
    score_all,
)
from tests.support import tables

INF, ARTIFACT = math.inf, HEXGEN_ARTIFACT


@dataclass(frozen=True)
class Case:
    """Three instances and the one that must win; t_comp of inf: it may not take the call."""

    words: str
    dispatch: int
    wins: int
    t_comp_s: tuple[float, ...] = (1.0, 1.0, 1.0)
    queued_s: tuple[float, ...] = (0.0, 0.0, 0.0)
    lengths: tuple[int, ...] = (0, 0, 0)
    rotation: int = 0
    alpha: float = 0.5
    draws: tuple[float, float] = (0.0, 0.0)
    dispatched_s: tuple[float, ...] = (0.0, 0.0, 0.0)
    weights: tuple[float, ...] = (1.0, 1.0, 1.0)


CASES = (
    Case("round robin: whose turn it is", ROUND_ROBIN, 2, rotation=2),
    Case("round robin: load does not matter", ROUND_ROBIN, 1, rotation=1, queued_s=(0, 9, 0), lengths=(0, 9, 0)),
    Case("round robin skips one that may not take the call", ROUND_ROBIN, 0, (1, 1, INF), rotation=2),
    Case("round robin skips two, and wraps", ROUND_ROBIN, 0, (1, INF, INF), rotation=1),
    Case("least loaded: fewest unfinished calls", LEAST_LOADED, 1, lengths=(3, 1, 2), queued_s=(0, 9, 0)),
    Case("least loaded: lower queued work on a tie", LEAST_LOADED, 1, lengths=(1, 1, 2), queued_s=(5, 4, 0)),
    Case("least loaded: first in rotation on a full tie", LEAST_LOADED, 1, rotation=1),
    Case("least loaded: rotation wraps", LEAST_LOADED, 0, lengths=(1, 1, 2), rotation=2),
    Case("least loaded skips the empty one that may not", LEAST_LOADED, 2, (1, INF, 1), lengths=(5, 0, 4)),
    Case("two choices: shorter queue of the two drawn", POWER_OF_TWO, 1, lengths=(2, 1, 0), draws=(0.0, 0.0)),
    Case("two choices: the second draw leaves the first out", POWER_OF_TWO, 0, lengths=(0, 1, 1), draws=(0.4, 0.0)),
    Case("two choices: the second draw goes past the first", POWER_OF_TWO, 2, lengths=(0, 1, 0), draws=(0.4, 0.9)),
    Case("two choices: only those that may", POWER_OF_TWO, 2, (INF, 1, 1), lengths=(0, 2, 1), draws=(0.9, 0.9)),
    Case("two choices: one candidate", POWER_OF_TWO, 1, (INF, 1, INF), lengths=(0, 9, 0), draws=(0.9, 0.9)),
    Case("hexgen, alpha 1: the fastest, whatever its queue", HEXGEN, 2, (3, 2, 1), (0, 0, 99), alpha=1.0),
    Case("hexgen, alpha 0: the shortest queue, whatever its speed", HEXGEN, 0, (9, 2, 1), (1, 2, 3), alpha=0.0),
    Case("hexgen, alpha .5: a fast one with a little queue", HEXGEN, 2, (4, 4, 1), (1, 1, 1.2)),
    Case("hexgen, alpha .5: but not with a long one", HEXGEN, 0, (4, 4, 1), (1, 1.1, 30)),
    Case("hexgen: empty queues are floored by speed", HEXGEN, 1, (4, 2, 4), alpha=0.0),
    Case("hexgen: equal scores go to the lower queue", HEXGEN, 1, (1, 1, 1), (0.09, 0.05, 0.07), alpha=0.0),
    Case("hexgen: full tie, first in rotation", HEXGEN, 2, rotation=2),
    Case("hexgen: the fastest may not take the call", HEXGEN, 1, (INF, 2, 3), alpha=1.0),
    Case("artifact: the base first, however slow, while it was given nothing", ARTIFACT, 0, (9, 1, 1), rotation=1),
    Case("artifact: the first that may is the base", ARTIFACT, 1, (INF, 9, 1), dispatched_s=(7, 0, 7)),
    Case("artifact, alpha 1: the fastest", ARTIFACT, 2, (3, 2, 1), alpha=1.0, dispatched_s=(1, 1, 99)),
    Case("artifact, alpha 0: least given so far", ARTIFACT, 1, (1, 9, 1), alpha=0.0, dispatched_s=(3, 1, 2)),
    Case(
        "artifact, alpha 0: half weight counts half",
        ARTIFACT,
        2,
        alpha=0.0,
        dispatched_s=(3, 2, 3),
        weights=(1, 1, 0.5),
    ),
    Case("artifact: what is queued now does not matter", ARTIFACT, 0, queued_s=(9, 0, 0), dispatched_s=(1, 2, 2)),
    Case("artifact, alpha .5: speed 2 against load 1.5", ARTIFACT, 1, (2, 1, 2), dispatched_s=(2, 3, 2)),
    Case("artifact, alpha .5: speed 2 does not outweigh load 3", ARTIFACT, 0, (2, 1, 2), dispatched_s=(2, 6, 4)),
)


@pytest.mark.parametrize("case", CASES, ids=[case.words for case in CASES])
def test_case(case: Case) -> None:
    fleet = tables.instances(
        *(
            {"n_waiting": n, "queued_work_s": s, "state": UP if t < INF else DRAINING}
            for n, s, t in zip(case.lengths, case.queued_s, case.t_comp_s, strict=True)
        )
    )
    fleet["dispatched_s"], fleet["share_weight"] = case.dispatched_s, case.weights
    [call] = tables.calls({"draw_a": case.draws[0], "draw_b": case.draws[1]})
    t_comp_s, scores = np.array(case.t_comp_s, float), np.zeros(3)
    score_all(tables.policy(case.dispatch, case.alpha), fleet, call, case.rotation, t_comp_s, scores)
    assert best_instance(fleet, scores, case.rotation, -1) == case.wins


def test_score_by_hand() -> None:
    """t_comp 1 and 2 s, queues 4 and 0 s: beta = 1.5 x (4 + .2) / 2 = 3.15 s^2."""
    fleet = tables.instances({"queued_work_s": 4.0}, {})
    t_comp_s, scores = np.array([1.0, 2.0]), np.zeros(2)
    assert beta_s2(fleet, t_comp_s, 0.1) == pytest.approx(3.15)
    score_all(tables.policy(HEXGEN), fleet, tables.calls({})[0], 0, t_comp_s, scores)
    assert scores == pytest.approx([0.5 * 3.15 / 4.0 - 0.5, 0.5 * 3.15 / 0.2 - 1.0])


def test_artifact_score_by_hand() -> None:
    """T 4 and 2 s, W 10 and 8 s, the second of half weight: .3 x 1 - .7 x 1, and .3 x 2 - .7 x .4."""
    fleet = tables.instances({"dispatched_s": 10.0, "share_weight": 1.0}, {"dispatched_s": 8.0, "share_weight": 0.5})
    t_comp_s, scores = np.array([4.0, 2.0]), np.zeros(2)
    score_all(tables.policy(HEXGEN_ARTIFACT, 0.3), fleet, tables.calls({})[0], 0, t_comp_s, scores)
    assert scores == pytest.approx([-0.4, 0.32])


def test_instances_that_may_not_do_not_count_in_beta() -> None:
    fleet = tables.instances({"queued_work_s": 4.0}, {}, {"queued_work_s": 99.0})
    assert beta_s2(fleet, np.array([1.0, 2.0, INF]), 0.1) == pytest.approx(3.15)


def test_floor_never_lowers_a_queue() -> None:
    [instance] = tables.instances({"queued_work_s": 3.0})
    assert floored_queue_s(instance, 10.0, 0.1) == 3.0
    assert floored_queue_s(instance, 50.0, 0.1) == 5.0


def test_both_terms_weigh_alike_at_one_half() -> None:
    """Where both are at their means, the two terms are alpha and 1 - alpha of the mean t_comp."""
    assert hexgen_score(0.5, 2.0 * 8.0, 8.0, 2.0) == 0.0


def test_unfinished_calls_are_those_waiting_and_running() -> None:
    assert queue_length(tables.instances({"n_waiting": 2, "n_running": 3})[0]) == 5


def test_runner_up_is_the_best_of_the_others() -> None:
    fleet = tables.instances({}, {}, {})
    scores = np.array([1.0, 3.0, 2.0])
    assert best_instance(fleet, scores, 0, 1) == 2


@pytest.mark.parametrize("other_than", [-1, 0])
def test_nobody_wins_where_nobody_may(other_than: int) -> None:
    assert best_instance(tables.instances({}, {}), np.full(2, -INF), 0, other_than) == -1


def test_estimates_use_the_mean_length_of_the_step_and_skip_who_may_not() -> None:
    cost = tables.costs({}, decode_ms=10.0, mix_ms=20.0)
    fleet = tables.instances({}, {"state": DOWN}, {"max_model_len": 10}, {"host_ms": 1.0})
    step = tables.steps(0.0)
    step["mean_output"] = 5.0
    [call] = tables.calls({"output_tokens": 999})
    t_comp_s = np.zeros(4)
    estimate_all(cost, fleet, step, call, 0, t_comp_s)
    assert t_comp_s == pytest.approx([0.060, INF, INF, 0.065])
