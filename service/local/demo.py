"""The demo: the example model through the whole stack, one table at the end."""

from __future__ import annotations

from pathlib import Path

from service.client import Client
from service.client.compiling import CompileCommand, show_results
from service.client.messages import Compilation
from service.client.results import ExitCode
from service.client.terminal import Terminal
from service.contracts.devices import DeviceState
from service.contracts.targets import Abi

_EXAMPLE_DIR = Path(__file__).resolve().parents[2] / "examples" / "digits"

DEMO_COMMAND = CompileCommand(
    model=_EXAMPLE_DIR / "digits.onnx",
    dataset=_EXAMPLE_DIR / "digits_test.npz",
    levels=(1, 2, 3, 4, 7),
    abis=(Abi.X86_64, Abi.ARM64_V8A),
    run_on="any",
)


def run_demo(url: str, output: Path) -> ExitCode:
    """Compile and run the example on a running stack, save the packages in `output`."""
    terminal = Terminal()
    with Client(url) as client:
        compilation = DEMO_COMMAND.start(client, terminal)
        earlier = compilation.finished_runs()
        compilation = DEMO_COMMAND.wait(client, terminal, compilation)
        if _start_runs_on_phones(client, compilation):
            compilation = DEMO_COMMAND.wait(client, terminal, compilation)
        return show_results(client, terminal, compilation, output, earlier_runs=earlier)


def _start_runs_on_phones(client: Client, compilation: Compilation) -> bool:
    """Run what fits on every real phone too: "any" may have given all to the virtual ones."""
    started = False
    for device in client.devices():
        phone = device.description
        if device.state is not DeviceState.ONLINE or phone.simulated or phone.reason_unusable:
            continue
        for artifact in (client.artifact(ref.id) for ref in compilation.artifacts):
            if artifact.abi in phone.abis and artifact.feature_level <= phone.feature_level:
                client.start_run(artifact.id, device.id)
                started = True
    return started
