"""Global dispatch: a score for every instance that may take a call; the largest wins.

Ties go to the lower load (queued_work_s), then to the first instance in rotation after the one chosen last.
"""

import math

from control.jit import compiled
from control.policy.codes import HEXGEN, HEXGEN_ARTIFACT, LEAST_LOADED, POWER_OF_TWO
from control.policy.cost import exec_s
from control.policy.eligible import count_eligible, is_eligible, nth_eligible
from control.policy.tables import Costs, Floats, Record, Table


@compiled
def queue_length(instance: Record) -> int:
    """Calls on the instance that have not ended."""
    return instance["n_waiting"] + instance["n_running"]


@compiled
def estimate_all(costs: Costs, instances: Table, steps: Table, call: Record, held: int, t_comp_s: Floats) -> None:
    """Fill `t_comp_s` [n instances] with the call's estimated execution time; inf where it may not go."""
    outputs = steps[call["step"]]["mean_output"]
    for i in range(len(instances)):
        t_comp_s[i] = math.inf
        if is_eligible(instances[i], call):
            t_comp_s[i] = exec_s(costs, instances[i], call["input_tokens"], held, outputs)


@compiled
def floored_queue_s(instance: Record, t_comp_s: float, floor: float) -> float:
    """max(t_queue, floor x t_comp), s: an empty queue is not infinitely attractive."""
    return max(instance["queued_work_s"], floor * t_comp_s)


@compiled
def beta_s2(instances: Table, t_comp_s: Floats, floor: float) -> float:
    """beta, s^2: mean t_comp x mean max(t_queue, floor t_comp), so that alpha = .5 weighs both terms alike.

    The paper leaves beta unpublished; this choice is ours.
    """
    n, comp, queue = 0, 0.0, 0.0
    for i in range(len(instances)):
        if t_comp_s[i] < math.inf:
            n += 1
            comp += t_comp_s[i]
            queue += floored_queue_s(instances[i], t_comp_s[i], floor)
    return (comp / n) * (queue / n)


@compiled
def hexgen_score(alpha: float, beta: float, t_queue_s: float, t_comp_s: float) -> float:
    """score(e) = (1 - alpha) beta / t_queue(e) - alpha t_comp(e), s (HexGen-Flow, section 1, paper form)."""
    return (1.0 - alpha) * beta / t_queue_s - alpha * t_comp_s


@compiled
def score_hexgen(policy: Record, instances: Table, t_comp_s: Floats, scores: Floats) -> None:
    """Fill `scores` with the paper's dispatch score; -inf where the call may not go."""
    floor = policy["floor"]
    beta = beta_s2(instances, t_comp_s, floor)
    for i in range(len(instances)):
        scores[i] = -math.inf
        if t_comp_s[i] < math.inf:
            t_queue_s = floored_queue_s(instances[i], t_comp_s[i], floor)
            scores[i] = hexgen_score(policy["alpha"], beta, t_queue_s, t_comp_s[i])


@compiled
def artifact_score(alpha: float, t_base_s: float, t_comp_s: float, load: float, base_load: float) -> float:
    """score(e) = alpha T(base) / T(e) - (1 - alpha) W_e k_e / W_base (HexGen-Flow, section 1, artifact form)."""
    return alpha * t_base_s / t_comp_s - (1.0 - alpha) * load / base_load


@compiled
def score_artifact(policy: Record, instances: Table, t_comp_s: Floats, scores: Floats) -> None:
    """Fill `scores` with the artifact's dispatch score against the first instance that may take the call.

    While nothing was ever dispatched to that one, the call goes there. First instance wins ties.
    """
    base = 0
    while t_comp_s[base] == math.inf:
        base += 1
    for i in range(len(instances)):
        scores[i] = -math.inf
        if t_comp_s[i] < math.inf and instances[base]["dispatched_s"] > 0.0:
            load = instances[i]["dispatched_s"] * instances[i]["share_weight"]
            base_load = instances[base]["dispatched_s"]
            scores[i] = artifact_score(policy["alpha"], t_comp_s[base], t_comp_s[i], load, base_load)
    if instances[base]["dispatched_s"] == 0.0:
        scores[base] = 0.0


@compiled
def score_least_loaded(instances: Table, t_comp_s: Floats, scores: Floats) -> None:
    """Fill `scores` with minus the queue length."""
    for i in range(len(instances)):
        scores[i] = -1.0 * queue_length(instances[i]) if t_comp_s[i] < math.inf else -math.inf


@compiled
def score_power_of_two(instances: Table, call: Record, t_comp_s: Floats, scores: Floats) -> None:
    """Two instances by the call's own draws; minus the queue length for those, -inf for the rest."""
    scores[:] = -math.inf
    n = count_eligible(instances, call)
    a = nth_eligible(instances, call, int(call["draw_a"] * n))
    scores[a] = -1.0 * queue_length(instances[a])
    if n > 1:
        other = int(call["draw_b"] * (n - 1))
        b = nth_eligible(instances, call, other + (1 if other >= int(call["draw_a"] * n) else 0))
        scores[b] = -1.0 * queue_length(instances[b])


@compiled
def score_round_robin(t_comp_s: Floats, rotation: int, scores: Floats) -> None:
    """The next instance in rotation that may take the call scores highest."""
    n = len(scores)
    for k in range(n):
        i = (rotation + k) % n
        scores[i] = -1.0 * k if t_comp_s[i] < math.inf else -math.inf


@compiled
def score_all(policy: Record, instances: Table, call: Record, rotation: int, t_comp_s: Floats, scores: Floats) -> None:
    """Fill `scores` [n instances] by the dispatch rule in force."""
    dispatch = policy["dispatch"]
    if dispatch == HEXGEN:
        score_hexgen(policy, instances, t_comp_s, scores)
    elif dispatch == HEXGEN_ARTIFACT:
        score_artifact(policy, instances, t_comp_s, scores)
    elif dispatch == LEAST_LOADED:
        score_least_loaded(instances, t_comp_s, scores)
    elif dispatch == POWER_OF_TWO:
        score_power_of_two(instances, call, t_comp_s, scores)
    else:
        score_round_robin(t_comp_s, rotation, scores)


@compiled
def beats(instances: Table, scores: Floats, a: int, b: int) -> bool:
    """Whether instance `a` scores higher than `b`, or the same under a lower load."""
    if scores[a] != scores[b]:
        return scores[a] > scores[b]
    return instances[a]["queued_work_s"] < instances[b]["queued_work_s"]


@compiled
def best_instance(instances: Table, scores: Floats, rotation: int, other_than: int) -> int:
    """Row with the largest score, by the tie rule above; -1 where every score is -inf."""
    n, best = len(scores), -1
    for k in range(n):
        i = (rotation + k) % n
        if i == other_than or scores[i] == -math.inf:
            continue
        if best < 0 or beats(instances, scores, i, best):
            best = i
    return best
