"""The steps of `nnfarm tune`: upload, ask, follow, show what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from service.client.http import Client
from service.client.messages import FINAL_JOB, Tuning, TuningRecord, TuningRequest
from service.client.results import ExitCode
from service.client.terminal import Terminal
from service.contracts.jobs import JobStatus, Stage
from service.contracts.kernels import KernelTiming
from service.contracts.tuning import TuneOptions


@dataclass(frozen=True)
class TuneCommand:
    """A tune request in files and words of the command line."""

    model: Path
    options: TuneOptions = field(default_factory=TuneOptions)

    def start(self, client: Client, terminal: Terminal) -> Tuning:
        """Upload the model and ask for faster kernels."""
        with terminal.transfer(f"uploading {self.model.name}") as on_bytes:
            model = client.upload_model(self.model, on_bytes=on_bytes)
        request = TuningRequest(model_id=model.id, options=self.options)
        tuning = client.tunings.request(request)
        terminal.say(f"tuning {tuning.id}: {tuning.status.value}")
        return tuning

    def wait(self, client: Client, terminal: Terminal, started: Tuning) -> Tuning:
        """Follow the events until the tuning is final; each kernel is told as it comes."""
        with terminal.job(f"tuning {self.model.name}") as on_event:
            for event in client.tunings.follow(started.id):
                on_event(event)
        return client.tunings.get(started.id)


def show_tuning(terminal: Terminal, tuning: Tuning) -> ExitCode:
    """Show a tuning as it is: every kernel with both figures, and the whole model."""
    content = {"tuning": tuning.model_dump(mode="json")}
    if tuning.status not in FINAL_JOB:
        state = f"{tuning.status.value}, {tuning.done} of {tuning.total} steps"
        if tuning.stage == Stage.BENCH and tuning.device is not None:
            state += f", measuring on {tuning.device.name}"
        terminal.show(content, f"{tuning.id}: {state}", _table(tuning))
        return ExitCode.OK
    terminal.show(content, _table(tuning))
    if tuning.device is not None and tuning.device.simulated:
        terminal.say(
            f"{tuning.device.name} is a virtual phone: the times are simulated, and no compilation "
            "uses these schedules"
        )
    if tuning.status is JobStatus.FAILED:
        problem = tuning.error
        reason = f"{problem.detail} ({problem.code})" if problem else "no reason was given"
        terminal.say(f"error: the tuning failed: {reason}")
        return ExitCode.FAILED
    kept = sum(record.is_kept for record in tuning.records)
    where = f" on {tuning.machine}" if tuning.device is not None else ""
    terminal.say(
        f"{kept} of {len(tuning.records)} kernels{where} have a faster schedule; the model has "
        f"{tuning.kernel_count}, of which {tuning.known_count} were settled before"
    )
    if tuning.before is not None and tuning.after is not None:
        times = f"{_text(tuning.before)} before, {_text(tuning.after)} now"
        terminal.say(f"the whole model on one thread of {tuning.machine}: {times}")
    return ExitCode.OK


def _table(tuning: Tuning) -> Table:
    table = Table()
    table.add_column("kernel", overflow="fold")
    for name in ("calls", "by the rules", "best other", "ratio", "tried", "kept"):
        table.add_column(name, justify="right")
    for record in tuning.records:
        after = record.after
        ratio = after.median_us / record.before.median_us if after else None
        table.add_row(
            record.kernel,
            str(record.calls),
            _text(record.before),
            _text(after) if after else "none near",
            f"{ratio:.2f}" if ratio is not None else "-",
            str(record.tried),
            _mark(record),
        )
    return table


def _mark(record: TuningRecord) -> str:
    if record.simulated:
        return "simulated"
    return record.id if record.is_kept else "-"


def _text(timing: KernelTiming) -> str:
    return f"{timing.median_us:.1f} ± {timing.spread_us:.1f} us"
