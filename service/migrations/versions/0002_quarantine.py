"""Devices that keep failing go into quarantine.

Revision: 0002
Follows: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "devices", sa.Column("faulted_run_ids", sa.JSON(), nullable=False, server_default="[]")
    )
    op.add_column("devices", sa.Column("quarantined_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("devices") as devices:
        devices.drop_column("quarantined_at")
        devices.drop_column("faulted_run_ids")
