"""What the service adds to a compilation: from the request to the finished artifacts.

    python -m benchmarks.service_overhead [model.onnx] [--url http://127.0.0.1:8000] --repeats 5

Starts a stack of its own, without phones, where no URL is given. Each repeat stamps the model's
metadata, so that none is a cache hit; then the last request is sent again, which is one. Prints one
JSON document: `queued` (request to claim), `worked` (claim to result), `stages` (sum of the
compiler's own stages) and `overhead` = queued + worked - stages, all in microseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import onnx

from benchmarks.machine import describe_machine
from service.local.stack import Stack, StackOptions

EXAMPLE = Path(__file__).parents[1] / "examples" / "digits" / "digits.onnx"
_POLL_S = 0.05
_FINAL = ("succeeded", "failed")


def main() -> None:
    arguments = _parse()
    with ExitStack() as stack:
        if not arguments.url:
            arguments.url = stack.enter_context(_own_stack())
        document = _measure_all(arguments)
    json.dump(document, sys.stdout, indent=2)
    print()


@contextmanager
def _own_stack() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        options = StackOptions(Path(folder), "127.0.0.1", None, "none", usb_phones=False)
        with Stack(options, lambda text: print(text, file=sys.stderr)) as stack:
            yield stack.url


def _measure_all(arguments: argparse.Namespace) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {arguments.token}"} if arguments.token else {}
    with httpx.Client(base_url=arguments.url, headers=headers, timeout=60, trust_env=False) as http:
        requests = [_request(http, arguments) for _ in range(arguments.repeats)]
        samples = [_measure(http, request) for request in requests]
        cached_us = _measure_cached(http, requests[-1])
    document: dict[str, Any] = {"machine": describe_machine(), "model": arguments.model.name}
    for name in ("queued", "worked", "stages", "overhead"):
        values = [sample[name] for sample in samples]
        document[f"{name}_us"] = {"median": statistics.median(values), "samples": values}
    return document | {"cached_us": cached_us}


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", nargs="?", type=Path, default=EXAMPLE, metavar="MODEL.onnx")
    parser.add_argument("--url", default="", help="a running stack with a worker")
    parser.add_argument("--token", default="", help="where the service asks users for one")
    parser.add_argument("--levels", nargs="+", type=int, default=[1])
    parser.add_argument("--abis", nargs="+", default=["arm64-v8a"])
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


def _request(http: httpx.Client, arguments: argparse.Namespace) -> dict[str, Any]:
    model = onnx.load(arguments.model)
    model.metadata_props.add(key="benchmark", value=uuid.uuid4().hex)
    content = model.SerializeToString()
    answer = http.post("/v1/models", files={"file": (arguments.model.name, content)})
    model_id = _checked(answer)["id"]
    targets = {"levels": arguments.levels, "abis": arguments.abis}
    return {"model_id": model_id, **targets, "run_on": "none"}


def _measure(http: httpx.Client, request: dict[str, Any]) -> dict[str, int]:
    compilation = _checked(http.post("/v1/compilations", json=request))
    while compilation["status"] not in _FINAL:
        time.sleep(_POLL_S)
        compilation = _checked(http.get(f"/v1/compilations/{compilation['id']}"))
    if compilation["status"] == "failed":
        raise SystemExit(f"The compilation failed: {compilation['error']}")
    created, started, finished = (
        datetime.fromisoformat(compilation[name])
        for name in ("created_at", "started_at", "finished_at")
    )
    queued, worked = ((b - a).total_seconds() for a, b in ((created, started), (started, finished)))
    stages_us = sum(compilation["stage_durations_us"].values())
    queued_us, worked_us = round(queued * 1e6), round(worked * 1e6)
    return {
        "queued": queued_us,
        "worked": worked_us,
        "stages": stages_us,
        "overhead": queued_us + worked_us - stages_us,
    }


def _measure_cached(http: httpx.Client, request: dict[str, Any]) -> int:
    started_s = time.perf_counter()
    compilation = _checked(http.post("/v1/compilations", json=request))
    if not compilation["cached"]:
        raise SystemExit("The same request was built twice: the cache does not work.")
    return round((time.perf_counter() - started_s) * 1e6)


def _checked(answer: httpx.Response) -> dict[str, Any]:
    if not answer.is_success:
        raise SystemExit(f"{answer.request.method} {answer.request.url}: {answer.text}")
    body: dict[str, Any] = answer.json()
    return body


if __name__ == "__main__":
    main()
