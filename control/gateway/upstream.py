"""A real server as the gateway knows it: where it is, whether it is well, what it said of itself last."""

from dataclasses import dataclass, field
from enum import Enum

from yarl import URL

from control.errors import FleetError
from control.model.fleet import Fleet, InstanceSpec


class Health(Enum):
    """Whether calls may be sent."""

    STARTING = "starting"  # not seen ready yet
    READY = "ready"
    SICK = "sick"  # the breaker is open: it is probed until it answers


class Fault(Enum):
    """The three classes of failure; only SICK feeds the breaker."""

    CLIENT = "client"  # the request itself is at fault
    FULL = "full"  # it is well, and has no room
    SICK = "sick"  # unreachable, broken, or silent


BREAK_AFTER = 3  # failures in a row
FULL_WORDS = (b"queue", b"overloaded", b"capacity", b"too many", b"admission", b"full", b"busy")


def fault_of(status: int, body: bytes = b"") -> Fault | None:
    """The class of a response by its status; None: it is an answer."""
    if status < 400:
        return None
    if status in (429, 503):
        return Fault.FULL if status == 429 or is_full(body) else Fault.SICK
    return Fault.CLIENT if status < 500 else Fault.SICK


def is_full(body: bytes) -> bool:
    """Whether a 503 speaks of load rather than of death."""
    lowered = body[:2000].lower()
    return any(word in lowered for word in FULL_WORDS)


def check_models(fleet: Fleet) -> None:
    """Refuse real servers of unlike models: a request for one would be answered by another.

    Raises:
        FleetError: two of them differ.
    """
    real = [spec for spec in fleet.instances if spec.url is not None]
    for spec in real[1:]:
        if model_of(spec) != model_of(real[0]):
            raise FleetError(
                f"{fleet.name}: {real[0].name} serves {model_of(real[0])}, {spec.name} serves {model_of(spec)}: "
                "one engine serves one model; give the same served_model where they are one"
            )


def model_of(spec: InstanceSpec) -> str:
    """What clients know the model of a server by."""
    return spec.served_model or spec.model


@dataclass
class Upstream:
    """One real server and its breaker."""

    row: int  # of its instance
    spec: InstanceSpec
    health: Health = Health.STARTING
    reason: str = "not asked yet"
    failures: int = 0  # calls in a row
    unwell: int = 0  # looks at its health in a row that failed
    served_model: str = ""
    max_model_len: int | None = None
    has_priority: bool = False  # takes calls in the order of their `priority`
    sent: int = 0  # calls sent, since the start
    faults: dict[str, int] = field(default_factory=lambda: {fault.value: 0 for fault in Fault})

    urls: dict[str, URL] = field(default_factory=dict)  # by path

    @property
    def base(self) -> str:
        """Its address without a slash at the end, nor /v1."""
        return (self.spec.url or "").rstrip("/").removesuffix("/v1")

    def url_of(self, path: str) -> URL:
        """The address of a path there; reading one takes longer than a decision, so it is kept."""
        if path not in self.urls:
            self.urls[path] = URL(self.base + path)
        return self.urls[path]

    def failed(self, fault: Fault, reason: str) -> bool:
        """Take in a failure; True: the breaker opens with it."""
        self.faults[fault.value] += 1
        if fault is not Fault.SICK:
            return False
        self.failures += 1
        self.reason = reason
        if self.failures < BREAK_AFTER or self.health is not Health.READY:
            return False
        self.health = Health.SICK
        return True

    def answered(self) -> None:
        """It has answered as it should."""
        self.failures = 0
