"""The first schema.

Revision: 0001
Follows: nothing
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "blobs",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("crc32", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_blobs")),
    )
    op.create_table(
        "devices",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("agent_name", sa.String(length=200), nullable=False),
        sa.Column("serial", sa.String(length=200), nullable=False),
        sa.Column("description", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_devices")),
        sa.UniqueConstraint("agent_name", "serial", name=op.f("uq_devices_agent_name_serial")),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("format", sa.String(20), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("signature", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint("sha256", name=op.f("uq_models_sha256")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(length=100), nullable=False),
        sa.Column("queue", sa.String(length=100), nullable=False),
        sa.Column("subject", sa.String(length=40), nullable=False),
        sa.Column("available_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index("ix_outbox_subject", "outbox", ["subject"], unique=False)
    op.create_index(
        "ix_outbox_unsent",
        "outbox",
        ["available_at"],
        unique=False,
        sqlite_where=sa.text("sent_at IS NULL"),
        postgresql_where=sa.text("sent_at IS NULL"),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sample_count", sa.Integer(), nullable=False),
        sa.Column("has_labels", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_datasets_model_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
        sa.UniqueConstraint("model_id", "sha256", name=op.f("uq_datasets_model_id_sha256")),
    )
    op.create_table(
        "compilations",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("model_id", sa.String(length=40), nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=True),
        sa.Column("cache_key", sa.String(length=64), nullable=False),
        sa.Column("targets", sa.JSON(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("run_wishes", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("stage", sa.String(20), nullable=True),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("log_tail", sa.Text(), nullable=False),
        sa.Column("evaluation", sa.JSON(), nullable=True),
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
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_compilations_dataset_id")
        ),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_compilations_model_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_compilations")),
    )
    op.create_index("ix_compilations_status", "compilations", ["status"], unique=False)
    op.create_index(
        "uq_compilations_cache_key",
        "compilations",
        ["cache_key"],
        unique=True,
        sqlite_where=sa.text("status <> 'failed'"),
        postgresql_where=sa.text("status <> 'failed'"),
    )
    op.create_table(
        "artifacts",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("compilation_id", sa.String(length=40), nullable=False),
        sa.Column("feature_level", sa.Integer(), nullable=False),
        sa.Column("abi", sa.String(20), nullable=False),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["compilation_id"], ["compilations.id"], name=op.f("fk_artifacts_compilation_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifacts")),
        sa.UniqueConstraint(
            "compilation_id",
            "feature_level",
            "abi",
            name=op.f("uq_artifacts_compilation_id_feature_level_abi"),
        ),
    )
    op.create_table(
        "events",
        sa.Column("compilation_id", sa.String(length=40), nullable=False),
        sa.Column("sequence", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["compilation_id"], ["compilations.id"], name=op.f("fk_events_compilation_id")
        ),
        sa.PrimaryKeyConstraint("compilation_id", "sequence", name=op.f("pk_events")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("compilation_id", sa.String(length=40), nullable=False),
        sa.Column("artifact_id", sa.String(length=40), nullable=False),
        sa.Column("feature_level", sa.Integer(), nullable=False),
        sa.Column("abi", sa.String(20), nullable=False),
        sa.Column("needed_level", sa.Integer(), nullable=False),
        sa.Column("wanted_device_id", sa.String(length=40), nullable=True),
        sa.Column("avoided_device_id", sa.String(length=40), nullable=True),
        sa.Column("device_id", sa.String(length=40), nullable=True),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("agent_name", sa.String(length=200), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("measurement", sa.JSON(), nullable=True),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("log_tail", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["artifact_id"], ["artifacts.id"], name=op.f("fk_runs_artifact_id")
        ),
        sa.ForeignKeyConstraint(
            ["avoided_device_id"], ["devices.id"], name=op.f("fk_runs_avoided_device_id")
        ),
        sa.ForeignKeyConstraint(
            ["compilation_id"], ["compilations.id"], name=op.f("fk_runs_compilation_id")
        ),
        sa.ForeignKeyConstraint(["device_id"], ["devices.id"], name=op.f("fk_runs_device_id")),
        sa.ForeignKeyConstraint(
            ["wanted_device_id"], ["devices.id"], name=op.f("fk_runs_wanted_device_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index("ix_runs_compilation_id", "runs", ["compilation_id"], unique=False)
    op.create_index("ix_runs_queue", "runs", ["status", "abi", "feature_level"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_runs_queue", table_name="runs")
    op.drop_index("ix_runs_compilation_id", table_name="runs")
    op.drop_table("runs")
    op.drop_table("events")
    op.drop_table("artifacts")
    op.drop_index(
        "uq_compilations_cache_key",
        table_name="compilations",
        sqlite_where=sa.text("status <> 'failed'"),
        postgresql_where=sa.text("status <> 'failed'"),
    )
    op.drop_index("ix_compilations_status", table_name="compilations")
    op.drop_table("compilations")
    op.drop_table("datasets")
    op.drop_index(
        "ix_outbox_unsent",
        table_name="outbox",
        sqlite_where=sa.text("sent_at IS NULL"),
        postgresql_where=sa.text("sent_at IS NULL"),
    )
    op.drop_index("ix_outbox_subject", table_name="outbox")
    op.drop_table("outbox")
    op.drop_table("models")
    op.drop_table("devices")
    op.drop_table("blobs")
