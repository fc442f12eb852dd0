"""An entry for the sandbox that does what `job.json` says; no TVM.

`{"do": "<function below>", ...arguments}`.
"""

import hashlib
import json
import os
import signal
import socket
from pathlib import Path

from service.contracts.artifacts import Manifest, Part, PartRole
from service.contracts.errors import NnfarmError
from service.contracts.jobs import (
    BuiltArtifact,
    CompileOutcome,
    CompileTarget,
    EvaluationSet,
    Stage,
    StageEvent,
)
from service.contracts.targets import Abi
from service.contracts.tensors import ModelSignature

SIGNATURE = ModelSignature(inputs=(), outputs=())


def main(work_dir: Path) -> int:
    order = json.loads((work_dir / "job.json").read_text())
    # A real job has no "do"; its model's bytes are the order then.
    if "do" not in order:
        order = json.loads(Path(order["model_path"]).read_text())
    return int(ACTIONS[order.pop("do")](work_dir, **order) or 0)


def build(work_dir: Path, text: str = "library", **changes: str) -> None:
    event(work_dir, 0)
    blobs = [store(work_dir, t.encode()) for t in (text, "inputs", "expected")]
    part = Part(role=PartRole.LIBRARY, path="model.so", sha256=blobs[0], size_bytes=len(text))
    part = part.model_copy(update=changes)
    target = CompileTarget(feature_level=1, abi=Abi.X86_64)
    manifest = Manifest(
        model_sha256="0" * 64,
        model_name="fake",
        feature_level=1,
        needed_level=0,
        abi=Abi.X86_64,
        signature=SIGNATURE,
        subgraph_count=0,
        offloaded_count=0,
        operation_count=0,
        parts=(part,),
        versions={},
        options={},
    )
    outcome = CompileOutcome(
        attempt=1,
        signature=SIGNATURE,
        evaluation=EvaluationSet(
            sample_count=1, inputs_sha256=blobs[1], expected_sha256=blobs[2], synthetic=True
        ),
        artifacts=(BuiltArtifact(target=target, manifest=manifest),),
        stage_durations_us={"ingest": 5},
        child_duration_us=0,
    )
    (work_dir / "outcome.json").write_text(outcome.model_dump_json())
    event(work_dir, 1)


def build_from_files(work_dir: Path) -> None:
    job = json.loads((work_dir / "job.json").read_text())
    build(work_dir, Path(job["dataset_path"]).read_text())


def event(work_dir: Path, done: int) -> None:
    line = StageEvent(stage=Stage.INGEST, done=done, total=1).model_dump_json()
    with (work_dir / "events.jsonl").open("a") as file:
        file.write(line + "\n")


def store(work_dir: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    (work_dir / "blobs").mkdir(exist_ok=True)
    (work_dir / "blobs" / digest).write_bytes(content)
    return digest


def garbage(work_dir: Path) -> None:
    print("\x00\xff garbage")
    (work_dir / "events.jsonl").write_bytes(b"\xff{}\nnot json\n" + b"x" * 200_000)
    (work_dir / "outcome.json").write_bytes(b"\x80 no json")


def refuse(work_dir: Path, code: str = "model.unreadable") -> int:
    problem = NnfarmError(code, "No model at all.", position=3).to_problem()
    (work_dir / "problem.json").write_text(problem.model_dump_json())
    return 1


def crash(_: Path, number: int = signal.SIGSEGV) -> None:
    print("last words", flush=True)
    os.kill(os.getpid(), number)


def abort_for_memory(_: Path) -> None:
    print("terminate called after throwing an instance of 'std::bad_alloc'", flush=True)
    os.abort()


def raise_error(_: Path) -> None:
    raise RuntimeError("the child broke")


def allocate(_: Path) -> int:
    return len(bytearray(1 << 40))


def hang(work_dir: Path) -> None:
    (work_dir / "server.pid").write_text(str(os.getppid()))
    event(work_dir, 0)
    if os.fork() == 0:
        # A tool left running: it must go with the job.
        signal.pause()
    signal.pause()


def spin(_: Path) -> None:
    while True:
        pass


def fill_disk(work_dir: Path) -> None:
    with (work_dir / "big").open("wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))


def look_around(_: Path, port: int, worker_pid: int, secret: str = "/") -> None:
    """Writes what a hostile model could learn into child.log."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        network = "open"
    except OSError as error:
        network = f"closed: {error}"
    secrets = {}
    for process in (worker_pid, os.getppid(), "self"):
        try:
            secrets[str(process)] = "TOKEN" in Path(f"/proc/{process}/environ").read_text()
        except OSError:
            secrets[str(process)] = False
    try:
        os.kill(worker_pid, 0)
        signals = "open"
    except OSError as error:
        signals = f"closed: {error}"
    status = Path("/proc/self/status").read_text()
    privileges = [line for line in status.splitlines() if line.startswith("NoNewPrivs")]
    found = {
        "network": network,
        "signals": signals,
        "files": {name: _tries(secret, name) for name in ("r", "w")},
        "secrets": secrets,
        "environment": sorted(os.environ),
        "folder": str(Path.cwd()),
        "session_leader": os.getsid(0) == os.getpid(),
        "privileges": privileges,
        "descriptors": sorted(map(str, Path("/proc/self/fd").iterdir())),
    }
    print("FOUND " + json.dumps(found))


def _tries(path: str, mode: str) -> str:
    try:
        with Path(path).open(mode):
            return "open"
    except OSError as error:
        return f"closed: {error.strerror}"


def link_blob(work_dir: Path) -> None:
    build(work_dir, "secret")
    outside = work_dir / "elsewhere"
    outside.write_text("secret")
    blob = work_dir / "blobs" / hashlib.sha256(b"secret").hexdigest()
    blob.unlink()
    blob.symlink_to(outside)


def link_blobs(work_dir: Path) -> None:
    build(work_dir)
    (work_dir / "blobs").rename(work_dir / "elsewhere")
    (work_dir / "blobs").symlink_to("elsewhere")


def pipe_outcome(work_dir: Path) -> None:
    os.mkfifo(work_dir / "outcome.json")


def falsify_blob(work_dir: Path) -> None:
    build(work_dir, "library")
    (work_dir / "blobs" / hashlib.sha256(b"library").hexdigest()).write_text("other")


def lose_blob(work_dir: Path) -> None:
    build(work_dir, "library")
    (work_dir / "blobs" / hashlib.sha256(b"library").hexdigest()).unlink()


ACTIONS = {
    function.__name__: function
    for function in (
        build, build_from_files, garbage, refuse, crash, abort_for_memory, raise_error, allocate,
        hang, spin, fill_disk, look_around, link_blob, link_blobs, pipe_outcome, falsify_blob,
        lose_blob,
    )
}  # fmt: skip
