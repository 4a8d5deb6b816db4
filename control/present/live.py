"""The live payload: snapshots and samples in, compact columns for `/api/live` out.

One row a wall second. A full answer (since = 0) holds the whole window, thinned to MAX_ROWS; a later one
holds only newer rows, so that a refresh of 8 instances stays near 1 kB and of 64 under 10 kB.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from control.present import groups
from control.present.marks import Mark
from control.present.units import significant

#: Fleet columns of a row; units as in the snapshot: s, share, workflows/s, tokens/J, W.
FLEET = (
    "queued",
    "p95_s",
    "slo_attainment",
    "slo_debt_s",
    "throughput_wps",
    "tokens_per_joule",
    "power_w",
    "power_limit_w",
)
#: Instance columns of a row.
INSTANCE = ("queued", "running", "kv_used_fraction", "kv_pinned_fraction", "power_w", "slo_debt_s")
#: Rows of a full answer at most; more carry no more pixels.
MAX_ROWS = 360
#: A hole longer than this (s), and than GAP_STEPS rows are apart, breaks the lines instead of being bridged.
GAP_S = 4.0
GAP_STEPS = 3
#: How far (s) inside its edges the empty rows of a hole stand.
EDGE_S = 0.1
#: An engine of real servers that was killed goes on from a state some seconds old; further back is another run.
RESTART_S = 10.0

_NOW_FLEET = (
    "p50_s",
    "tokens_per_s",
    "running",
    "active_workflows",
    "completed",
    "failed",
    "refused",
    "window_s",
    "power_cap_w",
)
_STATIC = (
    *("name", "gpu", "model", "role", "provenance", "max_num_seqs", "kv_capacity_tokens", "power_cap_w", "tdp_w"),
    "simulated",
)


@dataclass(frozen=True)
class Limits:
    """Where a number turns amber or red; the charts draw `debt_s` as a dashed line."""

    attainment_amber: float = 0.9  # share of workflows within their SLO
    attainment_red: float = 0.7
    debt_s: float = 600.0  # s of positive SLO debt over the fleet
    kv_amber: float = 0.85  # share of the KV cache in use
    kv_red: float = 0.95
    stale_s: float = 3.0  # age of the data, s
    down_s: float = 5.0


class Row(NamedTuple):
    """One wall second: `seq` of its snapshot (0: from the samples), epoch s, simulated s, FLEET and INSTANCE values."""

    seq: int
    at: float
    sim_s: float
    fleet: tuple[float | None, ...]
    instances: Mapping[str, tuple[float | None, ...]]


def row_of_snapshot(payload: Mapping[str, Any]) -> Row:
    """The row of one snapshot payload; in a large fleet with a value a GPU type instead of one an instance."""
    rows = payload["instances"]
    types = groups.types_of(rows)
    if types is None:
        instances = {i["name"]: tuple(i.get(c) for c in INSTANCE) for i in rows}
    else:
        instances = {gpu: groups.row_of(members, INSTANCE) for gpu, members in types.items()}
    fleet = tuple(payload["fleet"].get(c) for c in FLEET)
    return Row(int(payload["seq"]), float(payload["at"]), float(payload["sim_s"]), fleet, instances)


def rows_of_samples(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    """The rows of 1 s samples given as columns of equal length (at, sim_s, scope and the measures), oldest first."""
    fleets: dict[float, tuple[float | None, ...]] = {}
    clocks = dict(zip(columns["at"], columns["sim_s"], strict=True))
    instances: dict[float, dict[str, tuple[float | None, ...]]] = {}
    fleet_values = zip(*(columns[c] for c in FLEET), strict=True)
    instance_values = zip(*(columns[c] for c in INSTANCE), strict=True)
    for at, scope, fleet, instance in zip(columns["at"], columns["scope"], fleet_values, instance_values, strict=True):
        if scope == "fleet":
            fleets[float(at)] = fleet
        else:
            instances.setdefault(float(at), {})[str(scope)] = instance
    return [Row(0, at, float(clocks[at]), fleets[at], instances.get(at, {})) for at in sorted(fleets)]


def begins_anew(before: Row, after: Row) -> bool:
    """Whether another run begins with `after`: simulated time falls back, further than at an engine's restart."""
    return after.sim_s < max(before.sim_s - RESTART_S, before.sim_s / 2.0)


def present_run(rows: Sequence[Row]) -> tuple[list[Row], float]:
    """The rows of the run that goes on, and when (epoch s) it began; 0.0 where that is before all rows."""
    for k in range(len(rows) - 1, 0, -1):
        if begins_anew(rows[k - 1], rows[k]):
            return list(rows[k:]), rows[k].at
    return list(rows), 0.0


