"""Alembic's entry: migrates over the connection `service.db` hands it."""

from __future__ import annotations

from alembic import context

from service import outbox
from service.columns import Base
from service.jobs import tables as jobs
from service.resources.artifacts import tables as artifacts
from service.resources.blobs import tables as blobs
from service.resources.compilations import tables as compilations
from service.resources.datasets import tables as datasets
from service.resources.devices import tables as devices
from service.resources.models import tables as models
from service.resources.quantizations import tables as quantizations
from service.resources.runs import tables as runs
from service.resources.runtime_bundles import tables as runtime_bundles
from service.resources.tunings import tables as tunings

# Importing a module of tables puts them into the metadata.
TABLE_MODULES = (
    artifacts,
    blobs,
    compilations,
    datasets,
    devices,
    jobs,
    models,
    outbox,
    quantizations,
    runs,
    runtime_bundles,
    tunings,
)

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
)
context.run_migrations()
