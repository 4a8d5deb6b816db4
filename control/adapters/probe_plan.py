"""Which experiments a calibration makes of a server, within its limits, the most telling ones first."""

from collections.abc import Iterator
from dataclasses import dataclass

from control.model.measured import Limits

PREFILLS = (512, 32, 2048, 128, 1024, 256, 4096, 64, 8192, 768)
STREAMS = (1, 8, 4, 2, 16, 32, 64, 128)
CONTEXTS = (64, 1024, 256, 4096)
BESIDE = (256, 64, 1024)  # prompts that come in beside decoding streams
DEFAULT_BUDGET_TOKENS = 2048  # vLLM's max_num_batched_tokens
DEFAULT_SEATS = 32  # streams at most where the server does not say how many it admits
KV_SHARE = 0.7  # of the KV cache that an experiment may fill: beyond, calls are preempted
OUTPUTS = 32  # tokens in which nothing but decoding happens


@dataclass(frozen=True)
class Experiment:
    """B streams behind a context, a prompt alone, or a prompt beside streams."""

    regime: str  # "decode", "prefill", "mixed"
    streams: int = 0
    context: int = 0  # tokens of a stream's prompt
    prefill: int = 0  # tokens of the prompt

    def outputs(self, budget_tokens: int) -> int:
        """Tokens a stream generates: enough for all to decode together after the last one's prefill."""
        waiting = self.streams * self.context // budget_tokens + self.streams // 4
        return 0 if self.regime == "prefill" else OUTPUTS + 2 * waiting

    def __str__(self) -> str:
        """In words."""
        streams = f"{self.streams} x {self.context} tokens decoding"
        if self.regime == "prefill":
            return f"prefill of {self.prefill} tokens"
        return streams if self.regime == "decode" else f"prefill of {self.prefill} tokens beside {streams}"


def plan(limits: Limits) -> list[Experiment]:
    """The experiments that the server can take, essentials first."""
    return [experiment for experiment in dict.fromkeys(wanted()) if fits(experiment, limits)]


def wanted() -> Iterator[Experiment]:
    """All experiments in order of what they tell."""
    prefills, decodes = list(lone_prefills()), list(decoding())
    beside = [Experiment("mixed", b, context, p) for p in BESIDE for b in STREAMS[:5] for context in CONTEXTS[:2]]
    parts = prefills[:3], decodes[:6], beside[:3], prefills[3:], decodes[6:16], beside[3:9], decodes[16:], beside[9:18]
    for part in parts:
        yield from part


def lone_prefills() -> Iterator[Experiment]:
    """Prompts alone."""
    for tokens in PREFILLS:
        yield Experiment("prefill", prefill=tokens)


def decoding() -> Iterator[Experiment]:
    """Streams by number and context: the corners of both come first."""
    places = [(s + c, b, context) for s, b in enumerate(STREAMS) for c, context in enumerate(CONTEXTS)]
    for _, b, context in sorted(places, key=lambda place: place[0]):
        yield Experiment("decode", b, context)


def fits(experiment: Experiment, limits: Limits) -> bool:
    """Whether the server has the seats, the context and the KV cache for it."""
    budget = limits.max_num_batched_tokens or DEFAULT_BUDGET_TOKENS
    longest = max(experiment.context + experiment.outputs(budget), experiment.prefill + 1)
    kv = experiment.streams * (experiment.context + experiment.outputs(budget)) + experiment.prefill
    seats = limits.max_num_seqs or DEFAULT_SEATS
    takes = experiment.streams + (experiment.regime == "mixed") <= seats
    whole = experiment.regime != "mixed" or experiment.prefill + experiment.streams <= budget  # one iteration
    roomy = limits.kv_tokens is None or kv <= KV_SHARE * limits.kv_tokens
    return takes and whole and roomy and longest * 1.1 <= (limits.max_model_len or 1 << 30)
