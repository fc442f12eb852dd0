"""The Celery application of a compile worker.

Run with `celery -A workers.app worker --pool threads`; settings are in `workers.settings`.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from celery import Celery
from celery.signals import worker_init, worker_shutdown

from service.contracts.targets import Abi
from service.contracts.tasks import COMPILE_QUEUE
from workers.confine import hide_memory
from workers.input_cache import InputCache
from workers.sandbox import Sandbox
from workers.service_client import ServiceClient
from workers.settings import WorkerSettings
from workers.tasks.compile import COMPILATION
from workers.tasks.job import JobWorker, register
from workers.tasks.quantize import QUANTIZATION
from workers.tasks.tune import TUNING
from workers.toolchain.link import AndroidLinker

logger = logging.getLogger(__name__)


def create_app(settings: WorkerSettings) -> Celery:
    """The application and its tasks; nothing is started or connected yet."""
    app = Celery("nnfarm", broker=settings.redis_url, set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_default_queue=COMPILE_QUEUE,
        # A task leaves the queue when it is done; a worker that dies gives it back.
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        worker_pool="threads",  # jobs run in processes of their own
        worker_concurrency=settings.worker_concurrency,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        # Shorter than a long job on purpose: a dead worker's task comes back soon, and a living
        # one's is refused by the claim because the reporter's heartbeat holds the lease.
        broker_transport_options={"visibility_timeout": settings.visibility_timeout_s},
    )
    kinds = (replace(COMPILATION, entry=settings.job_entry), QUANTIZATION, TUNING)
    worker = JobWorker(
        settings,
        ServiceClient(settings.url, settings.worker_token.get_secret_value()),
        Sandbox([kind.entry for kind in kinds], settings.limits),
        InputCache(settings.worker_dir / "inputs"),
    )
    for kind in kinds:
        register(app, worker, kind)
    _connect_signals(worker)
    return app


def _connect_signals(worker: JobWorker) -> None:
    def warm_up(**_: object) -> None:
        try:
            _prepare(worker)
        except Exception as error:
            # Celery would log it and go on with a worker that fails every job.
            logger.exception("The compile worker cannot start")
            raise SystemExit(1) from error

    def shut_down(**_: object) -> None:
        worker.sandbox.close()
        worker.service.close()

    # weak=False: nothing else keeps these closures alive.
    worker_init.connect(warm_up, weak=False)
    worker_shutdown.connect(shut_down, weak=False)


def _prepare(worker: JobWorker) -> None:
    """Everything slow or missing shows now, not in the first job."""
    settings = worker.settings
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    hide_memory()
    worker.remove_stale_folders()
    if not settings.player_library.is_file():
        raise SystemExit(
            f"{settings.player_library} is missing: build the native parts, or tell where they "
            "are in NNFARM_NATIVE_DIR."
        )
    for abi in Abi:
        AndroidLinker(abi, settings.stub_dir).prepare()
    worker.sandbox.start()
    logger.info("The compile worker is warm")


app = create_app(WorkerSettings())
