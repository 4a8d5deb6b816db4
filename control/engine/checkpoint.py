"""The live state as bytes and back, so that a killed engine goes on from its last commit."""

import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, astuple, replace
from typing import Any

import numpy as np
import orjson

from control.engine.rolling import Ended, Meter, Rolling
from control.engine.source import Source
from control.engine.state import Flow, Live, origin_of
from control.errors import HeadwayError, SettingError
from control.model.fleet import Fleet, load_fleet
from control.policy.codes import ACTIVE
from control.policy.tables import Table
from control.tuning.arrays import world_arrays, world_of
from control.tuning.decide import Memory
from control.tuning.whatif.promise import Guard
from control.twin.caps import Switch, caps_of, with_caps, with_scales
from control.twin.world import World
from control.workload.scenarios import scenario

VERSION = 9
BOOKS = ("counts", "tenants", "steps", "instances")
UNREADABLE = (zlib.error, zipfile.BadZipFile, ValueError, LookupError, TypeError, AttributeError, OSError, EOFError)


class StaleCheckpointError(Exception):
    """The checkpoint was written by another version, for another fleet or another source."""


def instance_rows(fleet: Fleet) -> list[list[Any]]:
    """The specs of a fleet's instances as lists."""
    return [list(astuple(spec)) for spec in fleet.instances]


def identity(fleet: Fleet, source: Source, rows: list[list[Any]] | None = None) -> dict[str, Any]:
    """What a checkpoint must agree on with the engine that takes it up; `rows`: the fleet's `instance_rows`."""
    return {
        "version": VERSION,
        "source": source.name,
        "seed": source.seed,
        "arrivals": source.digest,
        "fleet": fleet.name,
        "instances": instance_rows(fleet) if rows is None else rows,
    }


def save(live: Live) -> bytes:
    """The live state, journal drained, as compressed bytes."""
    rolling = live.rolling
    if live.given_rows is None:
        live.given_rows = instance_rows(live.given)  # of a thousand it takes its time
    head = identity(live.given, live.source, live.given_rows) | {
        "policy": live.policy,
        "next_window": live.next_window,
        "next_stream": live.next_stream,
        "speed": live.speed,
        "paused": live.paused,
        "load_scale": live.load_scale,
        "tuning_mode": live.tuning_mode,
        "pinned": live.pinned,
        "names": live.names,
        "ended": [list(row) for row in rolling.ended],
        "meters": [list(row) for row in rolling.meters],
        "totals": [rolling.completed, rolling.failed, rolling.refused, rolling.context],
        "window_s": rolling.window_s,
        "tuner": asdict(live.tuner),
        "guard": None if live.guard is None else asdict(live.guard),
        "caps": caps_of(live.fleet),
        "switches": [list(switch) for switch in live.switches],
        "broken": list(live.broken.items()),
        "flows": [[key, flow.number, flow.session] for key, flow in live.flows.items()],
        "counted": live.counted,
        "begun_as": live.begun_as,
        "first_id": live.source.first_id,
        "scales": [[spec.prefill_scale, spec.decode_scale] for spec in live.fleet.instances],
    }
    arrays: dict[str, Any] = {"head": np.frombuffer(orjson.dumps(head), np.uint8)}
    arrays |= {"streams": live.streams, "declared": live.declared}
    arrays |= {f"books.{name}": array for name, array in live.books.as_arrays().items()}
    arrays |= world_arrays(live.world)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return zlib.compress(buffer.getvalue(), 1)


def load(blob: bytes, fleet: Fleet, source: Source) -> Live:
    """The live state out of `save`'s bytes.

    Raises:
        StaleCheckpointError: it is damaged, or was saved by another version, for another fleet, or from another source.
    """
    try:
        arrays, head = opened(blob)
        check_identity(head, identity(fleet, source))
        return load_live(arrays, head, fleet, source)
    except UNREADABLE as error:
        raise StaleCheckpointError(f"the saved state is unreadable: {type(error).__name__}") from error


def chosen(blob: bytes, fleet: Fleet, source: Source) -> tuple[Fleet, Source]:
    """The fleet and source to go on with: those of the scenario that was chosen since the engine was started as now.

    Where none was, or the engine was started with others than now, the given ones.
    """
    try:
        head = opened(blob)[1]
        if head.get("begun_as") != origin_of(fleet, source):
            return fleet, source
        mix = scenario(head["source"])
        return load_fleet(mix.fleet), Source(mix.name, head["seed"], scenario=mix)
    except (HeadwayError, *UNREADABLE):
        return fleet, source


