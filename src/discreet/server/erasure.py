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
from discreet.server.database import ADVISORY_LOCK_SPACE, Database
from discreet.server.problems import NOTICES

__all__ = ["erase_deleted", "is_pending", "mark_deleted"]

REWRITTEN_TABLES = (*db.SURVEY_TABLES, db.survey, db.batch_key)
"""Tables with rows of surveys."""

LOCK_WAIT_MS = 5_000
"""Milliseconds that rewriting a table waits for its lock; later transactions queue behind it."""

ERASER_LOCK_KEY = -2
"""Second key of the advisory lock: one process rewrites at a time."""

MAX_LOG_SEGMENTS = 256
"""Segments of PostgreSQL's log that are overwritten at most: 4 GiB of writing."""

MARKER_AGE_QUERY = "SELECT min(age(xmin)) FROM erasure WHERE survey = ANY(%s)"
RETAINED_FILES_QUERY = (
    "SELECT count(*) FROM pg_class t LEFT JOIN pg_class o ON o.oid = t.reltoastrelid "
    "WHERE t.oid = ANY(%s::regclass[]) AND "
    "(age(t.relfrozenxid) >= %s OR coalesce(age(o.relfrozenxid) >= %s, false))"
)
UNUSED_SEGMENTS_QUERY = (
    "SELECT count(*) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$' "
    "AND name > pg_walfile_name(pg_current_wal_lsn())"
)
LOG_REMAINS_NOTICE = (
    "a survey was deleted, and its reports may still be in PostgreSQL's log (pg_wal) until the "
    "server writes over it; see the guide, Deletion"
)
RETRY_NOTICE = (
    "a survey was deleted, and its reports are still in the files of the database, since an open "
    "transaction may see them or the tables belong to another role; this is tried again"
)


def mark_deleted(connection: sql.Connection, survey_number: int) -> None:
    """Note, in the transaction that deletes a survey, that its bytes are to be erased."""
    insert_statement = db.make_insert(connection, db.erasure).values(survey=survey_number)
    connection.execute(insert_statement.on_conflict_do_nothing())


def is_pending(database: Database) -> bool:
    """Whether bytes of deleted surveys are still to be erased."""
    return bool(_list_deleted_surveys(database))


def _list_deleted_surveys(database: Database) -> list[int]:
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
    survey_numbers = _list_deleted_surveys(database)
    if not survey_numbers:
        return True
    if database.is_sqlite:
        return _erase_sqlite(database, survey_numbers)
    with database.read_engine.connect() as connection:
        autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
        lock_keys = (ADVISORY_LOCK_SPACE, ERASER_LOCK_KEY)
        if not autocommit.exec_driver_sql(
            "SELECT pg_try_advisory_lock(%s, %s)", lock_keys
        ).scalar():
            return False
        try:
            return _erase_postgresql(autocommit, survey_numbers)
        finally:
            autocommit.exec_driver_sql("SELECT pg_advisory_unlock(%s, %s)", lock_keys)


def _erase_sqlite(database: Database, survey_numbers: list[int]) -> bool:
    database.run_outside_transaction(database.write_engine, "VACUUM", wait=True)
    if not database.truncate_log():
        return False
    with database.write() as connection:
        connection.execute(sql.delete(db.erasure).where(db.erasure.c.survey.in_(survey_numbers)))
    database.truncate_log()
    return True


def _erase_postgresql(autocommit: sql.Connection, survey_numbers: list[int]) -> bool:
    if not _rewrite_tables(autocommit) or _has_retained_rows(autocommit, survey_numbers):
        NOTICES.print_once(RETRY_NOTICE)
        return False
    if not _overwrite_log(autocommit):
        NOTICES.print_once(LOG_REMAINS_NOTICE)
    autocommit.execute(sql.delete(db.erasure).where(db.erasure.c.survey.in_(survey_numbers)))
    return True


def _rewrite_tables(autocommit: sql.Connection) -> bool:
    """Rewrite tables and indexes into new files; False if one was in use for too long."""
    try:
        autocommit.exec_driver_sql(f"SET lock_timeout = {LOCK_WAIT_MS}")
        for table in REWRITTEN_TABLES:
            autocommit.exec_driver_sql(f"VACUUM (FULL) {table.name}")
        # statistics of the planner from before version 0004; only the database's owner may
        autocommit.exec_driver_sql("VACUUM (FULL) pg_catalog.pg_statistic")
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != "55P03":  # lock_not_available
            raise
        return False
    finally:
        autocommit.exec_driver_sql("RESET lock_timeout")
    return True


def _has_retained_rows(autocommit: sql.Connection, survey_numbers: list[int]) -> bool:
    """Whether a new file may hold rows that the deletion removed.

    VACUUM FULL drops what was deleted by transactions older than its horizon, and the horizon
    becomes the ``relfrozenxid`` of the table. The deletion wrote the row in ``erasure``, whose
    ``xmin`` is its number.
    """
    marker_age = autocommit.exec_driver_sql(MARKER_AGE_QUERY, (survey_numbers,)).scalar_one()
    table_names = [table.name for table in REWRITTEN_TABLES]
    return bool(
        autocommit.exec_driver_sql(
            RETAINED_FILES_QUERY, (table_names, marker_age, marker_age)
        ).scalar_one()
    )


def _overwrite_log(autocommit: sql.Connection) -> bool:
    """Release old segments of the log, and fill recycled ones with zeros."""
    try:
        _switch_segment(autocommit)
        autocommit.exec_driver_sql("CHECKPOINT")
        unused_segments: Any = autocommit.exec_driver_sql(UNUSED_SEGMENTS_QUERY).scalar_one()
        if unused_segments > MAX_LOG_SEGMENTS:
            return False
        for _ in range(unused_segments + 1):  # out of the present one, and of each of them
            _switch_segment(autocommit)
        autocommit.exec_driver_sql("CHECKPOINT")
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != "42501":  # insufficient_privilege
            raise
        return False
    return True


def _switch_segment(autocommit: sql.Connection) -> None:
    """Fill the rest of a segment with zeros; an empty segment would not be switched."""
    autocommit.exec_driver_sql("SELECT pg_logical_emit_message(false, 'discreet', '')")
    autocommit.exec_driver_sql("SELECT pg_switch_wal()")
