"""Checks on one table of a fleet file: known keys, right types, values in bounds."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from control.errors import FleetError
from control.model.calibrated_fields import LABEL
from control.model.catalogue import suggestion
from control.model.hardware import gpu_names, model_names

#: What an instance may be called: it is shown in tables, charts and addresses.
NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")
RESERVED = "fleet"  # the whole, where samples are kept by name
ROLES = ("mixed", "prefill", "decode")

#: Bounds of the numeric keys, both ends allowed; a key whose bounds are whole numbers takes whole numbers.
BOUNDS: dict[str, tuple[float, float]] = {
    "count": (1, 1024),
    "gpus": (1, 64),
    "max_num_seqs": (1, 65_536),
    "max_num_batched_tokens": (1, 1_048_576),
    "block_size": (1, 4_096),
    "watermark": (0.0, 0.5),
    "host_overhead_ms": (0.0, 1_000.0),
    "kv_tokens": (1, 2**31 - 1),
    "max_model_len": (1, 2**31 - 1),
    "power_cap_w": (1.0, 10_000.0),
    "window": (1, 65_536),
    "prefill_scale": (0.05, 20.0),
    "decode_scale": (0.05, 20.0),
    "power_index": (0, 1_023),
}

#: Keys that take one of a few words, with what supplies the words.
CHOICES: dict[str, Callable[[], tuple[str, ...]]] = {
    "gpu": gpu_names,
    "model": model_names,
    "role": lambda: ROLES,
    "scheduling_policy": lambda: ("fcfs", "priority"),
}

#: Keys that take the address of a server, and the words that some take instead.
ADDRESSES: dict[str, tuple[str, ...]] = {"url": (), "power": ("nvml",)}


def checked_table(table: Mapping[str, Any], accepted: list[str], at: str) -> dict[str, Any]:
    """The table with whole numbers made floats where the key is one; FleetError names key and value.

    Every key must be among `accepted`, of its type and in its bounds; gpu and model must be there. With a calibrated
    profile they may be any.
    """
    refuse_unknown(table, accepted, at)
    for key in ("gpu", "model"):
        if key not in table:
            raise FleetError(f"{at}: {key} is missing; accepted are {', '.join(CHOICES[key]())}")
    for key, value in table.items():
        if key in ("gpu", "model") and "profile" in table:
            _check_label(key, value, at)
        elif key in CHOICES:
            _check_choice(key, value, at)
        elif key in BOUNDS:
            _check_number(key, value, at)
        elif key in ADDRESSES:
            _check_address(key, value, at)
        elif key == "served_model" and not (isinstance(value, str) and value):
            raise FleetError(f"{at}: served_model = {value!r}: the name of a model is accepted")
        elif key == "prefix_caching" and not isinstance(value, bool):
            raise FleetError(f"{at}: {key} = {value!r}: true or false is accepted")
        elif key == "name" and not (isinstance(value, str) and NAME.fullmatch(value) and value != RESERVED):
            allowed = f"1 to 40 letters, digits, '.', '_' or '-' are accepted; not {RESERVED!r}"
            raise FleetError(f"{at}: name = {value!r}: {allowed}")
    return {key: float(value) if _is_real(key) else value for key, value in table.items()}


def refuse_unknown(table: Mapping[str, object], accepted: list[str], at: str) -> None:
    """FleetError for the first key that is not accepted, with the closest one that is."""
    for key in table:
        if key not in accepted:
            hint = suggestion(key, accepted)
            raise FleetError(f"{at}: unknown key {key!r}{hint}; accepted are {', '.join(accepted)}")


def _is_real(key: str) -> bool:
    return key in BOUNDS and isinstance(BOUNDS[key][0], float)


def _check_choice(key: str, value: object, at: str) -> None:
    accepted = CHOICES[key]()
    if value not in accepted:
        hint = suggestion(str(value), list(accepted))
        raise FleetError(f"{at}: {key} = {value!r} is unknown{hint}; accepted are {', '.join(accepted)}")


def _check_address(key: str, value: object, at: str) -> None:
    words = ADDRESSES[key]
    parts = urlsplit(value) if isinstance(value, str) else None
    if value in words or (parts is not None and parts.scheme in ("http", "https") and parts.hostname):
        return
    also = "".join(f"{word!r} or " for word in words)
    raise FleetError(f"{at}: {key} = {value!r}: {also}an address such as http://host:8000 is accepted")


def _check_label(key: str, value: object, at: str) -> None:
    """A GPU or model of a calibrated profile, which the catalogue need not know."""
    if not isinstance(value, str) or not value or (key == "gpu" and not LABEL.fullmatch(value)):
        allowed = "1 to 32 letters, digits, '.', '_' or '-' are accepted" if key == "gpu" else "a name is accepted"
        raise FleetError(f"{at}: {key} = {value!r}: {allowed}")


def _check_number(key: str, value: object, at: str) -> None:
    low, high = BOUNDS[key]
    whole = not _is_real(key)
    right_type = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not right_type or not low <= float(str(value)) <= high:
        kind = "a whole number" if whole else "a number"
        raise FleetError(f"{at}: {key} = {value!r}: {kind} from {low:g} to {high:g} is accepted")
