"""Rules of quantize requests: what is asked for, and what was made before."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from service.contracts.quantization import CalibrationMethod, IntegerType, QuantizeOptions
from service.identifiers import new_id
from service.jobs import lifecycle
from service.jobs.keys import content_key
from service.resources.datasets import service as datasets
from service.resources.models import repository as models
from service.resources.models import service as model_rules
from service.resources.models.schemas import Model
from service.resources.quantizations.kind import QUANTIZATION
from service.resources.quantizations.schemas import Quantization, QuantizationRequest
from service.resources.quantizations.tables import QuantizationRow


def request_quantization(
    session: Session, request: QuantizationRequest, compiler_version: str
) -> tuple[QuantizationRow, bool]:
    """Begin a quantization, or join the one of the same key; the row and whether it is new.

    Raises:
        NnfarmError: ``quantize.bad_option``, ``quantize.unsupported_model``,
            ``request.not_found`` or ``dataset.mismatch``.
    """
    _check_types(request.options)
    model = model_rules.require_model(session, request.model_id)
    if model.format is not ModelFormat.ONNX:
        raise NnfarmError(
            "quantize.unsupported_model",
            f"{model.name!r} is a {model.format} model; only ONNX models can be quantized here.",
            format=model.format,
        )
    dataset = datasets.require_dataset_of(session, request.dataset_id, request.model_id)
    options = _plain(request.options)
    key = content_key(
        kind="quantization",
        model=model.sha256,
        dataset=dataset.sha256,
        options=options.model_dump(mode="json"),
        quantizer=compiler_version,
    )
    return lifecycle.begin_or_join(
        session,
        QUANTIZATION,
        key,
        lambda: QuantizationRow(
            id=new_id("qnt"),
            model_id=request.model_id,
            dataset_id=request.dataset_id,
            cache_key=key,
            options=options,
        ),
    )


def views(session: Session, rows: Sequence[QuantizationRow]) -> list[Quantization]:
    """Rows as the API shows them, with the models they name."""
    ids = [model_id for row in rows for model_id in (row.model_id, row.result_model_id) if model_id]
    found = {key: Model.model_validate(row) for key, row in models.find_many(session, ids).items()}
    return [
        Quantization(
            id=row.id,
            model=found[row.model_id],
            dataset_id=row.dataset_id,
            options=row.options,
            status=row.status,
            stage=row.stage,
            done=row.done,
            total=row.total,
            attempt=row.attempt,
            error=row.problem,
            result=found[row.result_model_id] if row.result_model_id else None,
            result_dataset_id=row.result_dataset_id,
            quantized_count=row.quantized_count,
            operation_count=row.operation_count,
            cost=row.cost,
            stage_durations_us=row.stage_durations_us,
            created_at=row.created_at,
            started_at=row.started_at,
            finished_at=row.finished_at,
        )
        for row in rows
    ]


def _check_types(options: QuantizeOptions) -> None:
    if options.weight is IntegerType.INT8:
        return
    if options.activation is IntegerType.INT8:
        raise NnfarmError(
            "quantize.bad_option", "uint8 weights go with uint8 activations, not with int8."
        )
    if options.per_channel:
        raise NnfarmError(
            "quantize.bad_option",
            "NNAPI takes scales by channel for int8 weights only: ask for one scale a tensor, or "
            "for int8 weights.",
        )


def _plain(options: QuantizeOptions) -> QuantizeOptions:
    """The same wish in one form: names in order, no percentile where none is used."""
    percentile = options.percentile
    if options.method is not CalibrationMethod.PERCENTILE:
        percentile = QuantizeOptions().percentile
    names = tuple(sorted(set(options.exclude_nodes)))
    return options.model_copy(update={"exclude_nodes": names, "percentile": percentile})
