"""What happens to the fleet or is done to it: failures, drains, returns, clients that give up, another policy."""

from control.policy.codes import (
    ACTIVE,
    BY_CLIENT,
    CANCELLED,
    DECODE,
    DOWN,
    DRAINING,
    HELD,
    INSTANCE_LOST,
    NO_CAUSE,
    PREFILL,
    TRANSFER,
    UNFIT,
    UP,
    WAITING,
    PolicyCodes,
)
from tests.naive import batch, cache, pins
from tests.naive.state import Call, Instance, Workflow
from tests.naive.twin import NaiveTwin


class Disturbed(NaiveTwin):
    """A slow twin to which things happen."""

    def kill(self, instance: Instance) -> None:
        """The instance fails: its KV is lost, and its calls are placed anew from their beginning."""
        if instance.state == DOWN:
            return
        self.break_off(instance)
        instance.state = DOWN
        for conversation in self.conversations:
            if conversation.home is instance:
                pins.lose(conversation, INSTANCE_LOST)
        lost = [*instance.batch, *instance.queue]
        forget_everything(instance)
        for call in lost:
            self.start_over(call)
        instance.accounted_s = instance.sending_until_s = self.now_s
        self.replace_held()

    def break_off(self, instance: Instance) -> None:
        """Nothing of the run under way counts but its joules, which its calls share alike."""
        run = instance.run
        if run is None:
            batch.book_idle(instance, self.now_s)
            return
        joules, run.end_s = batch.book_run(instance, self.now_s), self.now_s
        for call in instance.batch:
            call.energy_j += joules / len(instance.batch)

    def start_over(self, call: Call) -> None:
        """All that the call has gone through is lost to the failure."""
        call.failure_s = self.now_s - call.ready_s
        call.queue_own_s = call.queue_other_s = 0.0
        call.log.clear()
        call.emitted = call.kv = call.chunk = call.arrived = call.own = call.base = 0
        call.base_key, call.first_token_s = -1, -1.0
        call.restarts += 1
        pins.free_call(call)
        if call.cause == BY_CLIENT:
            self.give_up(call)
        else:
            self.place(call)
        self.go_on(call)

    def revive(self, instance: Instance) -> None:
        """The instance is back, empty, or ends its drain."""
        if instance.state == DOWN:
            instance.accounted_s = self.now_s
        elif instance.run is None:
            batch.book_idle(instance, self.now_s)
        instance.state = UP

    def drain(self, instance: Instance) -> None:
        """The instance finishes what it has and is given nothing new."""
        instance.state = DRAINING
        self.replace_held()

    def cancel(self, workflow: Workflow) -> None:
        """The client gives the workflow up, if it is under way."""
        if workflow.state != ACTIVE or workflow.cause != NO_CAUSE:
            return
        workflow.cause = BY_CLIENT
        if not workflow.open:
            workflow.tool_s -= workflow.group_done_s - self.now_s
            workflow.tool_until_s = None
            self.end_workflow(workflow)
            return
        for call in list(workflow.open):
            self.cancel_call(call)
        if not workflow.open:
            self.move_on(workflow)

    def cancel_call(self, call: Call) -> None:
        """At once, or at the end of the iteration where the call runs."""
        instance = self.instances[call.instance]
        if call.state in (PREFILL, DECODE):
            call.cause = BY_CLIENT
            batch.cut_run(instance, self.now_s)
            return
        if call.state == HELD:
            self.let_in(call)
        elif call.state == TRANSFER:
            call.arrives_s = None
        else:
            self.leave_queue(call, instance)
        call.log.append(("end", self.now_s))
        self.give_up(call)

    def leave_queue(self, call: Call, instance: Instance) -> None:
        """The call waits no more, and nothing of it is kept."""
        if call.log[-1][0] == "queue":
            batch.leave_queue(instance, call, self.now_s)
        instance.queue.remove(call)
        batch.unload(instance, call)
        if call.row in instance.remnants:
            cache.forget(instance, instance.remnants[call.row])

    def give_up(self, call: Call) -> None:
        """The call, which is nowhere any more, ends because its client gave it up."""
        pins.free_call(call)
        self.end_call(call, CANCELLED, BY_CLIENT)
        self.leave_group(call)

    def change_policy(self, codes: PolicyCodes) -> None:
        """Another policy is in force: it keeps no conversations, or goes on with those that are kept."""
        self.rules.dispatch, self.rules.queue = codes
        if not self.rules.pins:
            for conversation in self.conversations:
                pins.lose(conversation, UNFIT)
        if not self.rules.hands_over:
            for call in self.calls:
                self.stay(call)
        self.replace_held()

    def stay(self, call: Call) -> None:
        """A call that was only to prefill where it is does all its work there."""
        if call.only_prefills and call.state in (WAITING, PREFILL):
            call.only_prefills = False
            room = self.instances[call.instance].max_model_len - call.input_tokens
            call.limit = min(call.limit, room)

    def replace_held(self) -> None:
        """Held calls that no decoder may take any more, or for which none need wait, are placed anew."""
        for call in list(self.held):
            if call in self.held and not (self.rules.sets_aside and self.decoders(call.context)):
                self.let_in(call)
                self.place(call)
                self.go_on(call)


def forget_everything(instance: Instance) -> None:
    """The instance lost its memory and what was under way there."""
    instance.batch, instance.queue, instance.lru = [], [], []
    instance.shared, instance.streams, instance.remnants = {}, {}, {}
    instance.queued_work_s = 0.0
