"""The text of a trace's calls: of the recorded lengths, with prefixes shared and conversations continued for real."""

from dataclasses import dataclass, field
from typing import Any

from control.adapters import filler
from control.adapters.completions import Answer

Message = dict[str, str]
KEPT_SHARE = 0.5  # of a context below which a conversation is taken to have started anew


@dataclass
class Talk:
    """A conversation so far."""

    messages: list[Message] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)  # context after each message


@dataclass
class Prompts:
    """Makes messages. `rate` is how the server's tokenizer counts our words."""

    rate: filler.Rate
    seed: int
    talks: dict[int, Talk] = field(default_factory=dict)

    def of(self, call: Any, row: int) -> list[Message]:
        """The messages of call `row`: what the conversation has said, or the shared prompt, then new words."""
        if call["stream"] >= 0:
            return self.turn(call, row)
        head = self.shared(call)
        return [*head, self.user(int(call["input_tokens"]) - self.shared_tokens(call), f"call {row}")]

    def turn(self, call: Any, row: int) -> list[Message]:
        """The next message of a conversation behind what of it still counts."""
        talk = self.talks.setdefault(int(call["stream"]), Talk())
        shrink(talk, int(call["history_tokens"]))
        if not talk.messages:
            talk.messages = self.shared(call)
            talk.tokens = [self.shared_tokens(call)] * len(talk.messages)
        behind = talk.tokens[-1] if talk.tokens else 0
        talk.messages.append(self.user(int(call["input_tokens"]) - behind, f"turn {row}"))
        talk.tokens.append(int(call["input_tokens"]))
        return list(talk.messages)

    def answered(self, call: Any, answer: Answer) -> None:
        """Keep the answer: the next turn continues it."""
        talk = self.talks.get(int(call["stream"]))
        if talk is None or answer.failure:
            return
        talk.messages.append({"role": "assistant", "content": answer.text or " "})
        talk.tokens.append((answer.prompt_tokens or talk.tokens[-1]) + answer.tokens)

    def shared(self, call: Any) -> list[Message]:
        """The prompt that calls of the same key share, as far as this call shares it."""
        tokens = self.shared_tokens(call)
        if not tokens:
            return []
        words = filler.text(self.rate.words(tokens), f"{self.seed} shared {int(call['shared_key'])}")
        return [{"role": "system", "content": words}]

    def shared_tokens(self, call: Any) -> int:
        """Tokens of the shared prompt."""
        return int(call["shared_tokens"]) if call["shared_key"] >= 0 else 0

    def user(self, tokens: int, key: str) -> Message:
        """A message of about `tokens` tokens, of one word at least."""
        words = max(1, self.rate.words(tokens - self.rate.overhead_tokens))
        return {"role": "user", "content": filler.text(words, f"{self.seed} {key}")}


def shrink(talk: Talk, history_tokens: int) -> None:
    """Drop the latest messages until what is left fits the recorded history, all of them where little of it does.

    A conversation that was compacted goes on with less context than it had.
    """
    while talk.tokens and talk.tokens[-1] > history_tokens and talk.tokens[-1] - history_tokens > slack(talk):
        talk.tokens.pop()
        talk.messages.pop()
    if talk.messages and talk.tokens[-1] < KEPT_SHARE * history_tokens:
        talk.tokens.clear()
        talk.messages.clear()


def slack(talk: Talk) -> float:
    """Tokens by which a conversation may be longer than recorded: answers' texts are counted anew as prompts."""
    return 16.0 + 0.1 * talk.tokens[-1]