def opened(blob: bytes) -> tuple[Any, dict[str, Any]]:
    """The arrays of a checkpoint and its head; one of UNREADABLE where it is damaged."""
    arrays = np.load(io.BytesIO(zlib.decompress(blob)), allow_pickle=False)
    return arrays, orjson.loads(arrays["head"].tobytes())


def check_identity(head: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse a checkpoint that does not agree with the engine.

    Raises:
        StaleCheckpointError: naming what differs.
    """
    for key, value in wanted.items():
        if head[key] != value:
            named = isinstance(value, int | str) and key != "arrivals"
            raise StaleCheckpointError(f"{key} was {head[key]}, is {value}" if named else f"other {key}")


def load_live(arrays: Any, head: dict[str, Any], fleet: Fleet, source: Source) -> Live:
    """The live state out of a checkpoint's arrays and head."""
    capped = with_scales(with_caps(fleet, head["caps"]), head["scales"])
    switches = [Switch(*row) for row in head["switches"]]
    live = Live(
        fleet,
        replace(source, first_id=head.get("first_id", 0)),
        load_world(arrays, capped, switches),
        arrays["streams"],
        arrays["declared"],
        tuple(list(part) if source.is_gateway else tuple(part) for part in head["names"]),  # type: ignore[arg-type]
        head["policy"],
        head["next_window"],
        head["next_stream"],
        head["speed"],
        head["paused"],
        head["load_scale"],
    )
    live.fleet, live.switches, live.broken = capped, switches, dict(head["broken"])
    rows = {int(row["id"]): w for w, row in enumerate(live.world.workflows) if row["open_end"] == 1}
    live.flows = {key: Flow(n, rows[n], 0, session) for key, n, session in head["flows"] if n in rows}
    live.counted, live.begun_as = list(head["counted"]), head.get("begun_as")
    live.tuning_mode, live.pinned = head["tuning_mode"], head["pinned"]
    live.tuner, live.guard = Memory.of(head["tuner"]), Guard.of(head["guard"])
    live.rolling = load_rolling(head)
    live.books.restore({name: arrays[f"books.{name}"] for name in BOOKS})
    return live


def load_rolling(head: dict[str, Any]) -> Rolling:
    """The rolling figures out of a checkpoint's head."""
    rolling = Rolling(head["window_s"])
    rolling.ended.extend(Ended(*row) for row in head["ended"])
    rolling.meters.extend(Meter(*row) for row in head["meters"])
    rolling.completed, rolling.failed, rolling.refused, rolling.context = head["totals"]
    return rolling


def load_world(arrays: Any, fleet: Fleet, switches: list[Switch]) -> World:
    """The world out of a checkpoint's arrays.

    Raises:
        StaleCheckpointError: a table has other columns than this version's.
    """
    try:
        return world_of(arrays, fleet, switches, journal=True)
    except SettingError as error:
        raise StaleCheckpointError(str(error)) from error


def unfinished(blob: bytes) -> list[dict[str, Any]]:
    """The workflows in flight of a checkpoint that cannot be taken up: id, kind, tenant, arrival; best effort."""
    try:
        arrays, head = opened(blob)
        workflows, now_s = arrays["workflows"], float(arrays["clock"]["now_s"][0])
        return lost_rows(workflows, head["names"], now_s)
    except UNREADABLE:
        return []


def lost_rows(workflows: Table, names: Sequence[Sequence[str]], now_s: float) -> list[dict[str, Any]]:
    """The workflows in flight at `now_s` as rows of the store; `names`: kinds, tenants and more."""
    return [lost_row(row, names[0], names[1], now_s) for row in workflows[workflows["state"] == ACTIVE]]


def lost_row(row: Any, kinds: Sequence[str], tenants: Sequence[str], now_s: float) -> dict[str, Any]:
    """A workflow that was in flight at `now_s` as a row of the store."""
    return {
        "id": int(row["id"]),
        "kind": kinds[int(row["kind"])],
        "tenant": tenants[int(row["tenant"])],
        "arrival_sim_s": float(row["arrival_s"]),
        "finished_sim_s": now_s,
        "latency_s": now_s - float(row["arrival_s"]),
        "slo_s": float(row["slo_s"]),
        "debt_s": max(0.0, now_s - float(row["arrival_s"]) - float(row["slo_s"])),
        "calls": int(row["n_calls"]),
    }
