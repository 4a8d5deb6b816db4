"""Which instance takes a call, and what budget it has: the rules, written out."""

from control.policy.codes import HEXGEN, LEAST_LOADED, POWER_OF_TWO, UP
from tests.naive.state import Call, Instance, Step, Workflow


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
    """The instance with the largest score, then the least queued work, then first in rotation; None: nobody."""
    able = eligible(instances, call)
    if not able:
        return None
    outputs = steps[call.step].mean_output
    t_comp_s = {e.row: e.costs.exec_s(call.input_tokens, outputs) for e in able}
    turn = {e.row: (e.row - rotation) % len(instances) for e in able}
    score = scores(rule, able, call, t_comp_s, turn)
    best = min((e for e in able if e.row in score), key=lambda e: (-score[e.row], e.queued_work_s, turn[e.row]))
    call.t_comp_s, call.score = t_comp_s[best.row], score[best.row]
    return best


def fleet_mean_s(instances: list[Instance], step: Step) -> float:
    """Time of a call of this step's mean lengths, averaged over the fleet."""
    times = [e.costs.exec_s(int(step.mean_input), step.mean_output) for e in instances]
    return plain_sum(times) / len(times)


def plain_sum(values: list[float]) -> float:
    """Sum from left to right, as the model adds (Python's own sum compensates for rounding)."""
    total = 0.0
    for value in values:
        total += value
    return total


def learn(instances: list[Instance], steps: list[Step], call: Call) -> None:
    """Fold a finished call's lengths into its step's running means."""
    step = steps[call.step]
    step.seen += 1.0
    step.mean_input += (call.input_tokens - step.mean_input) / step.seen
    step.mean_output += (call.emitted - step.mean_output) / step.seen
    step.mean_exec_s = fleet_mean_s(instances, step)


def set_budgets(workflow: Workflow, group: list[Call], steps: list[Step], now_s: float) -> None:
    """Each distinct step in a row takes one entry off the template; each call gets its share of what is left."""
    for before, call in zip([None, *group], group, strict=False):
        if before is not None and before.step == call.step:
            continue
        workflow.template[call.step] = max(0, workflow.template[call.step] - 1)
        if steps[call.step].drops >= 0:
            workflow.template[steps[call.step].drops] = 0
    later_s = plain_sum([count * step.mean_exec_s for count, step in zip(workflow.template, steps, strict=True)])
    left_s = workflow.slo_s - (now_s - workflow.arrival_s)
    for call in group:
        own_s = steps[call.step].mean_exec_s
        call.ready_s = now_s
        call.budget_s = left_s * own_s / (own_s + later_s)
