"""Quantizations; models made by them; events of jobs of any kind.

Revision: 0003
Follows: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_NOT_FAILED = sa.text("status <> 'failed'")
_REFERENCES = {
    "model_id": "models.id",
    "dataset_id": "datasets.id",
    "result_model_id": "models.id",
    "result_dataset_id": "datasets.id",
}


def upgrade() -> None:
    with op.batch_alter_table("events") as events:
        events.drop_constraint("fk_events_compilation_id", type_="foreignkey")
        events.alter_column("compilation_id", new_column_name="job_id")
    op.add_column("models", sa.Column("derived_from", sa.JSON(), nullable=True))
    op.create_table(
        "quantizations",
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
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("result_model_id", sa.String(length=40), nullable=True),
        sa.Column("result_dataset_id", sa.String(length=40), nullable=True),
        sa.Column("quantized_count", sa.Integer(), nullable=True),
        sa.Column("operation_count", sa.Integer(), nullable=True),
        sa.Column("cost", sa.JSON(), nullable=True),
        *(
            sa.ForeignKeyConstraint([column], [target], name=op.f(f"fk_quantizations_{column}"))
            for column, target in _REFERENCES.items()
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quantizations")),
    )
    op.create_index("ix_quantizations_status", "quantizations", ["status"], unique=False)
    op.create_index(
        "uq_quantizations_cache_key",
        "quantizations",
        ["cache_key"],
        unique=True,
        sqlite_where=_NOT_FAILED,
        postgresql_where=_NOT_FAILED,
    )


def downgrade() -> None:
    op.drop_table("quantizations")
    with op.batch_alter_table("models") as models:
        models.drop_column("derived_from")
    op.execute("DELETE FROM events WHERE job_id NOT IN (SELECT id FROM compilations)")
    with op.batch_alter_table("events") as events:
        events.alter_column("job_id", new_column_name="compilation_id")
    with op.batch_alter_table("events") as events:
        events.create_foreign_key(
            "fk_events_compilation_id", "compilations", ["compilation_id"], ["id"]
        )
