"""What each placement was decided on: the instances compared, and why others were not."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = sa.JSON(none_as_null=True)
    op.add_column("decision", sa.Column("candidates", json, nullable=True))
    op.add_column("decision", sa.Column("filtered", json, nullable=True))
