"""How one simulated server behaves, frozen at the door."""

from dataclasses import dataclass, field
from functools import cached_property

from control.adapters.mock.faults import Faults
from control.config import within
from control.errors import SettingError
from control.model.fleet import InstanceSpec, capacity

ROLES = ("mixed", "prefill", "decode")
POLICIES = ("fcfs", "priority")
MOST_PORT = 65_535


@dataclass(frozen=True)
class MockSettings:
    """One server. With `gpu` the twin tells when tokens come, without it fixed times do. SettingError on bad values."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any free one
    names: tuple[str, ...] = ()  # models it serves; (): the catalogue's name, else "mock"
    gpu: str | None = None  # catalogue key; None: fixed times
    model: str | None = None  # catalogue key
    ttft_ms: float = 50.0  # ms from a seat to the first token, fixed times only
    tpot_ms: float = 10.0  # ms from token to token, fixed times only
    seats: int = 256  # max_num_seqs
    max_num_batched_tokens: int = 2048
    block_size: int = 16  # tokens a KV block
    kv_tokens: int | None = None  # KV capacity, tokens; None: the catalogue's, else 400,000
    max_model_len: int | None = None  # tokens of context; None: the catalogue's, else 32,768
    mean_output: float = 128.0  # tokens of an answer whose length the request leaves open
    seed: int = 0
    speed: float = 1.0  # simulated s per wall s
    role: str = "mixed"  # mixed | prefill | decode; told in /mock/stats, changes nothing
    scheduling_policy: str = "fcfs"  # fcfs | priority
    max_queued: int | None = None  # requests in flight above which 503 is answered; None: no limit
    lease_s: float = 30.0  # s a prefiller keeps the KV of a hand-over
    lookup_s: float = 1.0  # s after which a hand-over that cannot be found fails
    transfer_ms: float = 5.0  # ms of a KV transfer, fixed times only
    faults: Faults = field(default_factory=Faults)

    def __post_init__(self) -> None:
        """Refuse what no server could run with."""
        within("port", self.port, 0, MOST_PORT)
        for name in ("ttft_ms", "tpot_ms", "transfer_ms", "lookup_s"):
            within(name, getattr(self, name), 0.0, 3_600_000.0)
        for name in ("seats", "block_size", "mean_output", "max_num_batched_tokens"):
            within(name, getattr(self, name), 1, 1_000_000)
        within("speed", self.speed, 0.01, 1000.0)
        within("lease_s", self.lease_s, 0.001, 86_400.0)
        within("seed", self.seed, 0, 2**63 - 1)
        one_of("role", self.role, ROLES)
        one_of("scheduling_policy", self.scheduling_policy, POLICIES)
        if (self.gpu is None) != (self.model is None):
            raise SettingError("gpu and model name a profile of the catalogue together: give both or neither")
        self._check_sizes()

    def _check_sizes(self) -> None:
        """Capacity and context limit hold a block at least, and the catalogue knows the profile."""
        for name, value in zip(("kv_tokens", "max_model_len"), self.sizes, strict=True):
            within(name, value, self.block_size, 1_000_000_000)
        if self.max_queued is not None:
            within("max_queued", self.max_queued, 1, 1_000_000)

    @cached_property
    def served(self) -> tuple[str, ...]:
        """Names of the models it answers to."""
        return self.names or (self.model or "mock",)

    @property
    def spec(self) -> InstanceSpec:
        """The instance that the twin runs."""
        assert self.gpu is not None
        assert self.model is not None
        return InstanceSpec(
            name="mock",
            gpu=self.gpu,
            model=self.model,
            max_num_seqs=self.seats,
            max_num_batched_tokens=max(self.max_num_batched_tokens, self.seats),
            block_size=self.block_size,
            kv_tokens=self.kv_tokens,
            max_model_len=self.max_model_len,
        )

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """KV capacity and context limit, tokens.

        Raises:
            CatalogueError: the GPU or the model is unknown, or the weights do not fit.
        """
        kv_tokens, longest = 400_000 if self.kv_tokens is None else self.kv_tokens, 32_768
        if self.gpu is not None:
            kv_tokens, longest = capacity(self.spec)
        elif self.max_model_len is not None:
            longest = self.max_model_len
        kv_tokens -= kv_tokens % self.block_size  # a part of a block holds nothing
        return kv_tokens, min(longest, kv_tokens)


def one_of(name: str, value: str, accepted: tuple[str, ...]) -> None:
    """SettingError unless `value` is accepted."""
    if value not in accepted:
        raise SettingError(f"{name} = {value!r}: expected one of {', '.join(accepted)}")
