"""The database: engine, transactions and migrations, alike on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.orm import Session

from service.bell import Bell

_WRITES = "nnfarm_writes"
_TOPICS = "nnfarm_topics"
_MIGRATION_LOCK = 7_226_371  # any number nobody else uses as advisory lock in this database
_BUSY_TIMEOUT_MS = 30_000


class Database:
    """Opens sessions; the only place that commits.

    Args:
        url: an SQLAlchemy URL; ``postgresql://`` means the psycopg 3 driver.
        bell: rung after a commit with the topics the session announced.
    """

    def __init__(self, url: str, bell: Bell) -> None:
        self._engine = _make_engine(url)
        self._writer = self._engine.execution_options(**{_WRITES: True})
        self._bell = bell

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session for looking only: nothing done in it is kept."""
        with Session(self._engine) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session whose changes are committed at the end of the block, or not at all."""
        with Session(self._writer, expire_on_commit=False) as session:
            yield session
            session.commit()
            self._bell.ring(session.info.get(_TOPICS, ()))

    def upgrade(self) -> None:
        """Bring the schema to the newest migration; several processes may try at once."""
        with self._writer.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK}
                )
            config = Config()
            config.set_main_option(
                "script_location", str(Path(__file__).parent.joinpath("migrations"))
            )
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()


def upgrade(database_url: str) -> None:
    """Migrate the database at this URL to the newest schema."""
    database = Database(database_url, Bell())
    try:
        database.upgrade()
    finally:
        database.close()


def announce(session: Session, topic: str) -> None:
    """Ring this topic's bell once the session is committed."""
    session.info.setdefault(_TOPICS, set()).add(topic)


def _make_engine(url: str) -> Engine:
    parsed = make_url(url)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise ValueError(f"database {parsed.get_backend_name()!r} is neither SQLite nor PostgreSQL")
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise ValueError("an SQLite database needs a file: several threads share it")
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    # As many connections as the thread pool that serves requests has threads, and some for the
    # dispatcher and the sweeper: a request never waits for a connection.
    engine = create_engine(parsed, pool_size=10, max_overflow=40, pool_pre_ping=True)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _configure_sqlite(connection: Any, _record: object) -> None:
    # The driver must not begin transactions itself: `_begin_sqlite` says which kind.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")  # a commit survives a power cut
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later cannot wait for another writer in SQLite, it
    # fails at once. Taking the write lock at the start makes `busy_timeout` work.
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
