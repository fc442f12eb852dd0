"""The digits example asked of a running stack."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from service.client import Client, CompilationRequest
from service.client.messages import Compilation, Event, Result
from service.client.results import notes_on
from service.contracts.jobs import CompileOptions, JobStatus
from service.contracts.runs import RunStatus
from service.contracts.targets import Abi
from service.local.stack import Stack

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"


def request_digits(
    client: Client, levels: tuple[int, ...] = (1, 4), exclude_ops: tuple[str, ...] = ()
) -> Compilation:
    """Ask for digits; another set of excluded operations makes a build of its own."""
    model = client.upload_model(DIGITS / "digits.onnx")
    dataset = client.upload_dataset(DIGITS / "digits_test.npz", model.id)
    return client.compile(
        CompilationRequest(
            model_id=model.id,
            dataset_id=dataset.id,
            levels=levels,
            abis=(Abi.X86_64,),
            options=CompileOptions(exclude_ops=exclude_ops),
            run_on="any",
        )
    )


def finish(client: Client, compilation: Compilation) -> list[Result]:
    """Follow to the end and demand that all went well."""
    for _ in client.follow(compilation.id):
        pass
    done = client.compilation(compilation.id)
    assert done.status is JobStatus.SUCCEEDED, done.error
    results = client.results(compilation.id)
    for result in results:
        assert result.run is not None
        assert result.run.status is RunStatus.SUCCEEDED, notes_on(result)
    return results


def is_compiling(event: Event) -> bool:
    """The worker has begun."""
    return event.kind == "progress"


def is_running(event: Event) -> bool:
    """An agent has a run."""
    return event.kind == "run" and event.data["status"] == RunStatus.LEASED


def kill_in_the_middle(
    stack: Stack, client: Client, victim: str, moment: Callable[[Event], bool]
) -> list[Result]:
    """Ask for digits, kill -9 a part at a moment, follow to the end; the part was started again."""
    # A build of its own for each case: the excluded type does not occur in the model.
    compilation = request_digits(client, exclude_ops=(f"No{victim}{moment.__name__}",))
    killed = None
    for event in client.follow(compilation.id):
        if killed is None and moment(event):
            killed = stack.processes[victim].pid
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
    assert killed is not None, "the moment to kill never came"
    results = finish(client, compilation)
    assert stack.processes[victim].pid != killed, "started again"
    assert len(client.runs(compilation.id)) == len(results), "nothing is counted twice"
    return results
