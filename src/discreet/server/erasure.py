"""Erasure of deleted surveys from the files of the database.

A database only marks deleted rows as gone; their bytes stay in its pages, indexes and log. The
transaction that deletes a survey therefore leaves a row in ``erasure``, and every process that
serves the database rewrites the tables from their live rows as soon as it sees that row: after the
deletion, at every start and at every look. The row goes when the files are clean, so that a crash
in between is made good.

SQLite: VACUUM, then the log is truncated. PostgreSQL: VACUUM FULL, which writes tables and indexes
to new files, but copies deleted rows that an open transaction may still see; the age of the new
files tells. Its log is overwritten where the role may (a superuser, or ``pg_checkpoint`` with the
right to execute ``pg_switch_wal`` and ``pg_ls_waldir``). What archives, replicas, backups and the
disk below keep, no program can reach from here.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError

from discreet.server import database as db
from discreet.server.database import LOCKS, Database
from discreet.server.problems import NOTICES

__all__ = ["erase_deleted", "is_pending", "mark_deleted"]

REWRITTEN = (*db.OF_A_SURVEY, db.survey, db.batch_key)
"""Tables with rows of surveys."""

LOCK_WAIT_MS = 5_000
"""Milliseconds that rewriting a table waits for its lock; later transactions queue behind it."""

LOCK_OF_ERASER = -2
"""Second key of the advisory lock: one process rewrites at a time."""

MOST_SEGMENTS = 256
"""Segments of PostgreSQL's log that are overwritten at most: 4 GiB of writing."""

MARKER_AGE = "SELECT min(age(xmin)) FROM erasure WHERE survey = ANY(%s)"
RETAINED = (
    "SELECT count(*) FROM pg_class t LEFT JOIN pg_class o ON o.oid = t.reltoastrelid "
    "WHERE t.oid = ANY(%s::regclass[]) AND "
    "(age(t.relfrozenxid) >= %s OR coalesce(age(o.relfrozenxid) >= %s, false))"
)
UNUSED_SEGMENTS = (
    "SELECT count(*) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$' "
    "AND name > pg_walfile_name(pg_current_wal_lsn())"
)
LOG_REMAINS = (
    "a survey was deleted, and its reports may still be in PostgreSQL's log (pg_wal) until the "
    "server writes over it; see the guide, Deletion"
)
LATER = (
    "a survey was deleted, and its reports are still in the files of the database, since an open "
    "transaction may see them or the tables belong to another role; this is tried again"
)


def mark_deleted(connection: sql.Connection, number: int) -> None:
    """Note, in the transaction that deletes a survey, that its bytes are to be erased."""
    insert = db.insert_of(connection, db.erasure).values(survey=number)
    connection.execute(insert.on_conflict_do_nothing())


def is_pending(database: Database) -> bool:
    """Whether bytes of deleted surveys are still to be erased."""
    return bool(_deleted_surveys(database))


def _deleted_surveys(database: Database) -> list[int]:
    with database.read() as connection:
        return list(connection.execute(sql.select(db.erasure.c.survey)).scalars())


def erase_deleted(database: Database) -> bool:
    """Rewrite the tables that held rows of deleted surveys, from their live rows.

    On SQLite no other thread of this process may write meanwhile.

    Returns
    -------
    bool
        False if it must be tried again later: a transaction uses a table, may still see the deleted
        rows, or reads SQLite's log.
    """
    surveys = _deleted_surveys(database)
    if not surveys:
        return True
    if database.sqlite:
        return _erase_sqlite(database, surveys)
    with database.reading.connect() as connection:
        alone = connection.execution_options(isolation_level="AUTOCOMMIT")
        lock = (LOCKS, LOCK_OF_ERASER)
        if not alone.exec_driver_sql("SELECT pg_try_advisory_lock(%s, %s)", lock).scalar():
            return False
        try:
            return _erase_postgresql(alone, surveys)
        finally:
            alone.exec_driver_sql("SELECT pg_advisory_unlock(%s, %s)", lock)


def _erase_sqlite(database: Database, surveys: list[int]) -> bool:
    database.run_alone(database.writing, "VACUUM", wait=True)
    if not database.tidy():
        return False
    with database.write() as connection:
        connection.execute(sql.delete(db.erasure).where(db.erasure.c.survey.in_(surveys)))
    database.tidy()
    return True


def _erase_postgresql(alone: sql.Connection, surveys: list[int]) -> bool:
    if not _rewrite_tables(alone) or _retained(alone, surveys):
        NOTICES.print(LATER)
        return False
    if not _overwrite_log(alone):
        NOTICES.print(LOG_REMAINS)
    alone.execute(sql.delete(db.erasure).where(db.erasure.c.survey.in_(surveys)))
    return True


def _rewrite_tables(alone: sql.Connection) -> bool:
    """Rewrite tables and indexes into new files; False if one was in use for too long."""
    try:
        alone.exec_driver_sql(f"SET lock_timeout = {LOCK_WAIT_MS}")
        for table in REWRITTEN:
            alone.exec_driver_sql(f"VACUUM (FULL) {table.name}")
        # statistics of the planner from before version 0004; only the database's owner may
        alone.exec_driver_sql("VACUUM (FULL) pg_catalog.pg_statistic")
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != "55P03":  # lock_not_available
            raise
        return False
    finally:
        alone.exec_driver_sql("RESET lock_timeout")
    return True


def _retained(alone: sql.Connection, surveys: list[int]) -> bool:
    """Whether a new file may hold rows that the deletion removed.

    VACUUM FULL drops what was deleted by transactions older than its horizon, and the horizon
    becomes the ``relfrozenxid`` of the table. The deletion wrote the row in ``erasure``, whose
    ``xmin`` is its number.
    """
    age = alone.exec_driver_sql(MARKER_AGE, (surveys,)).scalar_one()
    names = [table.name for table in REWRITTEN]
    return bool(alone.exec_driver_sql(RETAINED, (names, age, age)).scalar_one())


def _overwrite_log(alone: sql.Connection) -> bool:
    """Release old segments of the log, and fill recycled ones with zeros."""
    try:
        _switch_segment(alone)
        alone.exec_driver_sql("CHECKPOINT")
        unused: Any = alone.exec_driver_sql(UNUSED_SEGMENTS).scalar_one()
        if unused > MOST_SEGMENTS:
            return False
        for _ in range(unused + 1):  # out of the present one, and of each of them
            _switch_segment(alone)
        alone.exec_driver_sql("CHECKPOINT")
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != "42501":  # insufficient_privilege
            raise
        return False
    return True


def _switch_segment(alone: sql.Connection) -> None:
    """Fill the rest of a segment with zeros; an empty segment would not be switched."""
    alone.exec_driver_sql("SELECT pg_logical_emit_message(false, 'discreet', '')")
    alone.exec_driver_sql("SELECT pg_switch_wal()")
