"""Runtime bundles.

Revision: 0005
Follows: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "runtime_bundles",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("target", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("description", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runtime_bundles")),
        sa.UniqueConstraint("sha256", name=op.f("uq_runtime_bundles_sha256")),
    )
    op.create_index("ix_runtime_bundles_target", "runtime_bundles", ["target"], unique=False)


def downgrade() -> None:
    op.drop_table("runtime_bundles")
