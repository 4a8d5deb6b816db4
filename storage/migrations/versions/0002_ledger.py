"""Ledger and timeline of workflows; the detail that is replaced every second."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = sa.JSON(none_as_null=True)
    op.add_column("workflow", sa.Column("plan_s", sa.Float(), nullable=True))
    op.add_column("workflow", sa.Column("ledger", json, nullable=True))
    op.add_column("workflow", sa.Column("timeline", json, nullable=True))
    op.create_table(
        "detail",
        sa.Column("id", sa.Integer(), primary_key=True, nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("sim_s", sa.Float(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
    )
