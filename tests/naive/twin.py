"""The slow, obvious twin: the whole model in plain Python, to compare the compiled one with bit for bit.

Events are found by looking at everything. At one instant runs end before tools return, tools before arrivals, lower
rows first; instances are planned once nothing more happens at that instant.
"""

import math
from collections.abc import Callable
from functools import partial

from control.policy.codes import (
    ACTIVE,
    BROKEN,
    CANCELLED,
    COMPLETED,
    DONE,
    DOWN,
    NO_CAUSE,
    NO_INSTANCE,
    REFUSED,
    TOO_LONG,
    WAITING,
    WORKFLOW_ENDED,
)
from control.twin.world import World
from tests.naive import batch, dispatch, history, orders
from tests.naive.orders import Order
from tests.naive.state import (
    Call,
    Instance,
    Workflow,
    read_calls,
    read_instances,
    read_kinds,
    read_steps,
    read_workflows,
)


class NaiveTwin:
    """A copy of a world that has not run yet, in plain objects."""

    def __init__(self, world: World) -> None:
        policy = world.policy[0]
        self.rule = (int(policy["dispatch"]), float(policy["alpha"]), float(policy["floor"]))
        self.exact = bool(world.clock[0]["exact"])
        self.instances = read_instances(world)
        self.steps = read_steps(world)
        self.calls = read_calls(world)
        self.kinds = read_kinds(world)
        self.workflows = read_workflows(world, self.calls)
        self.order = Order(int(policy["queue"]), float(policy["aging_s"]), self.workflows)
        self.coming = list(self.workflows)
        self.rotation = 0
        self.now_s = 0.0

    def run(self) -> None:
        """Let everything happen, then book idle energy up to the end."""
        event = self.next_event()
        while event is not None:
            self.now_s = event[0]
            event[1]()
            event = self.next_event()
            if event is None or event[0] > self.now_s:
                for instance in self.instances:
                    batch.plan(instance, self.order, self.exact, self.now_s)
                event = self.next_event()
        for instance in self.instances:
            if instance.state != DOWN:
                batch.book_idle(instance, self.now_s)

    def next_event(self) -> tuple[float, Callable[[], None]] | None:
        """Time and action of the next event, None after the last."""
        events: list[tuple[float, Callable[[], None]]] = []
        for instance in self.instances:
            if instance.run is not None:
                events.append((instance.run.end_s, partial(self.on_run_end, instance)))
        for workflow in self.workflows:
            if workflow.tool_until_s is not None:
                events.append((workflow.tool_until_s, partial(self.on_tool_return, workflow)))
        if self.coming:
            events.append((self.coming[0].arrival_s, self.on_arrival))
        return min(events, key=lambda event: event[0], default=None)

    def on_run_end(self, instance: Instance) -> None:
        """Completed calls teach their step and move their workflows on."""
        for call in batch.finish_run(instance, self.now_s):
            history.learn(self.instances, self.steps, call)
            self.end_call(call, COMPLETED, NO_CAUSE)
            self.workflows[call.workflow].attained_s += call.finished_s - call.started_s
            self.leave_group(call)
            if not self.workflows[call.workflow].open:
                self.move_on(self.workflows[call.workflow])

    def on_tool_return(self, workflow: Workflow) -> None:
        """Tool time is over."""
        workflow.tool_until_s = None
        self.move_on(workflow)

    def on_arrival(self) -> None:
        """The next workflow arrives."""
        workflow = self.coming.pop(0)
        workflow.state = ACTIVE
        workflow.group_done_s = self.now_s
        history.draw_up_plan(workflow, self.kinds[workflow.kind], self.steps)
        self.move_on(workflow)

    def end_call(self, call: Call, state: int, cause: int) -> None:
        """A call ends."""
        call.state, call.cause, call.finished_s = state, cause, self.now_s

    def leave_group(self, call: Call) -> None:
        """The group is done when all its calls have ended and their tools have returned."""
        workflow = self.workflows[call.workflow]
        workflow.open.remove(call)
        workflow.left.append(call)
        workflow.group_done_s = max(workflow.group_done_s, done_s(workflow, call))

    def move_on(self, workflow: Workflow) -> None:
        """No call of the workflow is open: end, wait for tools, or start the next group."""
        while not workflow.open:
            if workflow.left:
                self.close_group(workflow)
            if not workflow.coming or workflow.cause != NO_CAUSE:
                self.end_workflow(workflow)
                return
            if workflow.group_done_s > self.now_s:
                workflow.tool_until_s = workflow.group_done_s
                return
            self.start_group(workflow)

    def close_group(self, workflow: Workflow) -> None:
        """Mark the call that the group waited for; time from its end to that of its tools is the workflow's."""
        last_s = max(done_s(workflow, call) for call in workflow.left)
        critical = [call for call in workflow.left if done_s(workflow, call) == last_s][-1]
        if workflow.cause != NO_CAUSE:
            critical = max(workflow.left, key=lambda call: (call.finished_s, call.row))
        elif last_s > self.now_s:
            workflow.tool_s += last_s - critical.finished_s
        critical.critical = 1
        workflow.left = []

    def end_workflow(self, workflow: Workflow) -> None:
        """Done, or broken with the remaining calls cancelled."""
        for group in workflow.coming:
            for call in group:
                self.end_call(call, CANCELLED, WORKFLOW_ENDED)
        calls = [call for call in self.calls if self.workflows[call.workflow] is workflow]
        if workflow.cause == NO_CAUSE and not any(call.state == COMPLETED for call in calls):
            workflow.cause = calls[-1].cause
        workflow.state = DONE if workflow.cause == NO_CAUSE else BROKEN
        workflow.finished_s = self.now_s
        if workflow.state == DONE:
            history.learn_template(self.kinds[workflow.kind], workflow)

    def start_group(self, workflow: Workflow) -> None:
        """Budgets for the group, then a place for each of its calls."""
        group = workflow.coming.pop(0)
        workflow.open = list(group)
        workflow.group_done_s = self.now_s
        history.set_budgets(workflow, group, self.steps, self.now_s)
        for call in group:
            self.place(call)

    def place(self, call: Call) -> None:
        """Put the call into a queue, or refuse it."""
        instance = dispatch.choose(self.rule, self.instances, call, self.steps, self.rotation)
        if instance is None:
            self.refuse(call)
            return
        self.rotation = (instance.row + 1) % len(self.instances)
        call.instance, call.placed_s, call.state = instance.row, self.now_s, WAITING
        call.limit = min(call.output_tokens, instance.max_model_len - call.input_tokens)
        instance.queued_work_s += call.t_comp_s
        instance.dispatched_s += call.t_comp_s
        orders.count_in(instance, call.workflow)
        call.log.append(("queue", self.now_s))
        instance.queue.append(call)
        batch.cut_run(instance, self.now_s)

    def refuse(self, call: Call) -> None:
        """Nobody can take the call; its workflow ends with the group unless it goes on."""
        longest = max((e.max_model_len for e in self.instances), default=-math.inf)
        cause = NO_INSTANCE if call.input_tokens < longest else TOO_LONG
        self.end_call(call, REFUSED, cause)
        self.leave_group(call)
        workflow = self.workflows[call.workflow]
        if not workflow.go_on and workflow.cause == NO_CAUSE:
            workflow.cause = cause


def done_s(workflow: Workflow, call: Call) -> float:
    """When nothing more is waited for on account of the call; nobody waits for tools after the last group."""
    return call.finished_s + call.tool_s if workflow.coming else call.finished_s
