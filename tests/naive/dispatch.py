"""Which instance takes a call: the rules, written out."""

import math

from control.policy.codes import HEXGEN, HEXGEN_ARTIFACT, LEAST_LOADED, POWER_OF_TWO, UP
from tests.naive.state import Call, Instance, Step


def eligible(instances: list[Instance], call: Call) -> list[Instance]:
    """Instances that are up and whose context limit holds the input and one token."""
    return [e for e in instances if e.state == UP and call.input_tokens < e.max_model_len]


def load(instance: Instance) -> int:
    """Unfinished calls."""
    return len(instance.queue) + len(instance.batch)


def hexgen_scores(alpha: float, floor: float, able: list[Instance], t_comp_s: dict[int, float]) -> dict[int, float]:
    """(1 - alpha) beta / t_queue - alpha t_comp, with t_queue floored at `floor` t_comp."""
    queue_s = {e.row: max(e.queued_work_s, floor * t_comp_s[e.row]) for e in able}
    comp = queue = 0.0
    for e in able:
        comp += t_comp_s[e.row]
        queue += queue_s[e.row]
    beta = (comp / len(able)) * (queue / len(able))
    return {e.row: (1.0 - alpha) * beta / queue_s[e.row] - alpha * t_comp_s[e.row] for e in able}


def artifact_scores(alpha: float, able: list[Instance], t_comp_s: dict[int, float]) -> dict[int, float]:
    """alpha T(base) / T(e) - (1 - alpha) W_e k_e / W_base; the base alone while nothing was ever sent to it."""
    base = able[0]
    if base.dispatched_s == 0.0:
        return {base.row: 0.0}
    return {
        e.row: alpha * t_comp_s[base.row] / t_comp_s[e.row]
        - (1.0 - alpha) * (e.dispatched_s * e.share_weight) / base.dispatched_s
        for e in able
    }


def two_choices(able: list[Instance], call: Call) -> list[Instance]:
    """Two different instances by the call's own draws; one where there is only one."""
    first = able[int(call.draw_a * len(able))]
    others = [e for e in able if e is not first]
    return [first, others[int(call.draw_b * len(others))]] if others else [first]


def scores(
    rule: tuple[int, float, float],
    able: list[Instance],
    call: Call,
    t_comp_s: dict[int, float],
    turn: dict[int, int],
) -> dict[int, float]:
    """Score by instance; `rule` = (dispatch, alpha, floor), `turn` = place in the rotation."""
    dispatch, alpha, floor = rule
    if dispatch == HEXGEN:
        return hexgen_scores(alpha, floor, able, t_comp_s)
    if dispatch == HEXGEN_ARTIFACT:
        return artifact_scores(alpha, able, t_comp_s)
    if dispatch == LEAST_LOADED:
        return {e.row: -1.0 * load(e) for e in able}
    if dispatch == POWER_OF_TWO:
        return {e.row: -1.0 * load(e) for e in two_choices(able, call)}
    return {e.row: -1.0 * turn[e.row] for e in able}


def choose(
    rule: tuple[int, float, float],
    instances: list[Instance],
    call: Call,
    steps: list[Step],
    rotation: int,
) -> Instance | None:
    """The instance with the largest score, then the least queued work, then first in rotation; None: nobody.

    The call keeps what was decided on.
    """
    able = eligible(instances, call)
    if not able:
        return None
    outputs = steps[call.step].mean_output
    t_comp_s = {e.row: e.costs.exec_s(call.input_tokens, outputs) for e in able}
    turn = {e.row: (e.row - rotation) % len(instances) for e in able}
    score = scores(rule, able, call, t_comp_s, turn)
    ranked = sorted((e for e in able if e.row in score), key=lambda e: (-score[e.row], e.queued_work_s, turn[e.row]))
    best, second = [*ranked, None][:2]
    assert best is not None
    call.t_comp_s, call.t_queue_s, call.score = t_comp_s[best.row], best.queued_work_s, score[best.row]
    call.runner_up = -1 if second is None else second.row
    call.runner_up_score = -math.inf if second is None else score[second.row]
    return best
