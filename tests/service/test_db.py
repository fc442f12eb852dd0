from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text
from sqlalchemy.exc import StatementError

from service import migrations
from service.bell import Bell
from service.columns import Base, utc_now
from service.db import Database, announce, upgrade
from service.outbox import OutboxRow, enqueue


def test_migrations_make_exactly_the_tables(empty_database_url: str) -> None:
    upgrade(empty_database_url)
    engine = create_engine(empty_database_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        differences = compare_metadata(
            MigrationContext.configure(connection, opts={"compare_type": True}), Base.metadata
        )
    engine.dispose()
    assert differences == []


def test_many_processes_may_migrate_at_once(empty_database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(upgrade, [empty_database_url] * 4))
    upgrade(empty_database_url)


def test_last_migration_keeps_rows_on_the_way_down_and_up(database_url: str) -> None:
    engine = create_engine(database_url.replace("postgresql://", "postgresql+psycopg://"))
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0001")
        connection.execute(
            text(
                "INSERT INTO devices VALUES ('dev_1', 'bench', 'p1', '{}', 'online', "
                "'2026-01-01', '2026-01-01')"
            )
        )
        command.upgrade(config, "head")
        found = connection.execute(text("SELECT faulted_run_ids, quarantined_at FROM devices"))
        assert [(str(ids), at) for ids, at in found] == [("[]", None)]
    engine.dispose()


def test_writers_wait_for_each_other(database_url: str) -> None:
    database = Database(database_url, Bell())
    database.upgrade()

    def write(number: int) -> None:
        with database.writing() as session:
            session.execute(text("SELECT count(*) FROM outbox"))  # read first, then write
            enqueue(session, "task", "queue", str(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    with database.reading() as session:
        assert session.query(OutboxRow).count() == 40
    database.close()


def announce_and_fail(database: Database) -> None:
    with database.writing() as session:
        announce(session, "topic")
        raise ZeroDivisionError


def test_bell_rings_after_the_commit_only(database_url: str) -> None:
    bell = Bell()
    database = Database(database_url, bell)
    database.upgrade()
    rings: list[str] = []
    with bell.subscribed("topic", lambda: rings.append("ring")):
        with database.writing() as session:
            announce(session, "topic")
            assert rings == []
        assert rings == ["ring"]
        with pytest.raises(ZeroDivisionError):
            announce_and_fail(database)
    assert rings == ["ring"]
    database.close()


def test_sqlite_is_set_up_for_threads_and_keys(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/deep/er/a.db", Bell())
    with database.reading() as session:
        pragma = {
            name: session.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        }
    database.close()
    assert pragma == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 30_000}


def test_moments_are_aware_and_naive_ones_refused(database_url: str) -> None:
    database = Database(database_url, Bell())
    database.upgrade()
    now = utc_now()
    with database.writing() as session:
        enqueue(session, "task", "queue", "aware")
    with database.reading() as session:
        row = session.query(OutboxRow).one()
        assert row.created_at.tzinfo is not None
        assert row.created_at >= now
    naive = datetime(2026, 1, 1)
    row = OutboxRow(task="t", queue="q", subject="s", created_at=naive, available_at=now)
    with database.writing() as session:
        session.add(row)
        with pytest.raises(StatementError, match="time zone"):
            session.flush()
        session.rollback()
    database.close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://localhost/x"])
def test_databases_that_cannot_work_are_refused(url: str) -> None:
    with pytest.raises((ValueError, ModuleNotFoundError)):
        Database(url, Bell())
