from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
import redis
from onnx import TensorProto, helper

from tests.service.farm import SIGNATURE, WORKER_TOKEN, Farm, bearer, eventually

Serve = Callable[..., Farm]

COST = {
    "sample_count": 3,
    "float_top1": 0.9,
    "quantized_top1": 0.85,
    "agreement": 0.95,
    "loss": 0.05,
    "max_abs_error": 0.5,
    "max_rel_error": 0.01,
}
INFRA = {
    "code": "infra.storage",
    "title": "t",
    "status": 503,
    "detail": "disk",
    "error_class": "infra",
}


def add_dataset(farm: Farm, model_id: str, fill: float = 0.0) -> str:
    buffer = io.BytesIO()
    np.savez(buffer, image=np.full((3, 1, 1, 8, 8), fill, np.float32), labels=np.arange(3))
    files = {"file": ("d.npz", buffer.getvalue())}
    answer = farm.client.post("/v1/datasets", files=files, data={"model_id": model_id})
    dataset_id: str = farm.ok(answer)["id"]
    return dataset_id


def ask(farm: Farm, **request: Any) -> httpx.Response:
    request.setdefault("model_id", farm.seed_model())
    if "dataset_id" not in request:
        request["dataset_id"] = add_dataset(farm, request["model_id"])
    return farm.client.post("/v1/quantizations", json=request)


def claim(farm: Farm, quantization_id: str) -> dict[str, Any]:
    path = f"/internal/v1/quantizations/{quantization_id}/claim"
    body = {"worker_name": "w1"}
    return farm.ok(farm.client.post(path, json=body, headers=bearer(WORKER_TOKEN)))


def call(farm: Farm, spec: dict[str, Any], name: str, **body: Any) -> httpx.Response:
    path = f"/internal/v1/quantizations/{spec['quantization_id']}/{name}"
    body = {"attempt": spec["attempt"], **body}
    return farm.client.post(path, json=body, headers=bearer(spec["job_token"]))


def quantized_model() -> bytes:
    """A model of the farm's signature, as a worker could deliver it."""
    weights = helper.make_tensor("w", TensorProto.FLOAT, (64, 10), np.zeros(640, np.float32))
    shape = helper.make_tensor("s", TensorProto.INT64, (2,), [1, 64])
    nodes = [
        helper.make_node("Reshape", ["image", "s"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["scores"]),
    ]
    borders = [
        [helper.make_tensor_value_info(t.name, TensorProto.FLOAT, t.shape) for t in side]
        for side in (SIGNATURE.inputs, SIGNATURE.outputs)
    ]
    graph = helper.make_graph(nodes, "g", *borders, initializer=[weights, shape])
    opset = [helper.make_opsetid("", 17)]
    content: bytes = helper.make_model(graph, opset_imports=opset).SerializeToString()
    return content


def outcome(content: bytes) -> dict[str, Any]:
    return {
        "model_sha256": hashlib.sha256(content).hexdigest(),
        "model_size_bytes": len(content),
        "quantized_count": 1,
        "operation_count": 2,
        "cost": COST,
        "stage_durations_us": {"calibrate": 5},
        "child_duration_us": 9,
    }


def test_quantization_goes_from_queue_to_a_model_of_its_own(farm: Farm) -> None:
    made = farm.ok(ask(farm, options={"method": "entropy", "exclude_nodes": ["b", "a", "b"]}))
    assert (made["status"], made["cached"], made["result"]) == ("queued", False, None)
    with redis.Redis.from_url(farm.settings.redis_url) as queue:
        eventually(lambda: any(made["id"].encode() in t for t in queue.lrange("compile", 0, -1)))
    spec = claim(farm, made["id"])
    assert spec["options"]["exclude_nodes"] == ["a", "b"]
    assert spec["signature"] == SIGNATURE.model_dump(mode="json")
    event = {"stage": "calibrate", "done": 2, "total": 6}
    assert call(farm, spec, "events", events=[event]).status_code == 204
    assert farm.get(f"/v1/quantizations/{made['id']}")["stage"] == "calibrate"
    content = quantized_model()
    farm.put_blob(spec["job_token"], content)
    for _ in range(2):  # a worker that missed the answer says it again
        answer = call(farm, spec, "complete", **outcome(content))
        assert answer.status_code == 204, answer.text
    done = farm.get(f"/v1/quantizations/{made['id']}")
    assert (done["status"], done["cost"], done["stage_durations_us"]) == (
        "succeeded", COST, {"calibrate": 5},
    )  # fmt: skip
    result = done["result"]
    assert (result["name"], result["sha256"]) == (
        "digits-int8",
        hashlib.sha256(content).hexdigest(),
    )
    assert result["derived_from"] == {
        "model_id": made["model"]["id"],
        "quantization_id": made["id"],
        "options": spec["options"],
    }
    assert farm.get(f"/v1/models/{result['id']}") == result
    assert farm.get("/v1/models")["items"][1]["derived_from"] is None
    shared = farm.get(f"/v1/datasets/{done['result_dataset_id']}")
    assert (shared["model_id"], shared["has_labels"]) == (result["id"], True)
    compilation = farm.compile(model_id=result["id"], dataset_id=shared["id"])
    assert compilation["status"] == "queued"
    assert [item["id"] for item in farm.get("/v1/quantizations")["items"]] == [made["id"]]


def test_same_request_is_answered_from_what_was_made(farm: Farm) -> None:
    model = farm.seed_model()
    dataset = add_dataset(farm, model)
    request = {"model_id": model, "dataset_id": dataset}
    made = farm.ok(ask(farm, **request))
    joined = ask(farm, **request, options={"percentile": 99.0})  # says nothing for min-max
    assert (joined.status_code, joined.json()["id"]) == (200, made["id"])
    assert not joined.json()["cached"]
    spec = claim(farm, made["id"])
    content = quantized_model()
    farm.put_blob(spec["job_token"], content)
    call(farm, spec, "complete", **outcome(content))
    again = ask(farm, **request).json()
    assert (again["id"], again["cached"], again["cost"]) == (made["id"], True, COST)
    for changes in (
        {"options": {"method": "percentile"}},
        {"options": {"per_channel": False}},
        {"dataset_id": add_dataset(farm, model, fill=1.0)},
    ):
        other = ask(farm, **{**request, **changes})
        assert (other.status_code, other.json()["id"] != made["id"]) == (201, True)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"model_id": "mod_none", "dataset_id": "d"}, "request.not_found", "mod_none"),
        ({"dataset_id": "dat_none"}, "request.not_found", "dat_none"),
        ({"options": {"method": "guess"}}, "quantize.bad_option", "body.options.method"),
        ({"options": {"percentile": 101}}, "quantize.bad_option", "percentile"),
        ({"options": {"exclude_nodes": [""]}}, "quantize.bad_option", "exclude_nodes"),
        ({"options": {"weight": "uint8"}}, "quantize.bad_option", "uint8 activations"),
        (
            {"options": {"weight": "uint8", "activation": "uint8"}},
            "quantize.bad_option",
            "one scale a tensor",
        ),
        ({"surprise": 1}, "request.invalid", "surprise"),
    ],
)
def test_bad_requests_have_a_code_and_a_sentence(
    lite_farm: Farm, body: dict[str, Any], code: str, words: str
) -> None:
    answer = ask(lite_farm, **body)
    found = answer.json()
    assert (found["code"], found["error_class"]) == (code, "user")
    assert words in found["detail"]


