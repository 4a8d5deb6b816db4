"""GPU texts: exporters, nvidia-smi in all its forms, and the captures of real GPUs."""

from pathlib import Path

import pytest

from control.adapters.faults import MetricsError
from control.adapters.reading import GpuReading
from control.adapters.recognise import read_file, read_text
from tests.adapters.pages import written

H100, L40S = "linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01", "linux-x86_64__nvidia-l40s__595.80"
MASKED = "00000000-0000-0000-0000-000000000000"
DCGM = """# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b",device="nvidia1",modelName="NVIDIA A100",Hostname="n1"} 61.5
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA A100",Hostname="n1"} 311.25
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-a",modelName="NVIDIA A100",Hostname="n1"} 1.25e+10
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",modelName="NVIDIA A100",Hostname="n1"} 98
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",modelName="NVIDIA A100",Hostname="n1"} 30000
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",modelName="NVIDIA A100",Hostname="n1"} 10000
DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-a",modelName="NVIDIA A100",Hostname="n1"} 960
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",modelName="NVIDIA A100",Hostname="n1"} 55
"""


def only(gpus: tuple[GpuReading, ...]) -> GpuReading:
    """The one GPU there is."""
    assert len(gpus) == 1
    return gpus[0]


def section(text: str, title: str) -> str:
    """What a capture holds under a title, without its frame."""
    rest = text.split(f"# {title}", 1)[1].split("#" * 80, 1)[1]
    return rest.split("\n\n\n", 1)[0].strip("\n") + "\n"


@pytest.mark.parametrize(
    ("name", "watts", "of_w", "busy", "mib", "celsius"),
    [
        (f"{H100}__idle", 69.85, 700, 0, 0, 41),
        (f"{H100}__load", 631.95, 700, 1, 19818, 59),
        (f"{L40S}__idle", 144.97, 350, 1, 0, 63),
        (f"{L40S}__load", 110.23, 350, 0.09, 1235, 54),
    ],
)
def test_captures_of_the_exporter(
    recorded: Path, name: str, watts: float, of_w: float, busy: float, mib: float, celsius: float
) -> None:
    path = recorded / "gpu_captures" / f"{name}.metrics"
    text, reading = path.read_text(), read_file(str(path))
    gpu = only(reading.gpus)
    assert (reading.source, reading.engine, reading.power_w) == ("nvidia_gpu_exporter", None, watts)
    assert gpu.power_w == written(text, "nvidia_smi_power_draw_watts{") == watts
    assert gpu.power_limit_w == written(text, "nvidia_smi_enforced_power_limit_watts{") == of_w
    assert gpu.power_limit_min_w == written(text, "nvidia_smi_power_min_limit_watts{")
    assert (gpu.utilization, gpu.memory_used_mib, gpu.temperature_c) == (busy, mib, celsius)
    assert gpu.memory_total_mib == written(text, "nvidia_smi_memory_total_bytes{") / 2**20
    assert (gpu.index, gpu.uuid, gpu.energy_j) == (0, MASKED, None)
    assert gpu.name == ("NVIDIA H100 80GB HBM3" if name.startswith(H100) else "NVIDIA L40S")


@pytest.mark.parametrize(("name", "watts", "mib"), [(H100, 631.95, 19818), (L40S, 110.23, 1235)])
def test_whole_captures_give_their_last_query(recorded: Path, name: str, watts: float, mib: float) -> None:
    path = recorded / "gpu_captures" / f"{name}.txt"
    reading = read_file(str(path))
    gpu = only(reading.gpus)
    assert f", {watts:.2f} W, " in path.read_text()
    assert (reading.source, gpu.power_w, gpu.memory_used_mib) == ("nvidia-smi --query-gpu", watts, mib)
    assert (gpu.uuid, gpu.index) == (f"GPU-{MASKED}", 0)


