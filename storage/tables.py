"""The tables of the store, and their Core handles for fast reads and writes inside this room.

`at` is wall time in epoch seconds (UTC), `sim_s` is simulated seconds, every other unit is in the column's
name. Rows leave this room as plain dicts and arrays, never as objects of these classes.
"""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    UniqueConstraint,
)
from sqlmodel import Field, SQLModel

METADATA = MetaData()

#: 64 bits everywhere; SQLite numbers its rows only when the type is spelled INTEGER.
BIG = BigInteger().with_variant(Integer(), "sqlite")
_NEVER_REUSED = {"sqlite_autoincrement": True}


def _number_column() -> Any:
    return Field(default=None, sa_column=Column(BIG, primary_key=True, autoincrement=True))


def _big_column(index: bool = False, nullable: bool = False) -> Any:
    return Field(default=None, sa_column=Column(BIG, index=index, nullable=nullable))


def _json_column(nullable: bool = False) -> Any:
    return Field(default=None, sa_column=Column(JSON(none_as_null=True), nullable=nullable))


class _Base(SQLModel):
    metadata = METADATA


class Lease(_Base, table=True):
    """The one row that says which engine may write. Owner "" until an engine first takes it."""

    id: int = Field(default=1, primary_key=True)
    owner: str
    pid: int
    host: str
    started_at: float
    heartbeat_at: float
    released: bool


class Command(_Base, table=True):
    """What a person asked for, and what the engine made of it. Kept for good: it is the audit."""

    __table_args__ = (Index("ix_command_state", "state"), _NEVER_REUSED)
    id: int | None = _number_column()
    created_at: float
    author: str  # e.g. "dashboard", "cli"
    kind: str
    payload: dict[str, Any] = _json_column()
    expected: Any = _json_column(nullable=True)  # the value the author saw; null: apply whatever it is now
    state: str  # pending | applied | refused
    reason: str | None
    decided_at: float | None
    sim_s: float | None  # simulated time of the decision
    undo_of: int | None = Field(default=None, sa_type=BigInteger, foreign_key="command.id")


class Snapshot(_Base, table=True):
    """The whole live state in one blob (JSON), a row per tick that shows; the newest 900 are kept."""

    __table_args__ = (_NEVER_REUSED,)
    seq: int | None = _number_column()
    at: float
    sim_s: float
    payload: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class Sample(_Base, table=True):
    """The charted numbers of the fleet or one instance over `resolution_s` seconds from `at`."""

    __table_args__ = (
        UniqueConstraint("resolution_s", "at", "scope", name="uq_sample_resolution_at_scope"),
        _NEVER_REUSED,
    )
    id: int | None = _number_column()
    resolution_s: int  # 1, 10 or 60
    at: float
    sim_s: float
    scope: str  # "fleet" or the name of an instance
    queued: float | None  # calls
    running: float | None  # calls
    kv_used_fraction: float | None
    kv_pinned_fraction: float | None  # of cached contexts of idle conversations pinned there
    power_w: float | None
    power_limit_w: float | None  # power caps, the TDP where there is none
    slo_debt_s: float | None
    p95_s: float | None
    slo_attainment: float | None  # share in [0, 1]
    throughput_wps: float | None  # workflows/s
    tokens_per_joule: float | None
    alpha: float | None


class Decision(_Base, table=True):
    """One placement of a call, with the terms of its score and the runner-up."""

    __table_args__ = (_NEVER_REUSED,)
    id: int | None = _number_column()
    at: float = Field(index=True)
    sim_s: float
    call: int = _big_column()
    workflow: int = _big_column(index=True)
    stage: str
    instance: str
    policy: str
    alpha: float | None
    score: float | None
    t_comp_s: float | None
    t_queue_s: float | None
    budget_s: float | None
    runner_up: str | None
    runner_up_score: float | None
    candidates: Any = _json_column(nullable=True)  # instances compared, the chosen one first; of the newest ones only
    filtered: Any = _json_column(nullable=True)  # how many instances were no candidates, by reason


class Workflow(_Base, table=True):
    """One finished workflow. `id` is its number in its run; `seq` orders rows over all runs."""

    __table_args__ = (_NEVER_REUSED,)
    seq: int | None = _number_column()
    id: int = _big_column(index=True)
    kind: str
    tenant: str
    arrival_sim_s: float
    finished_sim_s: float
    at: float = Field(index=True)
    latency_s: float | None
    slo_s: float | None
    debt_s: float | None
    state: str  # completed | failed | cancelled | refused
    cause: str | None
    calls: int | None
    input_tokens: int | None = _big_column(nullable=True)
    output_tokens: int | None = _big_column(nullable=True)
    energy_j: float | None
    plan_s: float | None  # planned time, s
    ledger: Any = _json_column(nullable=True)  # debt by cause, s, in the order of metrics.ledger.CAUSES
    timeline: Any = _json_column(nullable=True)  # its calls, one object each; of the newest ones only


class Event(_Base, table=True):
    """A mark on the time charts and a line of the audit."""

    __table_args__ = (_NEVER_REUSED,)
    id: int | None = _number_column()
    at: float = Field(index=True)
    sim_s: float
    kind: str  # engine_started, alpha, policy, drain, kill, ...
    target: str | None
    text: str
    old: Any = _json_column(nullable=True)
    new: Any = _json_column(nullable=True)
    command_id: int | None = Field(default=None, sa_type=BigInteger, foreign_key="command.id")


class Checkpoint(_Base, table=True):
    """The one blob an engine goes on from after a stop, replaced in place."""

    id: int = Field(default=1, primary_key=True)
    at: float
    sim_s: float
    payload: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class Detail(_Base, table=True):
    """What is worth seeing now but not keeping: queues, ledger, active workflows; replaced in place."""

    id: int = Field(default=1, primary_key=True)
    at: float
    sim_s: float
    payload: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class Run(_Base, table=True):
    """A finished simulation, sweep or forecast: what was asked and what came out."""

    __table_args__ = (Index("ix_run_kind", "kind"), _NEVER_REUSED)
    id: int | None = _number_column()
    created_at: float
    kind: str
    label: str
    seed: int | None = _big_column(nullable=True)
    params: dict[str, Any] = _json_column()
    result: Any = _json_column()


class Fork(_Base, table=True):
    """What a what-if ran on, as a file; of the newest runs only."""

    run_id: int | None = Field(default=None, sa_column=Column(BIG, primary_key=True, autoincrement=False))
    created_at: float
    payload: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class Meta(_Base, table=True):
    """Facts of the store itself, as text."""

    key: str = Field(primary_key=True)
    value: str


def _core(model: type[SQLModel]) -> Table:
    return METADATA.tables[model.__name__.lower()]


LEASE, COMMAND, SNAPSHOT, SAMPLE = _core(Lease), _core(Command), _core(Snapshot), _core(Sample)
DECISION, WORKFLOW, EVENT = _core(Decision), _core(Workflow), _core(Event)
CHECKPOINT, DETAIL, RUN, META = _core(Checkpoint), _core(Detail), _core(Run), _core(Meta)
FORK = _core(Fork)

#: The measured columns of a sample, in the order readers give them.
MEASURES = (
    "queued",
    "running",
    "kv_used_fraction",
    "kv_pinned_fraction",
    "power_w",
    "power_limit_w",
    "slo_debt_s",
    "p95_s",
    "slo_attainment",
    "throughput_wps",
    "tokens_per_joule",
    "alpha",
)
