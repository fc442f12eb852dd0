"""Runs of benches; records of simulated devices.

Revision: 0006
Follows: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_UNIQUE = "uq_tuning_records_compiler_hash_abi_signature"


def upgrade() -> None:
    with op.batch_alter_table("runs") as runs:
        for name in ("compilation_id", "artifact_id"):
            runs.alter_column(name, existing_type=sa.String(length=40), nullable=True)
        runs.add_column(sa.Column("tuning_id", sa.String(length=40), nullable=True))
        runs.add_column(sa.Column("bench", sa.JSON(), nullable=True))
        runs.create_foreign_key(op.f("fk_runs_tuning_id"), "tunings", ["tuning_id"], ["id"])
        runs.create_index("ix_runs_tuning_id", ["tuning_id"])
    with op.batch_alter_table("tuning_records") as records:
        records.add_column(
            sa.Column("simulated", sa.Boolean(), nullable=False, server_default=sa.false())
        )
        records.drop_constraint(op.f(_UNIQUE), type_="unique")
        records.create_unique_constraint(
            op.f(f"{_UNIQUE}_simulated"), ["compiler_hash", "abi", "signature", "simulated"]
        )
    with op.batch_alter_table("tuning_records") as records:
        records.alter_column("simulated", existing_type=sa.Boolean(), server_default=None)


def downgrade() -> None:
    op.execute("DELETE FROM tuning_records WHERE simulated")
    with op.batch_alter_table("tuning_records") as records:
        records.drop_constraint(op.f(f"{_UNIQUE}_simulated"), type_="unique")
        records.drop_column("simulated")
        records.create_unique_constraint(op.f(_UNIQUE), ["compiler_hash", "abi", "signature"])
    op.execute("DELETE FROM runs WHERE tuning_id IS NOT NULL")
    with op.batch_alter_table("runs") as runs:
        runs.drop_index("ix_runs_tuning_id")
        runs.drop_constraint(op.f("fk_runs_tuning_id"), type_="foreignkey")
        runs.drop_column("tuning_id")
        runs.drop_column("bench")
        for name in ("compilation_id", "artifact_id"):
            runs.alter_column(name, existing_type=sa.String(length=40), nullable=False)