@pytest.mark.parametrize(
    ("name", "title", "watts", "celsius"),
    [
        (H100, "idle :: query (-q)", 69.85, 41),
        (H100, "load :: query (-q)", 629.45, 59),
        (L40S, "idle :: query (-q)", 183.28, 64),
        (H100, "load :: nvidia-smi (default table)", 629, 59),
        (L40S, "idle :: nvidia-smi (default table)", 242, 64),
        (L40S, "idle :: query-gpu (csv", 144.97, 63),
        (L40S, "idle :: dmon", 37, 54),
        (H100, "idle :: dmon", 69, 41),
    ],
)
def test_each_form_by_itself(recorded: Path, name: str, title: str, watts: float, celsius: float) -> None:
    text = section((recorded / "gpu_captures" / f"{name}.txt").read_text(), title)
    gpu = only(read_text(text, title).gpus)
    assert (gpu.index, gpu.power_w, gpu.temperature_c) == (0, watts, celsius)
    if "dmon" not in title:
        assert gpu.power_limit_w == (700 if name == H100 else 350)
        assert gpu.memory_total_mib == (81559 if name == H100 else 46068)
        assert gpu.name is not None
        assert gpu.name.startswith("NVIDIA")


def test_log_gives_bounds_and_memory(recorded: Path) -> None:
    text = section((recorded / "gpu_captures" / f"{L40S}.txt").read_text(), "idle :: query (-q)")
    gpu = only(read_text(text, "-q").gpus)
    assert (gpu.power_limit_min_w, gpu.power_limit_max_w) == (100, 350)
    assert (gpu.memory_used_mib, gpu.utilization, gpu.uuid) == (0, 1.0, f"GPU-{MASKED}")


def test_runs_of_a_benchmark(recorded: Path) -> None:
    folders = sorted((recorded / "gpu_runs_h100").glob("background*"))
    assert len(folders) == 7
    for folder in folders:
        dmon, query = (folder / f"metrics_gpu_device_nvidia_smi_{kind}0_server_0.csv" for kind in ("dom_", ""))
        header, units, *_, last = dmon.read_text().split()
        assert (header[:12], units[:8]) == ("time,gpu,pwr", "s,Idx,W,")
        gpu = only(read_file(str(dmon)).gpus)
        assert [gpu.index, gpu.power_w, gpu.temperature_c] == [float(cell) for cell in last.split(",")[1:4]]
        gpu = only(read_file(str(query)).gpus)
        cells = [cell.strip() for cell in query.read_text().splitlines()[-1].split(",")]
        assert (gpu.uuid, f"{gpu.memory_used_mib:.0f} MiB", gpu.power_w) == (cells[1], cells[6], None)


def test_dcgm_exporter() -> None:
    reading = read_text(DCGM, "host:9400")
    assert (reading.source, reading.power_w) == ("dcgm-exporter", 311.25 + 61.5)
    first, second = reading.gpus
    assert (first.index, first.uuid, first.name) == (0, "GPU-a", "NVIDIA A100")
    assert (first.energy_j, first.utilization, first.temperature_c) == (12.5e6, 0.98, 55), "mJ and per cent"
    assert (first.memory_used_mib, first.memory_total_mib) == (30000, 40960)
    assert (second.index, second.power_w, second.energy_j, second.memory_total_mib) == (1, 61.5, None, None)


def test_parts_of_one_gpu_share_its_power_and_add_their_memory() -> None:
    labels = 'gpu="0",uuid="GPU-a",GPU_I_ID="{}",GPU_I_PROFILE="3g.20gb"'
    text = "".join(
        f"DCGM_FI_DEV_POWER_USAGE{{{labels.format(part)}}} 200\nDCGM_FI_DEV_FB_USED{{{labels.format(part)}}} {mib}\n"
        for part, mib in ((1, 1000), (2, 500))
    )
    gpu = only(read_text(text, "host:9400").gpus)
    assert (gpu.power_w, gpu.memory_used_mib) == (200, 1500)


