"""Where conversations are kept, and what is set aside for them."""

from control.policy.codes import COMPACTED, EVICTED, EXPIRED, ORACLE
from tests.naive import cache
from tests.naive.rules import Rules
from tests.naive.state import Call, Conversation, Instance, Workflow


def pinned_for(conversations: list[Conversation], workflow: Workflow) -> int:
    """Conversations of a workflow that have a home."""
    return sum(c.home is not None and c.workflow is workflow for c in conversations)


def need(rules: Rules, call: Call, instance: Instance) -> int:
    """Blocks that must be unreserved for the call's conversation: what it holds now, or ever; at most all."""
    tokens = call.context
    if rules.need == ORACLE and call.conversation is not None and rules.pins:
        tokens = call.conversation.peak
    elif rules.need == ORACLE:
        tokens = call.input_tokens + call.output_tokens
    return min(cache.blocks_for(instance, tokens), instance.blocks)


def free_call(call: Call) -> None:
    """Nothing is set aside for the call by itself any more."""
    call.dest, call.reserved = None, 0


def unpin(conversation: Conversation) -> None:
    """The conversation has no home any more, and nothing is set aside for it."""
    conversation.home, conversation.reserved, conversation.expires_s = None, 0, None


def lose(conversation: Conversation | None, cause: int) -> None:
    """The conversation loses its home; a later turn finds out why."""
    if conversation is not None and conversation.home is not None:
        unpin(conversation)
        conversation.lost_cause = cause


def settle(rules: Rules, call: Call, workflow: Workflow, instance: Instance) -> None:
    """Set blocks aside on the instance: for the whole conversation where those have a home, else for the call."""
    blocks = need(rules, call, instance) if rules.sets_aside else 0
    conversation = call.conversation
    if conversation is None or not rules.pins:
        call.dest, call.reserved = instance, blocks
        return
    unpin(conversation)
    conversation.home, conversation.workflow, conversation.reserved = instance, workflow, blocks


def follow_context(rules: Rules, call: Call) -> None:
    """What was set aside by what was seen follows what is seen."""
    conversation = call.conversation
    if conversation is None or conversation.home is None:
        return
    if rules.sets_aside and rules.need != ORACLE:
        conversation.reserved = cache.blocks_for(conversation.home, call.context)


def note_break(conversation: Conversation, cause: int) -> None:
    """A turn found the conversation's KV gone."""
    conversation.breaks += 1
    conversation.break_cause = cause


def begin_turn(rules: Rules, call: Call) -> None:
    """A turn is about to be placed: what became of the conversation since the last one shows."""
    conversation = call.conversation
    if conversation is None:
        return
    conversation.expires_s = None
    conversation.was_home = conversation.home is not None
    if conversation.turns > 0 and call.emitted == 0:
        if conversation.home is None and conversation.lost_cause >= 0:
            note_break(conversation, conversation.lost_cause)
            conversation.lost_cause = -1
        elif call.input_tokens < conversation.prompt_tokens and call.restarts == 0:
            note_break(conversation, COMPACTED)
    follow_context(rules, call)


def note_recompute(instance: Instance, call: Call) -> None:
    """A turn begins with what was cached or fetched: what else of its history could have been is computed again."""
    conversation, size = call.conversation, instance.block_size
    if conversation is None or call.history_tokens == 0 or call.emitted or call.preemptions:
        return
    lost = (min(call.history_tokens, call.target) - 1) // size - call.kv // size
    if lost > 0:
        conversation.recomputed += lost * size
        if conversation.home is instance and conversation.was_home and instance.caching:
            note_break(conversation, EVICTED)


def end_turn(rules: Rules, call: Call, now_s: float) -> None:
    """The call completed: its conversation is idle until the next turn."""
    free_call(call)
    conversation = call.conversation
    if conversation is None:
        return
    conversation.turns += 1
    conversation.tokens = call.context
    conversation.prompt_tokens = call.input_tokens
    conversation.input_tokens += call.input_tokens
    conversation.cached_tokens += min(call.cached_tokens, call.input_tokens)
    conversation.last_s, conversation.first_token_s = now_s, call.first_token_s
    if conversation.home is not None:
        follow_context(rules, call)
        if rules.idle_ttl_s < 1e300:
            conversation.expires_s = now_s + rules.idle_ttl_s


def drop_context(conversation: Conversation) -> None:
    """What the conversation left at its home is no longer cached."""
    home = conversation.home
    if home is not None and conversation.key in home.streams:
        cache.forget(home, home.streams[conversation.key])


def expire(conversation: Conversation) -> None:
    """The conversation was idle for as long as a context is kept."""
    drop_context(conversation)
    conversation.expires_s = None
    lose(conversation, EXPIRED)


def end_all(conversations: list[Conversation], workflow: Workflow) -> None:
    """The workflow ended, and with it its conversations."""
    for conversation in conversations:
        if conversation.home is not None and conversation.workflow is workflow:
            drop_context(conversation)
            unpin(conversation)