def test_dataset_of_another_model_is_a_mismatch(lite_farm: Farm) -> None:
    dataset = add_dataset(lite_farm, lite_farm.seed_model(b"another"))
    answer = ask(lite_farm, dataset_id=dataset)
    assert (answer.status_code, answer.json()["code"]) == (422, "dataset.mismatch")


def test_result_that_is_no_model_fails_inspection(farm: Farm) -> None:
    spec = claim(farm, farm.ok(ask(farm))["id"])
    content = b"not a model"
    missing = call(farm, spec, "complete", **outcome(content))
    assert (missing.status_code, missing.json()["code"]) == (422, "request.invalid")
    assert "not stored" in missing.json()["detail"]
    farm.put_blob(spec["job_token"], content)
    refused = call(farm, spec, "complete", **outcome(content))
    assert (refused.status_code, refused.json()["code"]) == (422, "model.unreadable")
    assert farm.get(f"/v1/quantizations/{spec['quantization_id']}")["status"] == "running"


def test_infra_failures_are_tried_again_and_lost_workers_fenced(
    start: Serve, database_url: str
) -> None:
    farm = start(database_url=database_url, job_lease_s=0.2)
    made = farm.ok(ask(farm))
    spec = claim(farm, made["id"])
    assert call(farm, spec, "fail", problem=INFRA).status_code == 204
    assert farm.get(f"/v1/quantizations/{made['id']}")["status"] == "queued"
    lost = claim(farm, made["id"])
    eventually(lambda: farm.get(f"/v1/quantizations/{made['id']}")["status"] == "queued")
    assert call(farm, lost, "events").json()["code"] == "request.fenced"


def test_cancelled_job_is_over_and_its_worker_is_told(farm: Farm) -> None:
    model = farm.seed_model()
    request = {"model_id": model, "dataset_id": add_dataset(farm, model)}
    made = farm.ok(ask(farm, **request))
    spec = claim(farm, made["id"])
    path = f"/v1/quantizations/{made['id']}"
    for _ in range(2):
        cancelled = farm.ok(farm.client.post(f"{path}/cancel"))
        assert (cancelled["status"], cancelled["error"]["code"]) == ("failed", "job.cancelled")
    assert call(farm, spec, "events").json()["code"] == "request.fenced"
    with farm.client.stream("GET", f"{path}/events") as answer:
        lines = list(answer.iter_lines())
    assert sum(line == "event: status" for line in lines) == 3
    again = ask(farm, **request)
    assert (again.status_code, again.json()["id"] != made["id"]) == (201, True)


def test_finished_job_cannot_be_cancelled(farm: Farm) -> None:
    spec = claim(farm, farm.ok(ask(farm))["id"])
    content = quantized_model()
    farm.put_blob(spec["job_token"], content)
    call(farm, spec, "complete", **outcome(content))
    answer = farm.client.post(f"/v1/quantizations/{spec['quantization_id']}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "request.conflict")


def test_compilations_can_be_cancelled_too(farm: Farm) -> None:
    made = farm.compile()
    cancelled = farm.ok(farm.client.post(f"/v1/compilations/{made['id']}/cancel"))
    assert (cancelled["status"], cancelled["error"]["code"]) == ("failed", "job.cancelled")


def test_job_token_opens_no_job_of_another_kind(farm: Farm) -> None:
    compile_spec = farm.claim(farm.compile()["id"])
    spec = claim(farm, farm.ok(ask(farm))["id"])
    answer = call(farm, {**spec, "job_token": compile_spec["job_token"]}, "events")
    assert answer.json()["code"] == "request.forbidden"