def test_gpu_seen_by_several_pods_counts_once() -> None:
    text = "".join(f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-a",pod="{pod}"}} 200\n' for pod in "xy")
    assert read_text(text, "host:9400").power_w == 200


def test_page_of_an_engine_may_carry_gpus_too() -> None:
    reading = read_text(DCGM + "vllm:num_requests_running 3\n", "host")
    assert (reading.source, reading.engine, reading.running, reading.power_w) == ("vllm", "vllm", 3, 372.75)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("index, power.draw [W], memory.used [MiB]\n0, 70.12 W, 12 MiB\n1, [N/A], 0 MiB\n", [70.12, None]),
        ("index, power.draw [W], memory.used [MiB]\n0, 70.12, 12\n1, [Not Supported], 0\n", [70.12, None]),
        ("power.draw [W]\n70.12 W\n", [70.12]),
        ("index, power.draw [W], power.draw.instant [W]\n0, [N/A], 66.00 W\n", [66.0]),
        ("index, power.draw [W]\n0, 50.00 W\n0, 60.00 W\n", [60.0]),
        (
            "# gpu   pwr gtemp\n# Idx     W     C\n    0    70    41\n    1     -    40\n    0    80    41\n",
            [80.0, None],
        ),
        ("#gpu, pwr, gtemp\n#Idx, W, C\n0, 70, 41\n", [70.0]),
        ("#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n 10:00:01      0     75\n", [75.0]),
    ],
)
def test_cells_with_units_gaps_and_several_rows(text: str, expected: list[float | None]) -> None:
    assert [gpu.power_w for gpu in read_text(text, "file").gpus] == expected


def test_windows_table_from_a_windows_shell(tmp_path: Path) -> None:
    table = (
        "|   0  NVIDIA GeForce RTX 4090      WDDM  |   00000000:01:00.0  On |                  Off |\r\n"
        "|  0%   35C    P8             15W /  450W |    1024MiB /  24564MiB |      3%      Default |\r\n"
    )
    (tmp_path / "smi.txt").write_bytes(table.encode("utf-16"))
    gpu = only(read_file(str(tmp_path / "smi.txt")).gpus)
    assert (gpu.name, gpu.power_w, gpu.power_limit_w, gpu.utilization) == ("NVIDIA GeForce RTX 4090", 15, 450, 0.03)


def test_gap_is_not_zero() -> None:
    reading = read_text("index, power.draw [W], memory.used [MiB]\n0, [N/A], 0 MiB\n", "file")
    assert (reading.power_w, reading.gpus[0].memory_used_mib) == (None, 0)


def test_older_drivers_table_and_log() -> None:
    table = (
        "|   0  Tesla V100-SXM2...  On   | 00000000:00:1E.0 Off |                    0 |\n"
        "| N/A   35C    P0    25W / 300W |      0MiB / 16160MiB |      0%      Default |\n"
        "|   1  GeForce GTX 960     Off  | 00000000:01:00.0 Off |                  N/A |\n"
        "| 30%   41C    P8    N/A /  N/A |    100MiB /  4043MiB |     N/A      Default |\n"
    )
    first, second = read_text(table, "table").gpus
    assert (first.name, first.power_w, first.power_limit_w, first.memory_total_mib) == (
        "Tesla V100-SXM2...", 25, 300, 16160,
    )  # fmt: skip
    assert (second.power_w, second.utilization, second.memory_used_mib) == (None, None, 100)
    log = (
        "GPU 00000000:3B:00.0\n    Product Name                    : Tesla T4\n    Power Readings\n"
        "        Power Draw                  : 27.50 W\n        Power Limit                 : 70.00 W\n"
        "    Utilization\n        Gpu                         : 12 %\n"
    )
    gpu = only(read_text(log, "log").gpus)
    assert (gpu.name, gpu.power_w, gpu.power_limit_w, gpu.utilization) == ("Tesla T4", 27.5, 70, 0.12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("index, power.draw [W]\n0, 50.00 W, 3\n", "file:2: 3 cells: expected 2 as in the header"),
        ("time,gpu,pwr\ns,Idx,W\n0.1,0\n", "file:3: 2 cells: expected 3 as in the header"),
    ],
)
def test_row_that_does_not_fit_names_its_line(text: str, message: str) -> None:
    with pytest.raises(MetricsError, match=message):
        read_text(text, "file")