def static_of(payload: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """What changes rarely: the properties of the instances (or GPU types) as columns, the fleet, the limits."""
    rows = payload["instances"]
    types = groups.types_of(rows)
    columns = {c: [i.get(c) for i in rows] for c in _STATIC} if types is None else groups.static_of(types)
    named = {k: payload.get(k) for k in ("scenario", "fleet_name", "seed", "policies", "gateway_url")}
    return {**named, "count": len(rows), "groups": types is not None, "instances": columns, "limits": asdict(limits)}


def fleet_key(payload: Mapping[str, Any], begun: float = 0.0) -> str:
    """A short digest of `static_of` and of when the run began: a browser that holds another asks for a full answer."""
    facts = [payload.get("scenario"), payload.get("fleet_name"), payload.get("seed"), begun]
    facts += [[i.get(c) for c in _STATIC] for i in payload["instances"]]
    return hashlib.sha1(repr(facts).encode(), usedforsecurity=False).hexdigest()[:8]


def now_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The current values that no chart draws."""
    rows, fleet = payload["instances"], payload["fleet"]
    values = {k: payload.get(k) for k in ("sim_s", "speed", "paused", "policy", "alpha", "load_scale")}
    return {
        **{k: _short(v) for k, v in values.items()},
        **{k: _short(fleet.get(k)) for k in _NOW_FLEET},
        "state": payload["engine"]["state"],
        "started_at": int(payload["engine"]["started_at"]),
        **_states_of(rows),
    }


def _states_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """State and cached prefixes (%) of each instance; in a large fleet the worst and the highest of each GPU type."""
    types = groups.types_of(rows)
    each = [[row] for row in rows] if types is None else list(types.values())
    cached = [max(i.get("kv_cached_fraction") or 0.0 for i in members) for members in each]
    found = {"states": [groups.worst(m)[:2] for m in each], "cached": [round(100 * share) for share in cached]}
    return found if types is None else found | {"groups": groups.now_of(types)}


def window_rows(rows: Sequence[Row], since: int, start: float) -> list[Row]:
    """Rows newer than snapshot `since`; for since = 0 those from `start` (epoch s) on, thinned."""
    if since > 0:
        first = next((k for k, r in enumerate(rows) if r.seq > since), len(rows))
        return with_gaps(rows[first - 1 :])[1:] if first else with_gaps(rows)
    kept = [r for r in rows if r.at >= start]
    stride = -(-len(kept) // MAX_ROWS) if kept else 1
    return with_gaps(kept[::-1][::stride][::-1], stride)


def with_gaps(rows: Sequence[Row], stride: int = 1) -> list[Row]:
    """`rows`, `stride` s apart, with an empty row just inside both edges of each hole, so that lines break there."""
    result: list[Row] = []
    for row in rows:
        if result and row.at - result[-1].at > max(GAP_S, GAP_STEPS * stride):
            result += [_empty(result[-1].at + EDGE_S, row.sim_s), _empty(row.at - EDGE_S, row.sim_s)]
        result.append(row)
    return result


def _empty(at: float, sim_s: float) -> Row:
    """A row of a time without data."""
    return Row(0, at, sim_s, (None,) * len(FLEET), {})


def columns_of(rows: Sequence[Row], names: Sequence[str]) -> dict[str, Any]:
    """Rows as columns: `at` [row], `fleet` {column: [row]}, `instances` {column: [instance][row]}."""
    nothing = (None,) * len(INSTANCE)
    cells = [[r.instances.get(n, nothing) for r in rows] for n in names]
    return {
        "at": [round(r.at, 1) for r in rows],
        "fleet": {c: [_short(r.fleet[k]) for r in rows] for k, c in enumerate(FLEET)},
        "instances": {c: [[_short(v[k]) for v in cell] for cell in cells] for k, c in enumerate(INSTANCE)},
    }


def answer(
    payload: Mapping[str, Any],
    rows: Sequence[Row],
    marks: Sequence[Mark],
    full: bool,
    limits: Limits,
    begun: float = 0.0,
) -> dict[str, Any]:
    """The body of one `/api/live` answer from the newest snapshot, the rows and marks to send and the run's begin."""
    types = groups.types_of(payload["instances"])
    names = [i["name"] for i in payload["instances"]] if types is None else list(types)
    body: dict[str, Any] = {
        "key": fleet_key(payload, begun),
        "seq": payload["seq"],
        "full": full,
        "now": now_of(payload),
        "rows": columns_of(rows, names),
        "marks": [[m.id, round(m.at, 1), m.kind, m.label] for m in marks],
    }
    if full:
        body["static"] = static_of(payload, limits)
    return body


def _short(value: Any) -> Any:
    """Numbers for the wire; NumPy's float64 is a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return significant(value)
