"""Settings, frozen at the door. Every field says its unit."""

from dataclasses import dataclass

from control.errors import SettingError

SPEED_BOUNDS = (0.1, 60.0)
LOAD_BOUNDS = (0.0, 3.0)
SLOW_BOUNDS = (0.25, 20.0)  # factor on the times of an instance


@dataclass(frozen=True)
class EngineSettings:
    """How the live engine runs. SettingError on a value out of bounds."""

    scenario: str = "demo-mixed"  # endless source of work; unused where a trace is given
    trace: str | None = None  # a trace file replayed once
    rate: float | None = None  # workflows/s for the trace; None: recorded times
    fleet: str | None = None  # fleet file or built-in name; None: the scenario's
    policy: str | None = None  # None: the scenario's, hexgen for a trace
    alpha: float = 0.5  # 0 balances the load, 1 takes the fastest GPU
    seed: int = 0
    speed: float = 1.0  # simulated s per wall s
    tick_s: float = 0.1  # wall s between looks at the clock and at commands
    record_s: float = 1.0  # wall s between snapshots
    window_s: float = 300.0  # simulated s over which live P95, attainment and rates are taken
    lease_ttl_s: float = 5.0  # wall s without a heartbeat after which another engine may take over

    def __post_init__(self) -> None:
        """Refuse values that the engine could not run with."""
        within("alpha", self.alpha, 0.0, 1.0)
        within("speed", self.speed, *SPEED_BOUNDS)
        if self.seed < 0:
            raise SettingError(f"seed = {self.seed}: expected a whole number >= 0")


@dataclass(frozen=True)
class GatewaySettings:
    """How requests are let in and passed on. SettingError on a value out of bounds."""

    host: str = "127.0.0.1"
    port: int = 8080
    most_waiting: int = 2000  # calls that may wait here; further ones get 429
    most_body_mb: int = 64  # of a request
    first_byte_s: float = 600.0  # a server may be silent for so long before the first token of an answer
    stall_s: float = 60.0  # and for so long inside a stream
    idle_s: float = 300.0  # a workflow without open calls for so long has ended
    lease_s: float = 30.0  # a prefiller keeps KV for so long after its leg
    agent_token: str | None = None  # bearer token of the power agents
    drain_s: float = 10.0  # calls under way may take so long to end when the gateway stops
    scrape_s: float = 1.0  # between looks at a server's metrics
    probe_s: float = 2.0  # between probes of a server that is taken out

    def __post_init__(self) -> None:
        """Refuse values that the gateway could not run with."""
        within("port", self.port, 0, 65_535)
        within("most_waiting", self.most_waiting, 1, 1_000_000)
        for name in ("first_byte_s", "stall_s", "idle_s", "lease_s", "scrape_s", "probe_s"):
            within(name, getattr(self, name), 0.01, 86_400.0)


def within(name: str, value: float, low: float, high: float) -> float:
    """`value` if it lies in [low, high].

    Raises:
        SettingError: it does not, or is not a number.
    """
    if not low <= value <= high:
        raise SettingError(f"{name} = {value:g}: expected a number from {low:g} to {high:g}")
    return value
