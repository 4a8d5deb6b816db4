"""The slow, obvious twin: the whole model in plain Python, to compare the compiled one with bit for bit.

Events are found by looking at everything. At one instant runs end before KV arrives, that before tools return, those
before idle contexts expire, these before workflows arrive, lower rows first; instances are planned once nothing more
happens at that instant.
"""

import math
from collections.abc import Callable
from functools import partial

from control.policy.codes import ACTIVE, BROKEN, BY_CLIENT, CANCELLED, COMPLETED, DONE, DOWN, NO_CAUSE, WORKFLOW_ENDED
from tests.naive import batch, history, pins
from tests.naive.conversations import Conversing
from tests.naive.placing import done_s
from tests.naive.state import Call, Instance, Workflow


class NaiveTwin(Conversing):
    """A copy of a world that has not run yet, and its events."""

    def run(self) -> None:
        """Let everything happen, then book idle energy up to the end."""
        self.advance(math.inf)
        for instance in self.instances:
            if instance.state != DOWN and instance.run is None:
                batch.book_idle(instance, self.now_s)

    def advance(self, until_s: float) -> None:
        """Let everything happen up to a moment."""
        self.plan()
        event = self.next_event()
        while event is not None and event[0] <= until_s:
            self.now_s = event[0]
            event[1]()
            self.retry_held()
            event = self.next_event()
            if event is None or event[0] > self.now_s:
                self.plan()
                event = self.next_event()
        if until_s < math.inf:
            self.now_s = until_s

    def plan(self) -> None:
        """Have every instance that stands at a batch boundary go on."""
        for instance in self.instances:
            batch.plan(instance, self.order, self.exact, self.now_s)

    def next_event(self) -> tuple[float, Callable[[], None]] | None:
        """Time and action of the next event, None after the last."""
        events: list[tuple[float, Callable[[], None]]] = []
        for instance in self.instances:
            if instance.run is not None:
                events.append((instance.run.end_s, partial(self.on_run_end, instance)))
        for call in self.calls:
            if call.arrives_s is not None:
                events.append((call.arrives_s, partial(self.on_arrival_of_kv, call)))
        for workflow in self.workflows:
            if workflow.tool_until_s is not None:
                events.append((workflow.tool_until_s, partial(self.on_tool_return, workflow)))
        for conversation in self.conversations:
            if conversation.expires_s is not None:
                events.append((conversation.expires_s, partial(pins.expire, conversation)))
        if self.coming:
            events.append((self.coming[0].arrival_s, self.on_arrival))
        return min(events, key=lambda event: event[0], default=None)

    def on_run_end(self, instance: Instance) -> None:
        """Completed calls teach their step and move their workflows on; prefilled ones go on elsewhere."""
        ended, handed = batch.finish_run(instance, self.now_s)
        for call in ended:
            if call.cause == BY_CLIENT:
                self.end_call(call, CANCELLED, BY_CLIENT)
                pins.free_call(call)
            else:
                self.complete(call)
            self.leave_group(call)
            self.go_on(call)
        for call in handed:
            self.hand_over(instance, call)
            self.go_on(call)

    def complete(self, call: Call) -> None:
        """The call reached its length."""
        history.learn(self.instances, self.steps, call)
        self.end_call(call, COMPLETED, NO_CAUSE)
        self.workflows[call.workflow].attained_s += call.finished_s - call.started_s
        pins.end_turn(self.rules, call, self.now_s)

    def go_on(self, call: Call) -> None:
        """Go on with the call's workflow if none of its calls is open."""
        workflow = self.workflows[call.workflow]
        if not workflow.open:
            self.move_on(workflow)

    def on_arrival_of_kv(self, call: Call) -> None:
        """KV arrives where its call goes on."""
        self.on_kv(call)
        self.go_on(call)

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
        pins.end_all(self.conversations, workflow)

    def start_group(self, workflow: Workflow) -> None:
        """Budgets for the group, then a place for each of its calls."""
        group = workflow.coming.pop(0)
        workflow.open = list(group)
        workflow.group_done_s = self.now_s
        history.set_budgets(workflow, group, self.steps, self.now_s)
        for call in group:
            self.place(call)
