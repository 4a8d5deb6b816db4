"""What an engine runs with: facts in, tables and the commands that change them at the next start out."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from control.present.cells import Cell, Table, measured
from control.present.faces import STARTING_S
from control.present.live import Limits
from control.present.queues import NEAR_S
from control.present.servers import DRIFT_AMBER, METRICS_AMBER_S
from control.present.units import NOTHING, number, quantity, seconds
from control.present.wording import policy_name, retention_words

Row = Mapping[str, Any]
#: Time ranges of the charts, s, as the browser offers them.
RANGES_S = (60, 300, 900, 1800)
AT_ONCE, RESTART = "at once", "at a start"


def engine(snapshot: Row, holder: Row | None, when: Callable[[float], str]) -> Table:
    """The process and what it was started with; `when` gives an epoch s as the viewer's time."""
    process = snapshot["engine"]
    host = f" on {holder['host']}" if holder else ""
    rows = [
        ("Process", f"{process['pid']}{host}", ""),
        ("Version", str(process["version"]), ""),
        ("Started", when(process["started_at"]), ""),
        ("State", str(process["state"]), ""),
        ("Tick", _tick(snapshot.get("tick_ms")), ""),
        ("Scenario", str(snapshot.get("scenario") or NOTHING), RESTART),
        ("Fleet", str(snapshot.get("fleet_name") or NOTHING), RESTART),
        ("Seed", str(snapshot.get("seed")), RESTART),
        *_live(snapshot),
        ("Live figures over", seconds(snapshot["fleet"].get("window_s") or 0.0), ""),
    ]
    if snapshot.get("gateway_url"):
        rows.append(("Requests come in at", f"{snapshot['gateway_url']}/v1", RESTART))
    heads = [Cell("Setting"), Cell("Now"), Cell("Changes", hint="At once: by a command, on the page that has it")]
    return Table(heads, [[Cell(name), Cell(now), Cell(how, "muted")] for name, now, how in rows])


def _live(snapshot: Row) -> list[tuple[str, str, str]]:
    """What a command changes while the engine runs."""
    policy = policy_name(snapshot["policy"], snapshot.get("form", "paper"))
    rows = [("Policy", policy, f"{AT_ONCE}, Fleet"), ("α", f"{snapshot['alpha']:.2f}", f"{AT_ONCE}, Fleet")]
    if not snapshot.get("gateway_url"):
        rows.append(("Speed", f"×{snapshot['speed']:g}", f"{AT_ONCE}, Fleet"))
        rows.append(("Load", f"×{snapshot['load_scale']:g}", f"{AT_ONCE}, Fleet"))
    if snapshot.get("retention"):
        rows.append(("KV retention", retention_words(snapshot["retention"]), f"{AT_ONCE}, Conversations"))
    return rows


def fleet(snapshot: Row) -> Table:
    """One row an instance."""
    heads = [Cell("Instance", "id"), Cell("GPU"), Cell("Model"), Cell("Role"), Cell("KV cache", "num", hint="Tokens")]
    heads += [
        Cell("Sequences", "num", hint="max_num_seqs: calls it runs at once"),
        Cell("Cap", "num"),
        Cell("TDP", "num"),
    ]
    heads += [Cell("Cost profile", hint="Measured, fitted, or estimated from another GPU or model"), Cell("Served by")]
    return Table(heads, [_instance(row) for row in snapshot["instances"]])


def _instance(row: Row) -> list[Cell]:
    cap_w = row["power_cap_w"]
    if row.get("simulated", True):
        place = Cell("simulated", "muted")
    else:
        place = Cell(str((row.get("observed") or {}).get("url") or "a real server, not seen yet"))
    return [
        Cell(str(row["name"]), "id"),
        Cell(str(row["gpu"])),
        Cell(str(row["model"])),
        Cell(str(row["role"])),
        Cell(f"{row['kv_capacity_tokens']:,}", "num"),
        Cell(number(row["max_num_seqs"]), "num"),
        Cell("none" if cap_w is None else measured(cap_w, "W"), "num muted" if cap_w is None else "num"),
        Cell(measured(row["tdp_w"], "W"), "num"),
        Cell(str(row["provenance"]), "amber" if row["provenance"] == "estimated" else ""),
        place,
    ]


def store(rows: Sequence[tuple[str, int, float | None, int | None]]) -> Table:
    """One row a kind of stored row: how many there are, how long and how many are kept."""
    heads = [Cell("Rows"), Cell("Stored", "num"), Cell("Kept", hint="What is older, or more, is deleted")]
    return Table(heads, [[Cell(what), Cell(f"{n:,}", "num"), Cell(_kept(age, most))] for what, n, age, most in rows])


