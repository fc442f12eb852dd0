"""The demo: the example model through the whole stack, one table at the end."""

from __future__ import annotations

from pathlib import Path

from service.client import Client
from service.client.compiling import CompileCommand, show_results
from service.client.results import ExitCode
from service.client.terminal import Terminal
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
        return show_results(client, terminal, compilation, output, earlier_runs=earlier)
