"""Into a queue or refused: placing a call by itself, and how a call ends."""

import math

from control.policy.codes import (
    INSTANCE_LOST,
    NO_CAUSE,
    NO_INSTANCE,
    REFUSED,
    SESSION,
    TOO_LONG,
    UNFIT,
    UP,
    WAITING,
)
from control.twin.world import World
from tests.naive import batch, dispatch, orders, pins
from tests.naive.orders import Order
from tests.naive.reading import (
    read_calls,
    read_conversations,
    read_instances,
    read_kinds,
    read_rules,
    read_steps,
    read_workflows,
)
from tests.naive.state import Call, Instance, Workflow


class Placing:
    """A copy of a world that has not run yet, in plain objects, and the placing of calls by themselves."""

    def __init__(self, world: World) -> None:
        self.rules = read_rules(world)
        self.exact = bool(world.clock[0]["exact"])
        self.steps = read_steps(world)
        self.calls = read_calls(world)
        self.conversations = read_conversations(world, self.calls)
        self.instances = read_instances(world, self.rules, self.calls, self.conversations)
        self.kinds = read_kinds(world)
        self.workflows = read_workflows(world, self.calls)
        self.order = Order(self.rules, self.workflows)
        self.coming = list(self.workflows)
        self.held: list[Call] = []  # that wait for a decoder with room, in order
        self.rotation = 0
        self.now_s = 0.0

    def end_call(self, call: Call, state: int, cause: int) -> None:
        """A call ends."""
        call.state, call.cause, call.finished_s = state, cause, self.now_s

    def leave_group(self, call: Call) -> None:
        """The group is done when all its calls have ended and their tools have returned."""
        workflow = self.workflows[call.workflow]
        workflow.open.remove(call)
        workflow.left.append(call)
        workflow.group_done_s = max(workflow.group_done_s, done_s(workflow, call))

    def refuse(self, call: Call) -> None:
        """Nobody can take the call; its workflow ends with the group unless it goes on."""
        longest = max((e.max_model_len for e in self.instances), default=-math.inf)
        cause = NO_INSTANCE if call.input_tokens < longest else TOO_LONG
        call.instance = -1
        pins.free_call(call)
        self.end_call(call, REFUSED, cause)
        self.leave_group(call)
        workflow = self.workflows[call.workflow]
        if not workflow.go_on and workflow.cause == NO_CAUSE:
            workflow.cause = cause

    def place_alone(self, call: Call) -> None:
        """Put the call into a queue by a rule that looks at single calls, or refuse it."""
        able = dispatch.eligible(self.instances, call)
        if not able:
            self.refuse(call)
            return
        if self.rules.dispatch == SESSION:
            if call.home not in able:
                pins.lose(
                    call.conversation, UNFIT if call.home is not None and call.home.state == UP else INSTANCE_LOST
                )
            pins.begin_turn(self.rules, call)
        instance = dispatch.choose(self.rules, self.instances, call, self.steps, self.rotation)
        if self.rules.dispatch == SESSION and call.conversation is not None and call.home is not instance:
            pins.settle(self.rules, call, self.workflows[call.workflow], instance)
        self.enqueue(call, instance)

    def enqueue(self, call: Call, instance: Instance) -> None:
        """Put the call, whose decision is kept, into the queue of an instance, which looks at its next boundary."""
        self.rotation = (instance.row + 1) % len(self.instances)
        call.instance, call.placed_s, call.state = instance.row, self.now_s, WAITING
        call.limit = call.output_tokens
        if not call.only_prefills:
            call.limit = min(call.limit, instance.max_model_len - call.input_tokens)
        instance.queued_work_s += call.t_comp_s
        instance.dispatched_s += call.t_comp_s
        orders.count_in(instance, call.workflow)
        call.log.append(("queue", self.now_s))
        instance.queue.append(call)
        batch.cut_run(instance, self.now_s)


def done_s(workflow: Workflow, call: Call) -> float:
    """When nothing more is waited for on account of the call; nobody waits for tools after the last group."""
    return call.finished_s + call.tool_s if workflow.coming else call.finished_s
