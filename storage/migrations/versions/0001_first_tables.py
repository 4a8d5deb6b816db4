"""First tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON(none_as_null=True)


def text(name: str, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.String(), nullable=nullable)


def real(name: str, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Float(), nullable=nullable)


def number(name: str = "id") -> sa.Column[Any]:
    return sa.Column(name, BIG, primary_key=True, autoincrement=True)


def single() -> sa.Column[Any]:
    return sa.Column("id", sa.Integer(), primary_key=True, nullable=False)


def table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    return op.create_table(name, *parts, sqlite_autoincrement=True)


def engine_tables() -> None:
    lease = op.create_table(
        "lease",
        single(),
        text("owner"),
        sa.Column("pid", sa.Integer(), nullable=False),
        text("host"),
        real("started_at"),
        real("heartbeat_at"),
        sa.Column("released", sa.Boolean(), nullable=False),
    )
    # The row is always there, so that taking the lease is one atomic UPDATE.
    nobody = {"id": 1, "owner": "", "pid": 0, "host": "", "started_at": 0.0, "heartbeat_at": 0.0}
    op.bulk_insert(lease, [{**nobody, "released": True}])
    blob = sa.Column("payload", sa.LargeBinary(), nullable=False)
    op.create_table("checkpoint", single(), real("at"), real("sim_s"), blob)
    blob = sa.Column("payload", sa.LargeBinary(), nullable=False)
    table("snapshot", number("seq"), real("at"), real("sim_s"), blob)
    op.create_table("meta", sa.Column("key", sa.String(), primary_key=True, nullable=False), text("value"))


def audit_tables() -> None:
    table(
        "command",
        number(),
        real("created_at"),
        text("author"),
        text("kind"),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("expected", JSON, nullable=True),
        text("state"),
        text("reason", True),
        real("decided_at", True),
        real("sim_s", True),
        sa.Column("undo_of", sa.BigInteger(), sa.ForeignKey("command.id"), nullable=True),
    )
    op.create_index("ix_command_state", "command", ["state"])
    table(
        "event",
        number(),
        real("at"),
        real("sim_s"),
        text("kind"),
        text("target", True),
        text("text"),
        sa.Column("old", JSON, nullable=True),
        sa.Column("new", JSON, nullable=True),
        sa.Column("command_id", sa.BigInteger(), sa.ForeignKey("command.id"), nullable=True),
    )
    op.create_index("ix_event_at", "event", ["at"])


def sample_table() -> None:
    measures = (
        *("queued", "running", "kv_used_fraction", "power_w", "slo_debt_s", "p95_s"),
        *("slo_attainment", "throughput_wps", "tokens_per_joule", "alpha"),
    )
    table(
        "sample",
        number(),
        sa.Column("resolution_s", sa.Integer(), nullable=False),
        real("at"),
        real("sim_s"),
        text("scope"),
        *(real(name, True) for name in measures),
        sa.UniqueConstraint("resolution_s", "at", "scope", name="uq_sample_resolution_at_scope"),
    )


def work_tables() -> None:
    table(
        "decision",
        number(),
        real("at"),
        real("sim_s"),
        sa.Column("call", BIG, nullable=False),
        sa.Column("workflow", BIG, nullable=False),
        *(text(name) for name in ("stage", "instance", "policy")),
        *(real(name, True) for name in ("alpha", "score", "t_comp_s", "t_queue_s", "budget_s")),
        text("runner_up", True),
        real("runner_up_score", True),
    )
    op.create_index("ix_decision_at", "decision", ["at"])
    op.create_index("ix_decision_workflow", "decision", ["workflow"])
    table(
        "workflow",
        number("seq"),
        sa.Column("id", BIG, nullable=False),
        *(text(name) for name in ("kind", "tenant")),
        *(real(name) for name in ("arrival_sim_s", "finished_sim_s", "at")),
        *(real(name, True) for name in ("latency_s", "slo_s", "debt_s")),
        text("state"),
        text("cause", True),
        sa.Column("calls", sa.Integer(), nullable=True),
        sa.Column("input_tokens", BIG, nullable=True),
        sa.Column("output_tokens", BIG, nullable=True),
        real("energy_j", True),
    )
    op.create_index("ix_workflow_at", "workflow", ["at"])
    op.create_index("ix_workflow_id", "workflow", ["id"])


def run_table() -> None:
    table(
        "run",
        number(),
        real("created_at"),
        text("kind"),
        text("label"),
        sa.Column("seed", BIG, nullable=True),
        sa.Column("params", JSON, nullable=False),
        sa.Column("result", JSON, nullable=False),
    )
    op.create_index("ix_run_kind", "run", ["kind"])


def upgrade() -> None:
    engine_tables()
    audit_tables()
    sample_table()
    work_tables()
    run_table()
