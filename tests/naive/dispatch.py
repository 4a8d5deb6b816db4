"""Which instance takes a call: the rules, written out."""

import math

from control.policy.codes import HEXGEN, HEXGEN_ARTIFACT, LEAST_LOADED, POWER_OF_TWO, PREFIX, SESSION, UP
from tests.naive import cache
from tests.naive.history import Step
from tests.naive.rules import Rules
from tests.naive.state import Call, Instance


def eligible(instances: list[Instance], call: Call) -> list[Instance]:
    """Instances that are up and whose context limit holds the input and one token."""
    return [e for e in instances if e.state == UP and call.context < e.max_model_len]


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


def cached_tokens(instance: Instance, call: Call) -> float:
    """Tokens of the call's context that stand in the instance's cache."""
    call.target = call.context
    return float(cache.find_hit(instance, call)[1] * instance.block_size)


def scores(
    rules: Rules, able: list[Instance], call: Call, t_comp_s: dict[int, float], turn: dict[int, int]
) -> dict[int, float]:
    """Score by instance; `turn` = place in the rotation."""
    if rules.dispatch == HEXGEN:
        return hexgen_scores(rules.alpha, rules.floor, able, t_comp_s)
    if rules.dispatch == HEXGEN_ARTIFACT:
        return artifact_scores(rules.alpha, able, t_comp_s)
    if rules.dispatch == LEAST_LOADED:
        return {e.row: -1.0 * load(e) for e in able}
    if rules.dispatch == POWER_OF_TWO:
        return {e.row: -1.0 * load(e) for e in two_choices(able, call)}
    if rules.dispatch == SESSION:
        return {e.row: 1.0 if e is call.home else 0.0 for e in able}
    if rules.dispatch == PREFIX:
        return {e.row: cached_tokens(e, call) for e in able}
    return {e.row: -1.0 * turn[e.row] for e in able}


def ranked(instances: list[Instance], score: dict[int, float], rotation: int) -> list[Instance]:
    """Those with a score, the best first: the largest score, then the least queued work, then first in rotation."""
    scored = [e for e in instances if e.row in score]
    return sorted(scored, key=lambda e: (-score[e.row], e.queued_work_s, (e.row - rotation) % len(instances)))


def keep_decision(call: Call, order: list[Instance], score: dict[int, float], t_comp_s: float) -> None:
    """The call keeps what was decided on, for the first in `order`."""
    best, second = [*order, None][:2]
    assert best is not None
    call.t_comp_s, call.t_queue_s, call.score = t_comp_s, best.queued_work_s, score[best.row]
    call.runner_up = -1 if second is None else second.row
    call.runner_up_score = -math.inf if second is None else score[second.row]


def choose(rules: Rules, instances: list[Instance], call: Call, steps: list[Step], rotation: int) -> Instance:
    """The instance that takes the call by itself; one is eligible."""
    able = eligible(instances, call)
    outputs = steps[call.step].mean_output
    t_comp_s = {e.row: e.costs.exec_s(call.input_tokens, outputs) for e in able}
    turn = {e.row: (e.row - rotation) % len(instances) for e in able}
    score = scores(rules, able, call, t_comp_s, turn)
    order = ranked(instances, score, rotation)
    keep_decision(call, order, score, t_comp_s[order[0].row])
    return order[0]
