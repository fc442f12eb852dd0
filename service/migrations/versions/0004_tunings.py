"""Tunings and their records; what compilations are keyed by.

Revision: 0004
Follows: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_NOT_FAILED = sa.text("status <> 'failed'")


def upgrade() -> None:
    for column in (
        sa.Column("request_key", sa.String(length=64), nullable=True),
        sa.Column("compiler_version", sa.Text(), nullable=True),
        sa.Column("kernels", sa.JSON(), nullable=True),
    ):
        op.add_column("compilations", column)
    op.create_index("ix_compilations_request_key", "compilations", ["request_key"])
    _create_tunings()
    _create_records()


def downgrade() -> None:
    op.drop_table("tuning_records")
    op.execute("DELETE FROM events WHERE job_id IN (SELECT id FROM tunings)")
    op.drop_table("tunings")
    op.drop_index("ix_compilations_request_key", "compilations")
    with op.batch_alter_table("compilations") as compilations:
        for name in ("request_key", "compiler_version", "kernels"):
            compilations.drop_column(name)


def _create_tunings() -> None:
    op.create_table(
        "tunings",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("cache_key", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("stage", sa.String(20), nullable=True),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("log_tail", sa.Text(), nullable=False),
        sa.Column("stage_durations_us", sa.JSON(), nullable=False),
        sa.Column("child_duration_us", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker_name", sa.String(length=200), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent_count", sa.Integer(), nullable=False),
        sa.Column("last_sequence", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("compiler_version", sa.Text(), nullable=False),
        sa.Column("abi", sa.String(20), nullable=True),
        sa.Column("machine", sa.String(length=200), nullable=True),
        sa.Column("kernel_count", sa.Integer(), nullable=True),
        sa.Column("known_count", sa.Integer(), nullable=True),
        sa.Column("before", sa.JSON(), nullable=True),
        sa.Column("after", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_tunings_model_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tunings")),
    )
    op.create_index("ix_tunings_status", "tunings", ["status"], unique=False)
    op.create_index(
        "uq_tunings_cache_key",
        "tunings",
        ["cache_key"],
        unique=True,
        sqlite_where=_NOT_FAILED,
        postgresql_where=_NOT_FAILED,
    )


def _create_records() -> None:
    op.create_table(
        "tuning_records",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tuning_id", sa.String(length=40), nullable=False),
        sa.Column("compiler_hash", sa.String(length=64), nullable=False),
        sa.Column("abi", sa.String(20), nullable=False),
        sa.Column("signature", sa.String(length=64), nullable=False),
        sa.Column("kernel", sa.String(length=500), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("trace", sa.Text(), nullable=True),
        sa.Column("before", sa.JSON(), nullable=False),
        sa.Column("after", sa.JSON(), nullable=True),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("tried", sa.Integer(), nullable=False),
        sa.Column("duration_us", sa.BigInteger(), nullable=False),
        sa.Column("machine", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tuning_id"], ["tunings.id"], name=op.f("fk_tuning_records_tuning_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tuning_records")),
        sa.UniqueConstraint(
            "compiler_hash",
            "abi",
            "signature",
            name=op.f("uq_tuning_records_compiler_hash_abi_signature"),
        ),
    )
    op.create_index("ix_tuning_records_tuning_id", "tuning_records", ["tuning_id"])