def _kept(age_s: float | None, most: int | None) -> str:
    parts = [_span(age_s)] if age_s is not None else []
    parts += [f"the newest {most:,}"] if most is not None else []
    return ", ".join(parts) or "for good"


def _span(age_s: float) -> str:
    days = age_s / 86_400
    return f"{number(days)} days" if days > 1 else f"{number(age_s / 3600)} h" if age_s >= 3600 else _minutes(age_s)


def _minutes(age_s: float) -> str:
    return f"{number(age_s / 60)} min"


def size(n_bytes: int) -> str:
    """Bytes with their unit."""
    return quantity(float(n_bytes), "B")


def thresholds(limits: Limits) -> Table:
    """Where a number turns amber and red."""
    heads = [Cell("Colours"), Cell("▲ amber", "amber"), Cell("✕ red", "late")]
    below, above = "below", "above"
    rows = [
        ("SLO attainment", f"{below} {_share(limits.attainment_amber)}", f"{below} {_share(limits.attainment_red)}"),
        ("SLO debt of the fleet", f"{above} {seconds(0.8 * limits.debt_s)}", f"{above} {seconds(limits.debt_s)}"),
        ("KV cache in use", f"from {_share(limits.kv_amber)}", f"from {_share(limits.kv_red)}"),
        ("Age of the data", f"from {seconds(limits.stale_s)}", f"from {seconds(limits.down_s)}: engine down"),
        ("Laxity of a call", f"{below} {seconds(NEAR_S)}", f"{below} 0 s"),
        ("Age of a server's metrics", f"{above} {seconds(METRICS_AMBER_S)}", NOTHING),
        ("Predicted against served", NOTHING, f"apart by over {_share(DRIFT_AMBER)}"),
    ]
    return Table(heads, [[Cell(name), Cell(amber), Cell(red)] for name, amber, red in rows])


def faces() -> str:
    """When a page shows a face in place of its charts, in words."""
    return (
        f"A store whose engine has taken it but reported nothing shows “starting” for {seconds(STARTING_S)}, then "
        "“no engine has run”. An engine that falls silent leaves its last data with its age."
    )


def unstored(counts: Row) -> str:
    """What was counted but not stored, and what that means."""
    decisions, workflows = int(counts.get("decisions", 0)), int(counts.get("workflows", 0))
    if not decisions and not workflows:
        return "Every placement and every ended workflow since the start has its row."
    return (
        f"{decisions:,} placements and {workflows:,} ended workflows since the start have no row: requests came faster "
        "than 100 rows a second. They count in every figure, in the ledger and in the charts; the lists lack them."
    )


def commands(snapshot: Row, db: str | None) -> list[tuple[str, str]]:
    """What a start changes: (setting, command with the value of now). `db`: the store's file; None: by HEADWAY_DB."""
    base = "headway up" + (f" --db {shlex.quote(db)}" if db else "")
    name = {key: shlex.quote(str(snapshot.get(key) or "")) for key in ("scenario", "fleet_name", "policy")}
    if snapshot.get("gateway_url"):
        host, _, port = str(snapshot["gateway_url"]).rpartition("//")[2].rpartition(":")
        gateway = f"--gateway-host {host} --gateway-port {port}"
        return [
            ("Fleet: its file", f"{base} --fleet {name['fleet_name']}"),
            ("Where requests come in", f"{base} {gateway}"),
        ]
    return [
        ("Scenario", f"{base} --demo {name['scenario']} --fresh"),
        ("Fleet: a built-in name, or a file", f"{base} --fleet {name['fleet_name']} --fresh"),
        ("Seed", f"{base} --seed {snapshot.get('seed')} --fresh"),
        ("Policy and α to start with", f"{base} --policy {name['policy']} --alpha {snapshot['alpha']:.2f} --fresh"),
        ("Speed to start with", f"{base} --speed {snapshot['speed']:g} --fresh"),
    ]


def file_of(url: str) -> str | None:
    """The file of a SQLite store's URL; None of any other: its password is not shown."""
    return url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else None if "://" in url else url


def range_words(range_s: int) -> str:
    """A time range as the charts' buttons say it."""
    return _minutes(range_s)


def _share(value: float) -> str:
    return quantity(value, "%")


def _tick(tick_ms: float | None) -> str:
    """How long the last tick took; s where it fell behind."""
    return NOTHING if tick_ms is None else seconds(float(f"{tick_ms / 1e3:.3g}"))
