"""Two quantizations: done and running, and the models they are about."""

from __future__ import annotations

from fixture_bench import at
from fixture_data import model

from service.contracts.jobs import JobStatus, Stage
from service.contracts.quantization import ModelOrigin, QuantizationCost, QuantizeOptions
from service.resources.models.schemas import Model
from service.resources.quantizations.schemas import Quantization

_OPTIONS = QuantizeOptions(exclude_nodes=("/head/Softmax",))
_COST = QuantizationCost(
    sample_count=64,
    float_top1=0.953,
    quantized_top1=0.937,
    agreement=0.97,
    loss=0.016,
    max_abs_error=0.47,
    max_rel_error=0.02,
)


def models() -> dict[str, Model]:
    """A float model and the one made of it."""
    source = model("keyword-spotter", 1_284_552)
    origin = ModelOrigin(model_id=source.id, quantization_id="qnt_done", options=_OPTIONS)
    made = model("keyword-spotter-int8", 331_776).model_copy(update={"derived_from": origin})
    return {made.id: made, source.id: source}


def quantizations() -> list[Quantization]:
    """The newest first."""
    made, source = models().values()
    done = Quantization(
        id="qnt_done",
        model=source,
        dataset_id="dat_1",
        options=_OPTIONS,
        status=JobStatus.SUCCEEDED,
        stage=Stage.MEASURE,
        done=67,
        total=67,
        attempt=1,
        cached=False,
        error=None,
        result=made,
        result_dataset_id="dat_2",
        quantized_count=21,
        operation_count=24,
        cost=_COST,
        stage_durations_us={},
        created_at=at(9),
        started_at=at(9, 1),
        finished_at=at(8),
    )
    running = {
        "id": "qnt_running",
        "status": JobStatus.RUNNING,
        "stage": Stage.CALIBRATE,
        "done": 13,
        "options": QuantizeOptions(),
        "result": None,
        "cost": None,
        "created_at": at(1),
    }
    return [done.model_copy(update=running), done]
