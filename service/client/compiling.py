"""The steps of `nnfarm compile`: upload, ask, follow, download, judge. The demo takes them too."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path

from service.client.http import Client
from service.client.messages import (
    FINAL_JOB,
    ArtifactId,
    Compilation,
    CompilationRequest,
    Result,
    RunId,
    RunOn,
)
from service.client.results import (
    ExitCode,
    Thresholds,
    has_failed_run,
    notes_on,
    package_name,
)
from service.client.tables import result_table
from service.client.terminal import Terminal
from service.contracts.errors import NnfarmError
from service.contracts.jobs import CompileOptions, JobStatus
from service.contracts.targets import Abi


@dataclass(frozen=True)
class CompileCommand:
    """A compile request in files and words of the command line."""

    model: Path
    levels: tuple[int, ...]
    abis: tuple[Abi, ...]
    run_on: RunOn = "none"
    dataset: Path | None = None
    options: CompileOptions = field(default_factory=CompileOptions)

    def start(self, client: Client, terminal: Terminal) -> Compilation:
        """Upload what is needed and ask for the artifacts."""
        with terminal.transfer(f"uploading {self.model.name}") as on_bytes:
            model = client.upload_model(self.model, on_bytes=on_bytes)
        dataset_id = None
        if self.dataset is not None:
            with terminal.transfer(f"uploading {self.dataset.name}") as on_bytes:
                dataset_id = client.upload_dataset(self.dataset, model.id, on_bytes).id
        request = CompilationRequest(
            model_id=model.id,
            levels=self.levels,
            abis=self.abis,
            dataset_id=dataset_id,
            options=self.options,
            run_on=self.run_on,
        )
        compilation = client.compile(request)
        origin = "built before (cached)" if compilation.cached else compilation.status.value
        terminal.say(f"compilation {compilation.id}: {origin}")
        return compilation

    def wait(self, client: Client, terminal: Terminal, compilation: Compilation) -> Compilation:
        """Follow the events until the compilation and its runs are final."""
        with terminal.job(f"compiling {self.model.name}") as on_event:
            for event in client.follow(compilation.id):
                on_event(event)
        return client.compilation(compilation.id)


def save_packages(
    client: Client, terminal: Terminal, results: list[Result], folder: Path
) -> dict[ArtifactId, Path]:
    """Download the packages of results; the file of each artifact."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NnfarmError("request.invalid", f"{folder}: {error.strerror}") from error
    paths = dict[ArtifactId, Path]()
    for artifact in {result.artifact.id: result.artifact for result in results}.values():
        path = folder / package_name(artifact)
        with terminal.transfer(f"downloading {path.name}") as on_bytes:
            client.download_package(artifact, path, on_bytes)
        paths[artifact.id] = path
    return paths


def show_results(
    client: Client,
    terminal: Terminal,
    compilation: Compilation,
    folder: Path | None,
    thresholds: Thresholds | None = None,
    earlier_runs: Set[RunId] = frozenset(),
) -> ExitCode:
    """Show a compilation as it is, save its packages where a folder is given, and judge it.

    A request that was built before has runs of its own: `earlier_runs` are not shown again, and an
    old failure is not held against it.
    """
    if compilation.status not in FINAL_JOB:
        state = f"{compilation.status.value}, {compilation.done} of {compilation.total} steps"
        terminal.show(compilation.model_dump(mode="json"), f"{compilation.id}: {state}")
        return ExitCode.OK
    if compilation.status is JobStatus.FAILED:
        problem = compilation.error
        reason = f"{problem.detail} ({problem.code})" if problem else "no reason was given"
        terminal.show(compilation.model_dump(mode="json"))
        terminal.say(f"error: the compilation failed: {reason}")
        return ExitCode.FAILED
    results = client.results(compilation.id, without=earlier_runs)
    paths = save_packages(client, terminal, results, folder) if folder else {}
    violations = thresholds.violations(results) if thresholds else []
    content = {
        "compilation": compilation.model_dump(mode="json"),
        "results": [
            result.model_dump(mode="json") | {"file": _text(paths.get(result.artifact.id))}
            for result in results
        ],
        "violations": violations,
    }
    terminal.show(content, result_table(results, paths))
    if folder:
        terminal.say(f"packages saved in {folder}")
    for result in results:
        for note in notes_on(result):
            terminal.say(note)
    if has_failed_run(results):
        terminal.say("error: a run failed")
        return ExitCode.FAILED
    for violation in violations:
        terminal.say(f"error: {violation}")
    return ExitCode.ACCURACY if violations else ExitCode.OK


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
