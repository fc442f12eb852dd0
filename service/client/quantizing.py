"""The steps of `nnfarm quantize`: upload, ask, follow, download, judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from service.client.http import Client
from service.client.messages import FINAL_JOB, Model, Quantization, QuantizationRequest
from service.client.results import ExitCode
from service.client.tables import share_text, size_text
from service.client.terminal import Terminal
from service.contracts.quantization import QuantizationCost, QuantizeOptions


@dataclass(frozen=True)
class QuantizeCommand:
    """A quantize request in files and words of the command line."""

    model: Path
    dataset: Path
    options: QuantizeOptions = field(default_factory=QuantizeOptions)

    def start(self, client: Client, terminal: Terminal) -> Quantization:
        """Upload what is needed and ask for the quantized model."""
        with terminal.transfer(f"uploading {self.model.name}") as on_bytes:
            model = client.upload_model(self.model, on_bytes=on_bytes)
        with terminal.transfer(f"uploading {self.dataset.name}") as on_bytes:
            dataset = client.upload_dataset(self.dataset, model.id, on_bytes)
        request = QuantizationRequest(
            model_id=model.id, dataset_id=dataset.id, options=self.options
        )
        quantization = client.quantizations.request(request)
        origin = "made before (cached)" if quantization.cached else quantization.status.value
        terminal.say(f"quantization {quantization.id}: {origin}")
        return quantization

    def wait(self, client: Client, terminal: Terminal, started: Quantization) -> Quantization:
        """Follow the events until the quantization is final."""
        with terminal.job(f"quantizing {self.model.name}") as on_event:
            for event in client.quantizations.follow(started.id):
                on_event(event)
        return client.quantizations.get(started.id)


def show_quantization(
    client: Client,
    terminal: Terminal,
    quantization: Quantization,
    output: Path | None = None,
    max_loss: float | None = None,
) -> ExitCode:
    """Show a quantization as it is, save the model where a file is named, and judge its loss.

    Args:
        client: of the service.
        terminal: where to show it.
        quantization: what to show.
        output: the file for the quantized model.
        max_loss: the largest loss that is good, 0 to 1.
    """
    model, cost = quantization.result, quantization.cost
    if quantization.status not in FINAL_JOB:
        state = f"{quantization.status.value}, {quantization.done} of {quantization.total} steps"
        terminal.show(quantization.model_dump(mode="json"), f"{quantization.id}: {state}")
        return ExitCode.OK
    if model is None or cost is None:
        problem = quantization.error
        reason = f"{problem.detail} ({problem.code})" if problem else "no reason was given"
        terminal.show(quantization.model_dump(mode="json"))
        terminal.say(f"error: the quantization failed: {reason}")
        return ExitCode.FAILED
    if output is not None:
        with terminal.transfer(f"downloading {output.name}") as on_bytes:
            client.download_model(model, output, on_bytes)
    violation = violation_of(cost, max_loss)
    content = {
        "quantization": quantization.model_dump(mode="json"),
        "file": None if output is None else str(output),
        "violations": [violation] if violation else [],
    }
    terminal.show(content, _cost_table(quantization, model, cost))
    terminal.say(f"loss {_loss_text(cost)}; {model.id}" + (f" saved as {output}" if output else ""))
    if violation:
        terminal.say(f"error: {violation}")
        return ExitCode.ACCURACY
    return ExitCode.OK


def _loss_text(cost: QuantizationCost) -> str:
    if cost.loss is None:
        return "not known: the first output has no classes"
    return f"{share_text(cost.loss)} of {'agreement' if cost.float_top1 is None else 'top-1'}"


def violation_of(cost: QuantizationCost, max_loss: float | None) -> str | None:
    """What is wrong with the loss, if anything is."""
    if max_loss is None:
        return None
    if cost.loss is None:
        return "the loss is not known: the first output has no classes"
    if cost.loss > max_loss:
        return f"the loss of {share_text(cost.loss)} is above {share_text(max_loss)}"
    return None


def _cost_table(quantization: Quantization, result: Model, cost: QuantizationCost) -> Table:
    table = Table()
    for name in ("model", "name", "size", "top-1", "agreement", "largest error", "quantized"):
        table.add_column(name, overflow="fold")
    source = quantization.model
    size = size_text(source.size_bytes)
    table.add_row(source.id, source.name, size, share_text(cost.float_top1), "", "", "")
    table.add_row(
        result.id,
        result.name,
        size_text(result.size_bytes),
        share_text(cost.quantized_top1),
        share_text(cost.agreement),
        f"{cost.max_abs_error:.2g}",
        f"{quantization.quantized_count}/{quantization.operation_count} operations",
    )
    return table
