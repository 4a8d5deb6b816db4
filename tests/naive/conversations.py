"""The way of a conversation: prefilled on the prefill tier, its KV moved once, then served by one decoder."""

from control.policy.codes import (
    AMPD,
    BY_SLACK,
    COLLOCATED,
    DECODE,
    DOWN,
    HELD,
    INSTANCE_LOST,
    PREFILL_ROLE,
    TRANSFER,
    UNFIT,
    UP,
)
from tests.naive import batch, cache, dispatch, pins
from tests.naive.placing import Placing
from tests.naive.state import Call, Instance


class Conversing(Placing):
    """The placing of calls by what their conversations hold, and where."""

    def place(self, call: Call) -> None:
        """Put the call into a queue, send its KV, hold it or refuse it, by the policy in force."""
        call.only_prefills = False
        if not self.rules.sets_aside:
            self.place_alone(call)
            return
        if call.home not in self.decoders(call.context):
            pins.lose(call.conversation, UNFIT if call.home is not None and call.home.state == UP else INSTANCE_LOST)
        pins.begin_turn(self.rules, call)
        if call.home is not None:
            if not self.goes_back(call, call.home):
                self.put_here(call, {call.home.row: 0.0})
        elif self.rules.hands_over and self.decoders(call.context + 1) and self.prefillers(call):
            call.arrived = 0
            self.put_prefill(call, self.prefillers(call))
        elif not self.decoders(call.context):
            self.refuse(call)
        elif score := self.roomy(call):
            self.settle_here(call, score)
        else:
            self.hold(call)

    def decoders(self, context: int) -> list[Instance]:
        """Instances that may decode a context: those up and long enough, of the prefill tier only without tiers."""
        return [
            e
            for e in self.instances
            if e.state == UP
            and context < e.max_model_len
            and (e.role != PREFILL_ROLE or self.rules.dispatch == COLLOCATED)
        ]

    def prefillers(self, call: Call) -> dict[int, float]:
        """Minus the queued work of the instances of the prefill tier that may take the call, by row."""
        return {
            e.row: -e.queued_work_s
            for e in self.instances
            if e.role == PREFILL_ROLE and e.state == UP and call.context < e.max_model_len
        }

    def roomy(self, call: Call) -> dict[int, float]:
        """Unreserved blocks of the decoders with room, by row; any has for a workflow that keeps KV already.

        No other call passes those that are held.
        """
        able = self.decoders(call.context)
        if not pins.pinned_for(self.conversations, self.workflows[call.workflow]):
            if self.held and call not in self.held:
                return {}
            able = [e for e in able if e.unreserved >= pins.need(self.rules, call, e)]
        return {e.row: float(e.unreserved) for e in able}

    def first(self, score: dict[int, float]) -> Instance:
        """The best by score."""
        return dispatch.ranked(self.instances, score, self.rotation)[0]

    def put(self, call: Call, score: dict[int, float], t_comp_s: float) -> None:
        """Into the queue of the best by score, where it is estimated to take `t_comp_s`."""
        order = dispatch.ranked(self.instances, score, self.rotation)
        dispatch.keep_decision(call, order, score, t_comp_s)
        self.enqueue(call, order[0])

    def put_here(self, call: Call, score: dict[int, float]) -> None:
        """Place the call for all its work."""
        instance = self.first(score)
        call.only_prefills = False
        held = int(dispatch.cached_tokens(instance, call))
        outputs = self.steps[call.step].mean_output
        self.put(call, score, instance.costs.exec_s(call.context, outputs, held))

    def put_prefill(self, call: Call, score: dict[int, float]) -> None:
        """Place the call on the prefill tier for what is not fetched."""
        call.only_prefills = True
        self.put(call, score, self.first(score).costs.prefill_s(call.context, call.arrived))

    def settle_here(self, call: Call, score: dict[int, float]) -> None:
        """The best by score does all the call's work."""
        pins.settle(self.rules, call, self.workflows[call.workflow], self.first(score))
        self.put_here(call, score)

    def settle_far(self, call: Call, score: dict[int, float]) -> None:
        """Send the call's KV from where it prefilled to the best by score."""
        target = self.first(score)
        pins.settle(self.rules, call, self.workflows[call.workflow], target)
        assert call.came_from is not None
        self.send(call, call.came_from, target, call.kv, 0)

    def hold(self, call: Call) -> None:
        """The call waits, behind those that do already, until a decoder has room."""
        call.state, call.instance = HELD, -1
        call.log.append(("hold", self.now_s))
        self.held.append(call)

    def let_in(self, call: Call) -> None:
        """The call is held no more; it waited for others."""
        self.held.remove(call)
        call.queue_other_s += self.now_s - call.log[-1][1]
        call.log.append(("let in", self.now_s))

    def retry_held(self) -> None:
        """Let in the held calls of workflows that keep KV by now, then, in order, until one finds no room."""
        for call in list(self.held):
            if pins.pinned_for(self.conversations, self.workflows[call.workflow]) and self.roomy(call):
                self.take_held(call)
        while self.held and self.roomy(self.held[0]):
            self.take_held(self.held[0])

    def take_held(self, call: Call) -> None:
        """A decoder takes the held call."""
        score = self.roomy(call)
        self.let_in(call)
        if call.emitted:
            self.settle_far(call, score)
        else:
            self.settle_here(call, score)

    def send(self, call: Call, source: Instance, target: Instance, tokens: int, stay: int) -> None:
        """Leading `tokens` tokens of KV are to stand on `target`, where `stay` of them are: the others move now."""
        call.state, call.instance, call.arrived, call.at_home = TRANSFER, target.row, tokens, stay
        call.log.append(("transfer", self.now_s))
        source.sent += 1
        source.sent_tokens += tokens - stay
        if call.conversation is not None:
            call.conversation.sent += 1
        call.arrives_s = self.now_s + source.costs.transfer_ms(tokens - stay) * 1e-3

    def hand_over(self, source: Instance, call: Call) -> None:
        """The call has prefilled on `source`, which runs nothing while it hands over what it computed."""
        call.only_prefills = False
        home = call.home
        if home is not None and home in self.decoders(call.context) and call.arrived > 0:
            batch.hold_up(source, source.costs.send_ms(call.kv - call.arrived), self.now_s)
            self.send(call, source, home, call.kv, call.arrived)
        else:
            batch.hold_up(source, source.costs.send_ms(call.kv), self.now_s)
            self.find_decoder(call, source)

    def find_decoder(self, call: Call, source: Instance) -> None:
        """Send the call's KV home, or to a decoder with room, or hold it; refuse it where no decoder is up."""
        call.came_from, able = source, self.decoders(call.context)
        if not able:
            self.refuse(call)
        elif call.home in able:
            self.send(call, source, call.home, call.kv, 0)
        else:
            pins.free_call(call)
            score = self.roomy(call)
            self.settle_far(call, score) if score else self.hold(call)

    def on_kv(self, call: Call) -> None:
        """The call's KV arrives, or finds the instance gone."""
        call.arrives_s = None
        call.log.append(("arrived", self.now_s))
        instance = self.instances[call.instance]
        if instance.state == DOWN:
            assert call.came_from is not None
            self.find_decoder(call, call.came_from)
            return
        cache.arrive(instance, call)
        call.arrived = 0
        outputs = self.steps[call.step].mean_output
        self.put(call, {instance.row: 0.0}, instance.costs.decode_s(call.context, outputs))

    def goes_back(self, call: Call, home: Instance) -> bool:
        """Under AMPD, place a turn on the prefill tier, which will fetch its history, if that is its route."""
        if self.rules.dispatch != AMPD or call.emitted or home not in self.decoders(call.context + 1):
            return False
        if not self.prefillers(call):
            return False
        target = self.first(self.prefillers(call))
        history = min(cache.standing_tokens(home, call), call.context - 1)
        if history == 0 or not self.is_sent_back(call, home, target):
            return False
        call.arrived = history
        self.put_prefill(call, self.prefillers(call))
        return True

    def is_sent_back(self, call: Call, home: Instance, there: Instance) -> bool:
        """By mistake, as often as is injected; or by slack, as predicted."""
        if self.rules.router != BY_SLACK:
            return call.draw_b < self.rules.error
        wrong = max(0.0, 1.0 + self.rules.error * 3.0**0.5 * (2.0 * call.draw_b - 1.0))
        tokens = max(1, int((call.input_tokens - call.history_tokens) * wrong))
        return not has_itl_slack(call, home, tokens) and has_ttft_slack(call, home, there, tokens)


def has_itl_slack(call: Call, home: Instance, tokens: int) -> bool:
    """Whether the increment beside what decodes at home takes no more than 5 x a step of the call alone."""
    decoding = [other for other in home.batch if other.state == DECODE]
    step_ms = home.costs.append_ms(call.history_tokens, tokens, len(decoding), sum(other.kv for other in decoding))
    return step_ms <= 5.0 * home.costs.decode_ms(1, call.history_tokens, 1)


def has_ttft_slack(call: Call, home: Instance, there: Instance, tokens: int) -> bool:
    """Whether queue, prefill and both moves of KV take no more than 5 x the prefill alone at home."""
    held = call.history_tokens
    moves_ms = home.costs.transfer_ms(held) + there.costs.transfer_ms(tokens)
    there_ms = there.costs.prefill_s(held + tokens, held) * 1e3
    ttft_ms = there.queued_work_s * 1e3 + there_ms + moves_ms
    return ttft_ms <= 5.0 * (home.costs.prefill_s(held + tokens, held) * 1e3)
