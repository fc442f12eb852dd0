"""What a worker delivers for a quantization: inspected like an upload, and kept as a model."""

from __future__ import annotations

from service.components import Components
from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from service.contracts.quantization import ModelOrigin, QuantizeOutcome
from service.contracts.tensors import ModelSignature
from service.jobs import lifecycle
from service.resources.blobs import repository as blobs
from service.resources.datasets import service as datasets
from service.resources.models import sandbox
from service.resources.models import service as models
from service.resources.quantizations.kind import QUANTIZATION
from service.resources.quantizations.tables import QuantizationRow
from service.settings import Settings
from service.storage.incoming import Incoming, StagedBlob


def complete(components: Components, quantization_id: str, outcome: QuantizeOutcome) -> None:
    """Take the result; the same word twice is fine.

    Raises:
        NnfarmError: ``request.fenced``, ``request.invalid`` for a model that was not uploaded, or
            a ``model.*`` code for one that does not pass inspection.
    """
    if not _is_awaited(components, quantization_id, outcome):
        return
    limit_bytes = components.settings.max_model_bytes
    with Incoming(components.blobs.staging_dir, limit_bytes, _too_large) as incoming:
        for chunk in components.blobs.read(outcome.model_sha256):
            incoming.write(chunk)
        staged = incoming.finish(expected_sha256=outcome.model_sha256)
        # The child that wrote it had a user's model in its hands: no more to be trusted than one.
        signature = sandbox.inspect(staged.path, components.settings)
    _keep(components, quantization_id, outcome, staged, signature)


def _is_awaited(components: Components, quantization_id: str, outcome: QuantizeOutcome) -> bool:
    """Whether the result is still to be delivered; its lease then lasts for the inspection."""
    with components.database.writing() as session:
        row = lifecycle.lock_for_result(session, QUANTIZATION, quantization_id, outcome.attempt)
        if row is None:
            return False
        if blobs.find(session, outcome.model_sha256) is None:
            raise NnfarmError("request.invalid", f"Blob {outcome.model_sha256} is not stored.")
        lifecycle.extend(row, _lease_s(components.settings))
        return True


def _keep(
    components: Components,
    quantization_id: str,
    outcome: QuantizeOutcome,
    staged: StagedBlob,
    signature: ModelSignature,
) -> None:
    with components.database.writing() as session:
        row = lifecycle.lock_for_result(session, QUANTIZATION, quantization_id, outcome.attempt)
        if row is None:
            return
        name = models.derived_name(models.require_model(session, row.model_id), _suffix(row))
        origin = ModelOrigin(model_id=row.model_id, quantization_id=row.id, options=row.options)
        model, _ = models.add_model(session, staged, name, ModelFormat.ONNX, signature, origin)
        dataset = datasets.require_dataset(session, row.dataset_id)
        row.result_model_id = model.id
        row.result_dataset_id = datasets.share(session, dataset, model.id).id
        row.quantized_count = outcome.quantized_count
        row.operation_count = outcome.operation_count
        row.cost = outcome.cost
        lifecycle.succeed(session, row, outcome)


def _suffix(row: QuantizationRow) -> str:
    return row.options.activation.value


def _lease_s(settings: Settings) -> float:
    return settings.job_lease_s + settings.inspection_timeout_s


def _too_large(limit_bytes: int) -> NnfarmError:
    return NnfarmError(
        "model.too_large",
        f"The quantized model has more than the {limit_bytes} bytes a model may have.",
        limit_bytes=limit_bytes,
    )
