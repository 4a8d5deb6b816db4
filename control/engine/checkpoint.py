"""The live state as bytes and back, so that a killed engine goes on from its last commit."""

import io
import zlib
from typing import Any

import numpy as np
import orjson

from control.engine.rolling import Ended, Meter, Rolling
from control.engine.source import Source
from control.engine.state import Live
from control.model.fleet import Fleet
from control.policy import tables
from control.policy.tables import JOURNAL
from control.twin.heap import Heap
from control.twin.pack import cost_tables
from control.twin.world import World

VERSION = 1
DERIVED = ("costs", "ended", "t_comp_s", "scores", "counts", "journal", "dirty")  # rebuilt, or empty between events


class StaleCheckpointError(Exception):
    """The checkpoint was written by another version, for another fleet or another source."""


def identity(fleet: Fleet, source: Source) -> dict[str, Any]:
    """What a checkpoint must agree on with the engine that takes it up."""
    return {
        "version": VERSION,
        "source": source.name,
        "seed": source.seed,
        "fleet": fleet.name,
        "instances": [[s.name, s.gpu, s.model, s.gpus, s.kv_tokens, s.max_num_seqs] for s in fleet.instances],
    }


def save(live: Live) -> bytes:
    """The live state, journal drained, as compressed bytes."""
    rolling = live.rolling
    head = identity(live.fleet, live.source) | {
        "policy": live.policy,
        "next_window": live.next_window,
        "speed": live.speed,
        "paused": live.paused,
        "load_scale": live.load_scale,
        "names": live.names,
        "ended": [list(row) for row in rolling.ended],
        "meters": [list(row) for row in rolling.meters],
        "totals": [rolling.completed, rolling.failed, rolling.refused, rolling.context],
        "window_s": rolling.window_s,
    }
    arrays: dict[str, Any] = {"head": np.frombuffer(orjson.dumps(head), np.uint8)}
    arrays |= {"streams": live.streams, "declared": live.declared}
    for name, value in live.world._asdict().items():
        if isinstance(value, Heap):
            arrays |= {f"{name}.{part}": array for part, array in value._asdict().items()}
        elif name not in DERIVED:
            arrays[name] = value
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return zlib.compress(buffer.getvalue(), 1)


def load(blob: bytes, fleet: Fleet, source: Source) -> Live:
    """The live state out of `save`'s bytes.

    Raises:
        StaleCheckpointError: it was saved by another version, for another fleet, or from another source.
    """
    try:
        arrays = np.load(io.BytesIO(zlib.decompress(blob)), allow_pickle=False)
        head = orjson.loads(arrays["head"].tobytes())
    except (zlib.error, ValueError, KeyError, OSError) as error:
        raise StaleCheckpointError(f"unreadable: {error}") from error
    for key, value in identity(fleet, source).items():
        if head.get(key) != value:
            raise StaleCheckpointError(f"{key} was {head.get(key)}, is {value}")
    live = Live(
        fleet,
        source,
        load_world(arrays, fleet),
        arrays["streams"],
        arrays["declared"],
        tuple(tuple(part) for part in head["names"]),  # type: ignore[arg-type]
        head["policy"],
        head["next_window"],
        head["speed"],
        head["paused"],
        head["load_scale"],
    )
    live.rolling = load_rolling(head)
    return live


def load_rolling(head: dict[str, Any]) -> Rolling:
    """The rolling figures out of a checkpoint's head."""
    rolling = Rolling(head["window_s"])
    rolling.ended.extend(Ended(*row) for row in head["ended"])
    rolling.meters.extend(Meter(*row) for row in head["meters"])
    rolling.completed, rolling.failed, rolling.refused, rolling.context = head["totals"]
    return rolling


def load_world(arrays: Any, fleet: Fleet) -> World:
    """The world out of a checkpoint's arrays.

    Raises:
        StaleCheckpointError: a table has other columns than this version's.
    """
    costs, _ = cost_tables(fleet)
    n, seats = len(fleet.instances), max(spec.max_num_seqs for spec in fleet.instances)
    values: dict[str, Any] = {
        "costs": costs,
        "ended": np.zeros(seats, np.int64),
        "t_comp_s": np.zeros(n),
        "scores": np.zeros(n),
        "counts": np.zeros(len(arrays["steps"])),
        "dirty": np.zeros(n, np.int64),
        "journal": np.zeros(max(4096, 8 * len(arrays["calls"])), JOURNAL),
    }
    for name in ("runs", "timers"):
        values[name] = Heap(*(arrays[f"{name}.{part}"] for part in Heap._fields))
    for name in World._fields:
        if name not in values:
            values[name] = arrays[name]
    world = World(**values)
    check_columns(world)
    return world


def check_columns(world: World) -> None:
    """Refuse tables whose columns this version does not know."""
    known = {
        "clock": tables.CLOCK,
        "policy": tables.POLICY,
        "instances": tables.INSTANCE,
        "workflows": tables.WORKFLOW_STATE,
        "calls": tables.CALL_STATE,
        "steps": tables.STEP,
        "kinds": tables.KIND,
        "counters": tables.COUNTER,
        "prefixes": tables.PREFIX,
    }
    for name, dtype in known.items():
        if getattr(world, name).dtype != dtype:
            raise StaleCheckpointError(f"the table of {name} has other columns")


def unfinished(blob: bytes) -> list[dict[str, Any]]:
    """The workflows in flight of a checkpoint that cannot be taken up: id, kind, tenant, arrival; best effort."""
    try:
        arrays = np.load(io.BytesIO(zlib.decompress(blob)), allow_pickle=False)
        head = orjson.loads(arrays["head"].tobytes())
        workflows, now_s = arrays["workflows"], float(arrays["clock"]["now_s"][0])
        kinds, tenants = head["names"][0], head["names"][1]
        active = workflows[workflows["state"] == 1]
    except (zlib.error, ValueError, KeyError, IndexError, OSError):
        return []
    return [
        {
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
        for row in active
    ]
