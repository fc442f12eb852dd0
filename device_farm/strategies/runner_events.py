"""What nnfarm_runner prints, line by line; see docs/reference/runner.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from service.contracts.bench import BenchedKernel
from service.contracts.devices import Accelerator
from service.contracts.kernels import KernelTiming
from service.contracts.runs import Fallback
from service.contracts.targets import CpuVariant


class StartEvent(BaseModel):
    """The runner is up."""

    event: Literal["start"]
    runner: str
    target: str
    pid: int


class CpuEvent(BaseModel):
    """What the processor can do, of a probe; names as in Linux's /proc/cpuinfo."""

    event: Literal["cpu"]
    features: tuple[str, ...]


class NnapiEvent(BaseModel):
    """NNAPI as the runner found it."""

    event: Literal["nnapi"]
    available: bool
    feature_level: int
    detail: str = ""
    devices: tuple[Accelerator, ...] = ()


class LoadedEvent(BaseModel):
    """A library is loaded."""

    event: Literal["loaded"]
    library: str
    load_us: float
    cpu_variant: CpuVariant | None = None


class SubgraphEvent(BaseModel):
    """One NNAPI subgraph is compiled."""

    event: Literal["subgraph"]
    symbol: str
    compile_us: float
    operations: int
    devices: tuple[str, ...] = ()


class CompileTimesEvent(BaseModel):
    """Two compilations of all subgraphs, each in a process of its own."""

    event: Literal["compile_times"]
    cold_us: float
    cached_us: float | None = None


class FallbackEvent(Fallback):
    """The runner moved to the CPU twin."""

    event: Literal["fallback"]


class CrashEvent(BaseModel):
    """A driver crashed or hung in the trial, now or in an earlier run."""

    event: Literal["crash"]
    devices: tuple[str, ...]
    subgraphs: tuple[str, ...]
    code: str
    detail: str
    new: bool


class FirstRunEvent(BaseModel):
    """The first inference is over."""

    event: Literal["first_run"]
    us: float


class LatencyEvent(BaseModel):
    """All measured inferences."""

    event: Literal["latency"]
    samples_us: tuple[float, ...]


class OutputsEvent(BaseModel):
    """The outputs are written."""

    event: Literal["outputs"]
    samples: int
    file: str


class MemoryEvent(BaseModel):
    """Largest resident set of the runner."""

    event: Literal["memory"]
    peak_rss_bytes: int


class KernelEvent(BaseModel):
    """A kernel of a bench is measured, or could not be."""

    event: Literal["kernel"]
    signature: str
    before: KernelTiming | None = None
    after: KernelTiming | None = None
    best: int | None = None
    rounds: int = 0
    tried: int = 0
    duration_us: int = 0
    error: str = ""

    def measured(self) -> BenchedKernel | None:
        """What the service is told; None where nothing was measured."""
        if self.before is None:
            return None
        return BenchedKernel.model_validate(self.model_dump(exclude={"event", "error"}))


class EndEvent(BaseModel):
    """All is done."""

    event: Literal["end"]
    engine: Literal["nnapi", "mixed", "cpu"]


class ErrorEvent(BaseModel):
    """Why the runner gives up."""

    event: Literal["error"]
    code: str
    detail: str


AnyEvent = Annotated[
    StartEvent
    | CpuEvent
    | NnapiEvent
    | LoadedEvent
    | SubgraphEvent
    | CompileTimesEvent
    | FallbackEvent
    | CrashEvent
    | FirstRunEvent
    | LatencyEvent
    | OutputsEvent
    | MemoryEvent
    | KernelEvent
    | EndEvent
    | ErrorEvent,
    Field(discriminator="event"),
]
_ADAPTER: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)


class MeasuredEvents(NamedTuple):
    """What every run that ends well has said."""

    loaded: LoadedEvent
    first_run: FirstRunEvent
    latency: LatencyEvent
    outputs: OutputsEvent
    end: EndEvent


class RunnerEvents:
    """Collects a run's events as they come. The last of a kind counts; some kinds are lists.

    Args:
        on_kernel: takes each kernel of a bench; these are not collected.
    """

    def __init__(self, on_kernel: Callable[[KernelEvent], None] = lambda _: None) -> None:
        self._on_kernel = on_kernel
        self.start: StartEvent | None = None
        self.cpu: CpuEvent | None = None
        self.nnapi: NnapiEvent | None = None
        self.loaded: LoadedEvent | None = None
        self.subgraphs: list[SubgraphEvent] = []
        self.compile_times: CompileTimesEvent | None = None
        self.fallbacks: list[Fallback] = []
        self.crash: CrashEvent | None = None
        self.first_run: FirstRunEvent | None = None
        self.latency: LatencyEvent | None = None
        self.outputs: OutputsEvent | None = None
        self.memory: MemoryEvent | None = None
        self.end: EndEvent | None = None
        self.error: ErrorEvent | None = None
        self.bad_lines: list[str] = []

    def feed(self, line: str) -> None:
        """Takes one line of standard output.

        A line that is no known event is kept in `bad_lines`: whoever needs the run's success
        complains, but a crash may well cut a line and must be told as a crash.
        """
        if not line.strip():
            return
        try:
            event = _ADAPTER.validate_python(json.loads(line), strict=False)
        except (ValidationError, json.JSONDecodeError):
            self.bad_lines.append(line)
            return
        if isinstance(event, KernelEvent):
            self._on_kernel(event)
        elif isinstance(event, SubgraphEvent):
            self.subgraphs.append(event)
        elif isinstance(event, FallbackEvent):
            self.fallbacks.append(
                Fallback(code=event.code, detail=event.detail, subgraph=event.subgraph)
            )
        else:
            setattr(self, event.event, event)

    def measured(self) -> MeasuredEvents | None:
        """The events of a run that ended well; None while one of them is missing."""
        if not (self.loaded and self.first_run and self.latency and self.outputs and self.end):
            return None
        return MeasuredEvents(self.loaded, self.first_run, self.latency, self.outputs, self.end)
