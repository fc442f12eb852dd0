"""Tasks that leave with a commit: a row beside the state change, sent after it.

A crash between commit and send loses nothing, the row is still there; a crash between send and
mark sends twice, which is harmless because a claim is fenced.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from celery import Celery
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy import Index, Integer, String, delete, select, text, update
from sqlalchemy.exc import OperationalError as DatabaseError
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.bell import Bell
from service.columns import Base, UtcDateTime, utc_now
from service.db import Database, announce

TOPIC = "outbox"
_BATCH = 100
_POLL_S = 5.0
_FIRST_BACKOFF_S = 0.25
_LONGEST_BACKOFF_S = 5.0

_log = logging.getLogger(__name__)


class OutboxRow(Base):
    """One task to send, or sent."""

    __tablename__ = "outbox"
    __table_args__ = (
        Index(
            "ix_outbox_unsent",
            "available_at",
            sqlite_where=text("sent_at IS NULL"),
            postgresql_where=text("sent_at IS NULL"),
        ),
        Index("ix_outbox_subject", "subject"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    task: Mapped[str] = mapped_column(String(100))
    queue: Mapped[str] = mapped_column(String(100))
    subject: Mapped[str] = mapped_column(String(40))
    available_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    sent_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


Publish = Callable[[str, str, str], None]
"""Sends one task: name, queue, subject id."""


def enqueue(session: Session, task: str, queue: str, subject: str, delay_s: float = 0.0) -> None:
    """Have a task sent once this session is committed (and the delay is over)."""
    now = utc_now()
    session.add(
        OutboxRow(
            task=task,
            queue=queue,
            subject=subject,
            created_at=now,
            available_at=now + timedelta(seconds=delay_s),
        )
    )
    announce(session, TOPIC)


def has_unsent(session: Session, subject: str) -> bool:
    """Whether a task for this subject still waits to be sent."""
    query = select(OutboxRow.id).where(OutboxRow.subject == subject, OutboxRow.sent_at.is_(None))
    return session.scalar(query.limit(1)) is not None


def forget_sent(session: Session, before: datetime) -> None:
    """Delete rows sent before this moment."""
    session.execute(delete(OutboxRow).where(OutboxRow.sent_at < before))


def celery_publisher(redis_url: str) -> Publish:
    """Send tasks through Celery by name; an unreachable broker is an exception at once."""
    app = Celery("nnfarm-service", broker=redis_url, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        broker_transport_options={"socket_connect_timeout": 2, "socket_timeout": 5},
        broker_connection_timeout=2,
    )

    def publish(task: str, queue: str, subject: str) -> None:
        app.send_task(task, args=(subject,), queue=queue, retry=False, ignore_result=True)

    return publish


class Dispatcher:
    """The thread that sends what is due; woken by commits, polling as a safety net."""

    def __init__(self, database: Database, bell: Bell, publish: Publish) -> None:
        self._database = database
        self._bell = bell
        self._publish = publish
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._backoff_s = 0.0
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the task in hand and end the thread; the rest stays in the table."""
        self._stopping.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        with self._bell.subscribed(TOPIC, self._wake.set):
            while not self._stopping.is_set():
                self._wake.clear()
                try:
                    wait_s = self._send_due()
                    self._backoff_s = 0.0
                except (BrokerError, DatabaseError) as error:
                    _log.warning("tasks wait in the outbox: %s", error)
                    self._back_off()
                except Exception:  # a bug must not end the thread: the rows are still there
                    _log.exception("tasks wait in the outbox")
                    self._back_off()
                else:
                    self._wake.wait(wait_s)

    def _back_off(self) -> None:
        self._backoff_s = min(max(2 * self._backoff_s, _FIRST_BACKOFF_S), _LONGEST_BACKOFF_S)
        self._stopping.wait(self._backoff_s)

    def _send_due(self) -> float:
        """Send every due row; answer how long nothing can become due, in seconds."""
        while rows := self._due_rows():
            for row in rows:
                if self._stopping.is_set():
                    return 0.0
                self._publish(row.task, row.queue, row.subject)
                with self._database.writing() as session:
                    session.execute(
                        update(OutboxRow).where(OutboxRow.id == row.id).values(sent_at=utc_now())
                    )
        with self._database.reading() as session:
            query = select(OutboxRow.available_at).where(OutboxRow.sent_at.is_(None))
            next_due = session.scalar(query.order_by(OutboxRow.available_at).limit(1))
        if next_due is None:
            return _POLL_S
        return min(max((next_due - utc_now()).total_seconds(), 0.0), _POLL_S)

    def _due_rows(self) -> list[OutboxRow]:
        query = (
            select(OutboxRow)
            .where(OutboxRow.sent_at.is_(None), OutboxRow.available_at <= utc_now())
            .order_by(OutboxRow.available_at, OutboxRow.id)
            .limit(_BATCH)
        )
        with self._database.reading() as session:
            return list(session.scalars(query))
