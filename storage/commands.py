"""Command rows: how a dashboard or the command line asks the engine for something.

A row is written once by its author, decided once by the engine (`Journal.commit`), and kept. Whether a
value fits the fleet (does the instance exist, was the expected old value still there) is the engine's to
say; here only the shape and the fixed bounds are checked.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from control.errors import SettingError, shown
from storage.journal import plain
from storage.json_values import check_json
from storage.open import Store
from storage.tables import COMMAND

#: Largest jump of one "step" command, simulated s.
MAX_STEP_S = 3600.0
#: What the tuner may do with a better alpha: nothing, propose it, apply it.
MODES = ("off", "suggest", "auto")
#: Longest name of an author, policy or instance, characters.
MAX_NAME = 200
#: Bounds of a power cap, W per GPU; caps set at once; longest time an idle context is kept, s.
MAX_CAP_W, MAX_CAPS, MAX_IDLE_S = 10_000, 4096, 1e9
#: Longest spec of a fork, characters of JSON; policies that run in the shadow at once.
MAX_SPEC, MAX_SHADOWS = 50_000, 3


def submit(
    store: Store,
    kind: str,
    payload: dict[str, Any],
    author: str,
    expected: Any = None,
    undo_of: int | None = None,
) -> int:
    """Ask the engine for a change; returns the command's id.

    Payloads by kind: alpha {"alpha": 0..1}; policy {"policy": name}; speed {"speed": 0.1..60};
    load_scale {"load_scale": 0..3}; step {"step_s": above 0, to 3600 simulated s}; drain, undrain, kill,
    revive {"instance": name}; power_cap {"tier": tier, all or an instance, "cap_w": W per GPU or None};
    power_caps {"caps": {instance: W per GPU or None}}; retention {"retention": {"need": observed or oracle,
    "idle_ttl_s": s or None}}; cancel {"workflow": number}; slow {"instance": name, "factor": 0.25..20 on its times};
    scenario {"scenario": name, "seed": number}; regret {"decision": number}; whatif {"spec": what is asked of a fork};
    apply_whatif {"run": number, "setting": number, "guard_minutes": 0..60}; end_guard {};
    undo_whatif {"run": number}; shadows {"policies": names};
    tuning_mode {"mode": off, suggest or auto}; pause, resume, tune, release_alpha
    {}. `expected` is the old value the author saw: the engine refuses the command if it has changed since.
    `undo_of` is the id of the command this one takes back.
    Raises SettingError on any other kind, key or value.
    """
    check_json("expected", expected, MAX_SPEC)
    if undo_of is not None:
        _whole("number of a command")("undo_of", undo_of)
    row = {
        "created_at": time.time(),
        "author": _name("author", author),
        "kind": kind,
        "payload": _checked(kind, payload),
        "expected": plain(expected),
        "state": "pending",
        "undo_of": undo_of,
    }
    with store.writing() as connection:
        if undo_of is not None and _find(connection, undo_of) is None:
            raise SettingError(f"undo_of: there is no command {undo_of!r}")
        return int(connection.execute(sa.insert(COMMAND).values(row).returning(COMMAND.c.id)).scalar_one())


def pending(store: Store) -> list[dict[str, Any]]:
    """Commands the engine has not decided, oldest first."""
    query = sa.select(COMMAND).where(COMMAND.c.state == "pending").order_by(COMMAND.c.id)
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def recent(store: Store, limit: int) -> list[dict[str, Any]]:
    """The newest `limit` commands in any state, newest first."""
    query = sa.select(COMMAND).order_by(COMMAND.c.id.desc()).limit(limit)
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def get(store: Store, command_id: int) -> dict[str, Any] | None:
    """One command, or None where there is none of this id."""
    with store.reading() as connection:
        return _find(connection, command_id)


def changed(store: Store) -> int:
    """A number that moves when there may be new commands; compare it with the one before.

    SQLite: moves with any commit, at about 10 us a call. Elsewhere: the newest command's id.
    """
    if store.is_sqlite:
        return store.data_version()
    with store.reading() as connection:
        return int(connection.execute(sa.select(sa.func.max(COMMAND.c.id))).scalar() or 0)


def _find(connection: sa.Connection, command_id: int) -> dict[str, Any] | None:
    row = connection.execute(sa.select(COMMAND).where(COMMAND.c.id == command_id)).mappings().first()
    return None if row is None else dict(row)


def _name(what: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value.strip()) <= MAX_NAME:
        raise SettingError(f"{what}: {shown(value)} is not a name; accepted: text of 1 to {MAX_NAME} characters")
    check_json(what, value, MAX_SPEC)
    return value.strip()


def _within(low: float, high: float, above: bool = False) -> Callable[[str, Any], float]:
    """A check that a number lies in [low, high], or in (low, high] with `above`."""

    def check(what: str, value: Any) -> float:
        number = plain(value)
        fits = isinstance(number, int | float) and not isinstance(number, bool)
        if not fits or not low <= number <= high or (above and number == low):
            accepted = f"above {low:g}, to {high:g}" if above else f"{low:g} to {high:g}"
            raise SettingError(f"{what}: {shown(value)} is out of bounds; accepted: a number {accepted}")
        return float(number)

    return check


def _mode(what: str, value: Any) -> str:
    if value not in MODES:
        raise SettingError(f"{what}: {shown(value)} is no mode; accepted: {', '.join(MODES)}")
    return str(value)


def _cap(what: str, value: Any) -> float | None:
    return None if value is None else _within(0, MAX_CAP_W)(what, value)


def _caps(what: str, value: Any) -> dict[str, float | None]:
    if not isinstance(value, dict) or not 0 < len(value) <= MAX_CAPS:
        raise SettingError(f"{what}: {shown(value)} does not fit; accepted: W per GPU by instance")
    return {_name(what, name): _cap(f"{what} of {name}", cap) for name, cap in value.items()}


def _retention(what: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != {"need", "idle_ttl_s"}:
        raise SettingError(f'{what}: {shown(value)} does not fit; accepted: {{"need": ..., "idle_ttl_s": ...}}')
    limit_s = value["idle_ttl_s"]
    kept = None if limit_s is None else _within(0, MAX_IDLE_S, above=True)(f"{what}, idle_ttl_s", limit_s)
    return {"need": _name(f"{what}, need", value["need"]), "idle_ttl_s": kept}


def _spec(what: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SettingError(f"{what}: {shown(value)} does not fit; accepted: what is asked of a fork, as an object")
    check_json(what, value, MAX_SPEC)
    if len(json.dumps(value)) > MAX_SPEC:
        raise SettingError(f"{what}: longer than {MAX_SPEC:,} characters of JSON; accepted: a shorter one")
    return value


def _policies(what: str, value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > MAX_SHADOWS:
        raise SettingError(f"{what}: {shown(value)} does not fit; accepted: a list of at most {MAX_SHADOWS} policies")
    return [_name(what, name) for name in value]


def _whole(noun: str) -> Callable[[str, Any], int]:
    """A check that a value is a whole number >= 0; `noun` says of what."""

    def check(what: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
            raise SettingError(f"{what}: {shown(value)} is no {noun}; accepted: a whole number >= 0")
        return value

    return check


_INSTANCE: dict[str, Callable[[str, Any], Any]] = {"instance": _name}
#: kind -> key -> check of its value.
_SHAPES: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "alpha": {"alpha": _within(0, 1)},
    "policy": {"policy": _name},
    "pause": {},
    "resume": {},
    "speed": {"speed": _within(0.1, 60)},
    "step": {"step_s": _within(0, MAX_STEP_S, above=True)},
    "load_scale": {"load_scale": _within(0, 3)},
    "drain": _INSTANCE,
    "undrain": _INSTANCE,
    "kill": _INSTANCE,
    "revive": _INSTANCE,
    "tune": {},
    "tuning_mode": {"mode": _mode},
    "release_alpha": {},
    "power_cap": {"tier": _name, "cap_w": _cap},
    "power_caps": {"caps": _caps},
    "retention": {"retention": _retention},
    "whatif": {"spec": _spec},
    "apply_whatif": {"run": _whole("number of a run"), "setting": _whole("setting"), "guard_minutes": _within(0, 60)},
    "end_guard": {},
    "undo_whatif": {"run": _whole("number of a run")},
    "shadows": {"policies": _policies},
    "cancel": {"workflow": _whole("number of a workflow")},
    "slow": {"instance": _name, "factor": _within(0.25, 20)},
    "scenario": {"scenario": _name, "seed": _whole("seed")},
    "regret": {"decision": _whole("number of a placement")},
}
#: The kinds of command there are.
KINDS = tuple(_SHAPES)


def _checked(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    shape = _SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise SettingError(f"command: unknown kind {shown(kind)}; accepted: {', '.join(KINDS)}")
    if not isinstance(payload, dict) or payload.keys() != shape.keys():
        accepted = "{" + ", ".join(f'"{key}": ...' for key in shape) + "}"
        raise SettingError(f"command {kind}: payload {shown(payload, 200)} does not fit; accepted: {accepted}")
    return {key: check(f"command {kind}, {key}", payload[key]) for key, check in shape.items()}
