"""GPUs of this machine: units, energy across gaps, limits within bounds, and machines without a driver."""

import pytest

from control.adapters.energy import EnergyMeter
from control.adapters.faults import NoSuchGpuError, NotPermittedError, PowerBoundsError, PowerError
from control.adapters.nvml import LocalGpus
from tests.adapters.fake_nvml import FakeNvml, NoPermissionError, NotSupportedError, NvmlError, h100


def test_figures_come_in_our_units() -> None:
    (gpu,) = LocalGpus(FakeNvml(h100())).read()
    assert (gpu.index, gpu.uuid, gpu.name) == (0, "GPU-a", "NVIDIA H100")
    assert (gpu.power_w, gpu.power_limit_w) == (pytest.approx(70.12), 700)
    assert (gpu.power_limit_min_w, gpu.power_limit_max_w) == (200, 700)
    assert (gpu.utilization, gpu.memory_used_mib, gpu.temperature_c) == (0.98, 3072, 41)
    assert (gpu.memory_total_mib, gpu.energy_j) == (81920, 0)


def test_energy_is_what_the_counter_gained() -> None:
    gpu = h100()
    gpus = LocalGpus(FakeNvml(gpu))
    gpus.read()
    gpu["TotalEnergyConsumption"] += 1_250
    assert gpus.read()[0].energy_j == pytest.approx(1.25)
    gpu["TotalEnergyConsumption"] = 500
    assert gpus.read()[0].energy_j == pytest.approx(1.75), "the driver started anew and counted 0.5 J"


def test_power_is_integrated_only_where_there_is_no_counter() -> None:
    now_s = [0.0]
    gpu = h100(PowerUsage=100_000)
    del gpu["TotalEnergyConsumption"]
    gpus = LocalGpus(FakeNvml(gpu), clock=lambda: now_s[0])
    assert gpus.read()[0].energy_j == 0
    now_s[0], gpu["PowerUsage"] = 10.0, 200_000
    assert gpus.read()[0].energy_j == pytest.approx(1500)


def test_meter_bridges_a_counter_that_fails_once() -> None:
    meter = EnergyMeter()
    assert meter.update(0.0, None, None) is None
    assert meter.update(1.0, 100.0, 1000.0) == 0
    assert meter.update(2.0, 100.0, None) == 100
    assert meter.update(3.0, 100.0, 1250.0) == 200
    assert meter.update(4.0, None, None) == 200, "what was counted stays"
    assert meter.update(5.0, None, 1300.0) == 200


def test_gpu_that_tells_nothing_is_listed_without_figures() -> None:
    (gpu,) = LocalGpus(FakeNvml({})).read()
    assert gpu.index == 0
    assert (gpu.power_w, gpu.energy_j, gpu.utilization, gpu.power_limit_min_w, gpu.uuid) == (None,) * 5


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        (FakeNvml(fails=NvmlError("NVML Shared Library Not Found")), "NVML Shared Library Not Found"),
        (FakeNvml(), "the driver knows no GPU"),
    ],
)
def test_machine_without_gpus_says_why(library: FakeNvml, reason: str) -> None:
    gpus = LocalGpus(library)
    assert gpus.read() == []
    assert reason in (gpus.reason or "")
    gpus.close()


def test_machine_without_a_driver_does_not_fail() -> None:
    gpus = LocalGpus()
    if gpus.read():
        pytest.skip("this machine has a GPU")
    assert "NVML" in (gpus.reason or "")


def test_limit_within_bounds_is_set() -> None:
    library = FakeNvml(h100(), h100())
    gpus = LocalGpus(library)
    gpus.set_limit(1, 350.5)
    assert [gpu.power_limit_w for gpu in gpus.read()] == [700, 350.5]
    gpus.close()
    assert library.shut


@pytest.mark.parametrize("watts", [199, 701, 0, -1, float("nan"), float("inf")])
def test_limit_out_of_bounds_names_them(watts: float) -> None:
    with pytest.raises(PowerBoundsError, match="from 200 to 700"):
        LocalGpus(FakeNvml(h100())).set_limit(0, watts)


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (NoPermissionError("Insufficient Permissions"), NotPermittedError),
        (NotSupportedError("Not Supported"), NotPermittedError),
        (NvmlError("Unknown Error"), PowerError),
    ],
)
def test_refusal_of_the_driver_keeps_its_reason(refusal: Exception, kind: type[PowerError]) -> None:
    with pytest.raises(kind, match=str(refusal)):
        LocalGpus(FakeNvml(h100(refuses=refusal))).set_limit(0, 300)


def test_number_of_no_gpu_names_those_there_are() -> None:
    with pytest.raises(NoSuchGpuError, match="expected one of 0, 1"):
        LocalGpus(FakeNvml(h100(), h100())).set_limit(2, 300)
