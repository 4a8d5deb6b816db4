"""Made-up GPUs for demonstrations and tests of whatever reads or caps real ones."""

import math
import time
from collections.abc import Callable

from control.adapters.energy import EnergyMeter
from control.adapters.faults import NoSuchGpuError
from control.adapters.nvml import check_bounds
from control.adapters.reading import GpuReading

MIN_W, MAX_W = 200.0, 700.0  # an H100 SXM's bounds
MEAN_W, SWING_W, PERIOD_S = 400.0, 250.0, 60.0
MEMORY_MIB = 81559.0


class SimulatedGpus:
    """GPUs whose load swings once a minute, each shifted a little, under limits that can be set."""

    reason: str | None = None

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.limits_w = [MAX_W] * count
        self.meters = [EnergyMeter() for _ in range(count)]

    def read(self) -> list[GpuReading]:
        """Every GPU now."""
        return [self.read_one(index) for index in range(len(self.limits_w))]

    def read_one(self, index: int) -> GpuReading:
        """One GPU now."""
        now_s = self.clock()
        wave = math.sin(2 * math.pi * (now_s / PERIOD_S + index / 8))
        power_w = min(self.limits_w[index], MEAN_W + SWING_W * wave)
        return GpuReading(
            index=index,
            uuid=f"GPU-simulated-{index}",
            name="Simulated H100",
            power_w=power_w,
            power_limit_w=self.limits_w[index],
            power_limit_min_w=MIN_W,
            power_limit_max_w=MAX_W,
            energy_j=self.meters[index].update(now_s, power_w, None),
            utilization=0.5 + 0.5 * wave,
            memory_used_mib=0.9 * MEMORY_MIB,
            memory_total_mib=MEMORY_MIB,
            temperature_c=40 + power_w / 20,
        )

    def set_limit(self, index: int, watts: float) -> None:
        """Limit the power of a GPU, in W; errors as of a real one."""
        if not 0 <= index < len(self.limits_w):
            raise NoSuchGpuError(index, list(range(len(self.limits_w))))
        check_bounds(index, watts, MIN_W, MAX_W)
        self.limits_w[index] = watts

    def close(self) -> None:
        """Nothing to let go of."""
