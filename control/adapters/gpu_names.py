"""Under which name each figure of a GPU is found: exporters' metrics, nvidia-smi's columns and lines."""

from typing import NamedTuple

from control.adapters.names import Name, Quantity, quantity

MIB_PER_BYTE = 1 / 2**20


class GpuDialect(NamedTuple):
    """The names of one exporter of GPU metrics; label names in lower case."""

    source: str
    prefix: str
    uuid_label: str
    number_label: str
    name_label: str
    info: str | None  # the metric whose labels carry index and name
    quantities: tuple[Quantity, ...]


GPU_DIALECTS = (
    GpuDialect(
        "headway-agent",
        "headway_gpu_",
        "uuid",
        "gpu",
        "name",
        None,
        (
            quantity("power_w", "W", "headway_gpu_power_watts"),
            quantity("power_limit_w", "W", "headway_gpu_power_limit_watts"),
            quantity("power_limit_min_w", "W", "headway_gpu_power_limit_min_watts"),
            quantity("power_limit_max_w", "W", "headway_gpu_power_limit_max_watts"),
            quantity("energy_j", "J", "headway_gpu_energy_joules"),
            quantity("utilization", "fraction", "headway_gpu_utilization_ratio"),
            quantity("memory_used_mib", "MiB", Name("headway_gpu_memory_used_bytes", MIB_PER_BYTE)),
            quantity("memory_total_mib", "MiB", Name("headway_gpu_memory_total_bytes", MIB_PER_BYTE)),
            quantity("temperature_c", "C", "headway_gpu_temperature_celsius"),
        ),
    ),
    GpuDialect(
        "dcgm-exporter",
        "DCGM_FI_",
        "uuid",
        "gpu",
        "modelname",
        None,
        (
            quantity("power_w", "W", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_USAGE_INSTANT"),
            quantity("power_limit_w", "W", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_POWER_MGMT_LIMIT"),
            quantity("power_limit_min_w", "W", "DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN"),
            quantity("power_limit_max_w", "W", "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX"),
            quantity("energy_j", "J", Name("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1e-3)),
            quantity("utilization", "fraction", Name("DCGM_FI_DEV_GPU_UTIL", 0.01)),
            quantity("memory_used_mib", "MiB", "DCGM_FI_DEV_FB_USED"),
            quantity("memory_free_mib", "MiB", "DCGM_FI_DEV_FB_FREE"),
            quantity("memory_reserved_mib", "MiB", "DCGM_FI_DEV_FB_RESERVED"),
            quantity("memory_total_mib", "MiB", "DCGM_FI_DEV_FB_TOTAL"),
            quantity("temperature_c", "C", "DCGM_FI_DEV_GPU_TEMP"),
        ),
    ),
    GpuDialect(
        "nvidia_gpu_exporter",
        "nvidia_smi_",
        "uuid",
        "index",
        "name",
        "nvidia_smi_gpu_info",
        (
            quantity(
                "power_w",
                "W",
                "nvidia_smi_power_draw_watts",
                "nvidia_smi_power_draw_average_watts",
                "nvidia_smi_power_draw_instant_watts",
            ),
            quantity("power_limit_w", "W", "nvidia_smi_enforced_power_limit_watts", "nvidia_smi_power_limit_watts"),
            quantity("power_limit_min_w", "W", "nvidia_smi_power_min_limit_watts"),
            quantity("power_limit_max_w", "W", "nvidia_smi_power_max_limit_watts"),
            quantity("utilization", "fraction", "nvidia_smi_utilization_gpu_ratio"),
            quantity("memory_used_mib", "MiB", Name("nvidia_smi_memory_used_bytes", MIB_PER_BYTE)),
            quantity("memory_total_mib", "MiB", Name("nvidia_smi_memory_total_bytes", MIB_PER_BYTE)),
            quantity("temperature_c", "C", "nvidia_smi_temperature_gpu"),
        ),
    ),
)

#: Columns of `nvidia-smi --query-gpu=... --format=csv`; cells carry their unit.
SMI_COLUMNS = (
    quantity("power_w", "W", "power.draw", "power.draw.average", "power.draw.instant"),
    quantity("power_limit_w", "W", "enforced.power.limit", "power.limit"),
    quantity("power_limit_min_w", "W", "power.min_limit"),
    quantity("power_limit_max_w", "W", "power.max_limit"),
    quantity("utilization", "fraction", Name("utilization.gpu", 0.01)),
    quantity("memory_used_mib", "MiB", "memory.used"),
    quantity("memory_total_mib", "MiB", "memory.total"),
    quantity("temperature_c", "C", "temperature.gpu"),
)

#: Columns of `nvidia-smi dmon`.
DMON_COLUMNS = (
    quantity("power_w", "W", "pwr"),
    quantity("temperature_c", "C", "gtemp"),
    quantity("utilization", "fraction", Name("sm", 0.01)),
    quantity("memory_used_mib", "MiB", "fb"),
)

#: Lines of `nvidia-smi -q`: (section, key), in lower case; an older driver's name last.
SMI_LOG = (
    quantity(
        "power_w",
        "W",
        "gpu power readings/average power draw",
        "gpu power readings/power draw",
        "power readings/power draw",
        "gpu power readings/instantaneous power draw",
    ),
    quantity(
        "power_limit_w",
        "W",
        "gpu power readings/current power limit",
        "gpu power readings/enforced power limit",
        "power readings/enforced power limit",
        "power readings/power limit",
    ),
    quantity("power_limit_min_w", "W", "gpu power readings/min power limit", "power readings/min power limit"),
    quantity("power_limit_max_w", "W", "gpu power readings/max power limit", "power readings/max power limit"),
    quantity("utilization", "fraction", Name("utilization/gpu", 0.01)),
    quantity("memory_used_mib", "MiB", "fb memory usage/used"),
    quantity("memory_total_mib", "MiB", "fb memory usage/total"),
    quantity("temperature_c", "C", "temperature/gpu current temp"),
)
