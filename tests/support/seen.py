"""What a gateway has seen of one real server, in the engine's format."""

from typing import Any

SEEN: dict[str, Any] = {
    "health": "ready",
    "reason": "",
    "url": "http://gpu-1:8000",
    "metrics": "live",
    "metrics_age_s": 0.4,
    "metrics_failure": None,
    "suspect": None,
    "sent": 12,
    "faults": {"client": 1, "full": 0, "sick": 0},
    "power_error": None,
    "compared": 9,
    "predicted_ttft_s": 0.1,
    "ttft_s": 0.15,
    "predicted_tpot_s": 0.01,
    "tpot_s": 0.0101,
    "ttft_drift": 0.5,
    "tpot_drift": 0.01,
    "seen_engine": "vllm",
    "seen_version": "0.33.0",
    "seen_running": 3.0,
    "seen_waiting": 0.0,
    "seen_kv_used_fraction": 0.0,
    "seen_kv_used_tokens": 0.0,
    "seen_preemptions": None,
}
