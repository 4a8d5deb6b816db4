"""A fleet: named instances, each one model replica on one kind of GPU."""

from dataclasses import dataclass


@dataclass(frozen=True)
class InstanceSpec:
    """One model replica. Engine settings default to vLLM's."""

    name: str
    gpu: str  # catalogue key, e.g. "H100"
    model: str  # catalogue key, e.g. "Llama-3.1-8B"
    gpus: int = 1  # tensor-parallel GPUs of this replica
    role: str = "mixed"  # mixed | prefill | decode
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    block_size: int = 16  # tokens a KV block
    watermark: float = 0.01  # share of KV blocks kept free on admission
    prefix_caching: bool = True
    host_overhead_ms: float = 1.0  # added to each iteration; a constant of the engine version
    kv_tokens: int | None = None  # KV capacity, tokens; None: derived from the catalogue
    max_model_len: int | None = None  # context limit, tokens; None: the model's, cut to the KV capacity
    power_cap_w: float | None = None  # W per GPU; None: uncapped


@dataclass(frozen=True)
class Fleet:
    """Instances under one scheduler."""

    name: str
    instances: tuple[InstanceSpec, ...]
