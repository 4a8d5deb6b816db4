"""Which waiting call an instance admits next, and the virtual counters behind one of the rules."""

from dataclasses import dataclass

from control.policy.codes import EDF, FCFS, LLF, PLAS, QLM, SJF, VTC
from tests.naive.rules import Rules
from tests.naive.state import Call, Counter, Instance, Workflow


@dataclass(frozen=True)
class Order:
    """The queue order in force."""

    rules: Rules
    workflows: list[Workflow]

    @property
    def queue(self) -> int:
        """Its number."""
        return self.rules.queue

    @property
    def aging_s(self) -> float:
        """Under LLF, wait after which a call is not overtaken."""
        return self.rules.aging_s


def pick(instance: Instance, order: Order, now_s: float) -> Call:
    """The waiting call to admit next: a preempted head, else the first of those that the rule puts first."""
    head = instance.queue[0]
    if order.queue == FCFS or head.preemptions > 0:
        return head
    if order.queue == QLM:
        return pick_of_group(instance, order, now_s)
    aged = [k for k, call in enumerate(instance.queue) if now_s - call.ready_s > order.aging_s]
    last = aged[0] if aged and order.queue == LLF else len(instance.queue)
    return min(instance.queue[: last + 1], key=lambda call: rank(instance, order, call, now_s))


def rank(instance: Instance, order: Order, call: Call, now_s: float) -> tuple[float, ...]:
    """The smaller, the earlier."""
    counter = instance.counters[call.workflow]
    ranks: dict[int, tuple[float, ...]] = {
        LLF: ((call.budget_s - (now_s - call.ready_s)) - call.t_comp_s,),
        EDF: (call.deadline_s,),
        SJF: (call.t_comp_s,),
        PLAS: (order.workflows[call.workflow].attained_s,),
        VTC: (counter.tokens, counter.seen),
    }
    return ranks[order.queue]


def pick_of_group(instance: Instance, order: Order, now_s: float) -> Call:
    """The first of the oldest group, or of the one due first as soon as any group would be served too late."""
    groups: dict[int, list[Call]] = {}
    for call in instance.queue:
        own_slo_s = order.workflows[call.workflow].slo_s / 15.0
        groups.setdefault(int((call.ready_s + own_slo_s) // 10.0), []).append(call)
    ahead, late = 0, False
    for due, calls in groups.items():
        ahead += len(calls)
        late = late or ahead * (200.0 / 300.0) > due * 10.0 - now_s
    return groups[min(groups) if late else next(iter(groups))][0]


def count_in(instance: Instance, workflow: int) -> None:
    """A call of the workflow comes: one that has none waiting is lifted to the least of those that have."""
    counters, waiting = instance.counters, {call.workflow for call in instance.queue}
    if workflow not in counters:
        counters[workflow] = Counter(0.0, instance.seen + 1)
    if waiting and workflow not in waiting:
        least = min(counters[other].tokens for other in waiting)
        counters[workflow].tokens = max(counters[workflow].tokens, least)
