"""What idle conversations hold of the KV caches, and the power caps, over time."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sample", sa.Column("kv_pinned_fraction", sa.Float(), nullable=True))
    op.add_column("sample", sa.Column("power_limit_w", sa.Float(), nullable=True))
