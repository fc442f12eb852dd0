"""Two tunings: done and running."""

from __future__ import annotations

from fixture_bench import at
from fixture_data import model

from service.contracts.jobs import JobStatus, Stage
from service.contracts.kernels import KernelTiming
from service.contracts.targets import Abi
from service.contracts.tuning import TuneOptions
from service.resources.runs.schemas import RunDevice
from service.resources.tunings.schemas import Tuning, TuningRecord


def _record(kernel: str, before_us: float, after_us: float | None, is_kept: bool) -> TuningRecord:
    return TuningRecord(
        id=f"ktr_{kernel}",
        abi=Abi.X86_64,
        signature="5" * 64,
        kernel=kernel,
        calls=2,
        is_kept=is_kept,
        before=KernelTiming(median_us=before_us, spread_us=2.0),
        after=None if after_us is None else KernelTiming(median_us=after_us, spread_us=2.0),
        rounds=21,
        tried=25,
        machine="a processor, 2 cores",
        simulated=False,
        created_at=at(5),
    )


def tunings() -> list[Tuning]:
    """The newest first."""
    done = Tuning(
        id="tun_done",
        model=model("keyword-spotter", 1_284_552),
        options=TuneOptions(time_budget_s=60),
        status=JobStatus.SUCCEEDED,
        stage=Stage.MEASURE,
        done=12,
        total=12,
        attempt=1,
        error=None,
        abi=Abi.X86_64,
        machine="a processor, 2 cores",
        device=None,
        kernel_count=10,
        known_count=0,
        before=KernelTiming(median_us=20640, spread_us=870),
        after=KernelTiming(median_us=19830, spread_us=460),
        records=[
            _record("conv2d_relu", 245.0, 212.0, is_kept=True),
            _record("softmax", 30.0, None, is_kept=False),
        ],
        stage_durations_us={},
        created_at=at(7),
        started_at=at(7, 1),
        finished_at=at(6),
    )
    running = {
        "id": "tun_running",
        "device": RunDevice(id="dev_1", name="virtual-level4", simulated=True),
        "status": JobStatus.RUNNING,
        "stage": Stage.TUNE,
        "done": 4,
        "before": None,
        "after": None,
        "records": [],
        "created_at": at(1),
    }
    return [done.model_copy(update=running), done]
