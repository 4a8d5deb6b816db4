"""Settings, frozen at the door. Every field says its unit."""

from dataclasses import dataclass

from control.errors import SettingError

SPEED_BOUNDS = (0.1, 60.0)
LOAD_BOUNDS = (0.0, 3.0)


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


def within(name: str, value: float, low: float, high: float) -> float:
    """`value` if it lies in [low, high].

    Raises:
        SettingError: it does not, or is not a number.
    """
    if not low <= value <= high:
        raise SettingError(f"{name} = {value:g}: expected a number from {low:g} to {high:g}")
    return value
