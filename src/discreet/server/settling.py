"""Settling: arrivals become reports in batches, so that neither time nor invitation is linked.

An arrival is one sealed row with the invitation that was spent on it. Settling breaks this tie: one
transaction opens at least k arrivals, stores their reports in the order of their random ids and
their invitations in the order of their hashes, and adds the reports to the tally. Before that, the
key and the database together link a report with its invitation.

Who settles is drawn, so that nobody who sends all other reports knows when the last one is among
them: when 2k or more wait, whole batches of k are settled and k or more are kept back, a uniformly
random choice. What is kept back is sealed again under the next key; then the key is destroyed. When
k or more have waited for ``MAX_WAIT_SECONDS``, and at the close, all are settled.

One act of settling ends with what waited when it began. What arrives meanwhile waits for the next
one: otherwise a report would be settled alone, in one transaction with its invitation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import sqlalchemy as sql

from discreet.collection.announcement import Announcement
from discreet.collection.protocol import Collection
from discreet.server import database as db
from discreet.server.database import Database, add_times, find_rows, insert_rows, lock_survey
from discreet.server.intake import ReportRow
from discreet.server.sealed_arrivals import (
    WaitingArrival,
    close_keys,
    count_waiting,
    destroy_keys,
    destroy_spent_keys,
    find_arrivals,
    insert_arrivals,
    list_closed_keys,
    load_live_keys,
    open_arrivals,
    read_key_age,
    retire_keys,
    set_key_age,
    withdraw_arrival,
)
from discreet.server.surveys import read_stored_state
from discreet.server.tallies import apply_to_tally

PIECE_REPORTS = 2_000
"""Reports that are settled in one transaction, so that others do not wait long."""
MAX_WAIT_SECONDS = 7 * 24 * 3600.0  # seconds
"""After at least one batch has waited for this long, all waiting reports are settled."""

__all__ = [
    "MAX_WAIT_SECONDS",
    "SettledPiece",
    "clear_keys",
    "clear_orphaned_keys",
    "compute_pool_size",
    "settle_arrivals",
    "settle_piece",
    "withdraw_report",
]


class SettledPiece(NamedTuple):
    """The result of one transaction of settling.

    Parameters
    ----------
    settled : int
        Number of reports that it settled.
    is_last : bool
        Whether it ends its act: what arrived since the first piece waits for the next act.
    """

    settled: int
    is_last: bool


def compute_pool_size(min_batch: int) -> int:
    """Compute how many reports must wait to settle one batch and keep back another."""
    return 2 * min_batch if min_batch > 1 else 1


def settle_arrivals(
    database: Database, survey_number: int, collection: Collection, min_batch: int
) -> int:
    """Settle what has arrived, if enough waits; return the number of settled reports."""
    piece, total = SettledPiece(0, is_last=False), 0
    while not piece.is_last:
        piece = settle_piece(database, survey_number, collection, min_batch, is_first=not total)
        total += piece.settled
    if total:
        database.run_cleanup()
        database.truncate_log()
    return total


def settle_piece(
    database: Database,
    survey_number: int,
    collection: Collection,
    min_batch: int,
    event_counts: Mapping[str, int] | None = None,
    *,
    is_first: bool = True,
) -> SettledPiece:
    """Settle randomly drawn reports in one transaction; none if too few wait.

    Parameters
    ----------
    database : Database
    survey_number : int
        Of the survey.
    collection : Plan or Questionnaire
    min_batch : int
        No batch is smaller than this, and at least as many are kept back; 1 settles all.
    event_counts : mapping, optional
        Repetitions and refusals since the last settling, by kind; published together with the
        batch.
    is_first : bool, default True
        Whether this is the first piece of its act. Later ones go on with what waited then.
    """
    with database.write() as connection:
        lock_survey(connection, survey_number)
        destroy_spent_keys(connection, survey_number)
        min_batch = max(min_batch, 1)
        waiting_age = read_key_age(connection, survey_number)
        settles_all = min_batch == 1 or waiting_age > MAX_WAIT_SECONDS  # nothing is kept back
        piece = _plan_piece(connection, survey_number, min_batch, settles_all, is_first)
        if piece is None:
            return SettledPiece(0, is_last=True)
        settled_arrivals = _take_arrivals(connection, survey_number, piece.key_numbers, piece.size)
        settled_count = _store_settled(
            connection, survey_number, collection, settled_arrivals, event_counts or {}
        )
        if piece.is_last:
            kept_arrivals = _take_arrivals(connection, survey_number, piece.key_numbers, None)
            retire_keys(connection, survey_number, piece.key_numbers)
            _keep_back(connection, survey_number, kept_arrivals, waiting_age)
    if piece.is_last:
        destroy_keys(database.keys, survey_number, piece.key_numbers)
    return SettledPiece(settled_count, piece.is_last)


class _PlannedPiece(NamedTuple):
    """The arrivals that one transaction settles: how many (all if None), under which keys."""

    key_numbers: list[int]
    size: int | None
    is_last: bool


def _plan_piece(
    connection: sql.Connection,
    survey_number: int,
    min_batch: int,
    settles_all: bool,
    is_first: bool,
) -> _PlannedPiece | None:
    """Plan one transaction, and close the keys of a new act; None if too few wait."""
    pool_size = min_batch if settles_all else compute_pool_size(min_batch)
    piece_size = _compute_piece_size(connection, survey_number, min_batch)
    min_remainder = pool_size if min_batch > 1 else piece_size
    count_limit = piece_size + min_remainder
    key_numbers = list_closed_keys(connection, survey_number)
    waiting_count = count_waiting(connection, survey_number, count_limit, key_numbers)
    if is_first and (settles_all or waiting_count < pool_size):
        if _has_too_few(connection, survey_number, min_batch, pool_size):
            return None
        key_numbers = close_keys(connection, survey_number)
        waiting_count = count_waiting(connection, survey_number, count_limit, key_numbers)
    elif waiting_count < pool_size:  # another server has settled the rest
        return None
    # never leave fewer than k behind: they would be a small batch
    is_last = waiting_count < piece_size + min_remainder
    if not is_last:
        return _PlannedPiece(key_numbers, piece_size, is_last)
    size = None if settles_all else (waiting_count // min_batch - 1) * min_batch
    return _PlannedPiece(key_numbers, size, is_last)


def _store_settled(
    connection: sql.Connection,
    survey_number: int,
    collection: Collection,
    settled_arrivals: Sequence[WaitingArrival],
    event_counts: Mapping[str, int],
) -> int:
    """Store reports, invitations and withdrawals, each in an order of its own, and count them.

    Returns
    -------
    int
        Number of reports; counts of events are published with them, or not yet if there are none.
    """
    arrivals = [waiting.arrival for waiting in settled_arrivals]
    _rewrite_spent_invitations(
        connection, survey_number, sorted(arrival.code for arrival in arrivals if arrival.code)
    )
    rows = sorted(waiting.arrival.row for waiting in settled_arrivals if waiting.live)
    new_rows = _store_rows(connection, survey_number, rows)
    withdrawn_ids = sorted(
        waiting.arrival.row.id for waiting in settled_arrivals if not waiting.live
    )
    insert_rows(
        connection, db.withdrawn, [(survey_number, report_id) for report_id in withdrawn_ids]
    )
    apply_to_tally(connection, survey_number, collection, new_rows)
    publish_counts(connection, survey_number, len(new_rows), event_counts if rows else {})
    return len(rows)


def _compute_piece_size(connection: sql.Connection, survey_number: int, min_batch: int) -> int:
    """Compute the reports per transaction: whole batches; at least one batch if all are settled."""
    if min_batch > 1:
        return max(PIECE_REPORTS // min_batch, 1) * min_batch
    query = sql.select(db.survey.c.announcement).where(db.survey.c.number == survey_number)
    announcement_text = connection.execute(query).scalar()
    if announcement_text is None:
        return PIECE_REPORTS
    return max(PIECE_REPORTS, Announcement.from_json(announcement_text).batch)


def _has_too_few(
    connection: sql.Connection, survey_number: int, min_batch: int, pool_size: int
) -> bool:
    """Whether too few reports wait; without a minimum, withdrawn reports count, too.

    ``MAX_WAIT_SECONDS`` starts when a whole batch waits: otherwise somebody who adds all other
    reports to an old one would learn that report.
    """
    if pool_size <= 1:
        return count_waiting(connection, survey_number, 1, live_only=False) == 0
    waiting_count = count_waiting(connection, survey_number, pool_size)
    if waiting_count < min_batch:
        set_key_age(connection, survey_number, 0.0)
    return waiting_count < pool_size


def _keep_back(
    connection: sql.Connection,
    survey_number: int,
    kept_arrivals: Sequence[WaitingArrival],
    waiting_age: float,
) -> None:
    """Seal the arrivals kept back under the next key, which inherits the age of the last one."""
    if kept_arrivals:
        survey_columns = db.survey.c
        query = sql.select(survey_columns.longest).where(survey_columns.number == survey_number)
        insert_arrivals(
            connection, survey_number, connection.execute(query).scalar_one(), kept_arrivals
        )
        set_key_age(connection, survey_number, waiting_age)


def _take_arrivals(
    connection: sql.Connection, survey_number: int, key_numbers: Sequence[int], size: int | None
) -> list[WaitingArrival]:
    """Open and delete the arrivals under closed keys: all, or ``size`` with the smallest marks.

    The marks are MACs under secret keys: those with the smallest ones are a uniformly random choice
    to everybody who does not have the keys.
    """
    arrival_columns = db.arrival.c
    row_conditions = [
        arrival_columns.survey == survey_number,
        arrival_columns.batch.in_(key_numbers),
    ]
    if size is not None:
        live_marks = sql.select(arrival_columns.mark).where(
            *row_conditions, arrival_columns.live == 1
        )
        last_mark = connection.execute(
            live_marks.order_by(arrival_columns.mark).offset(size - 1).limit(1)
        ).scalar_one()
        row_conditions.append(arrival_columns.mark <= last_mark)
    stored_rows = connection.execute(sql.select(db.arrival).where(*row_conditions)).all()
    taken_arrivals = open_arrivals(stored_rows, load_live_keys(connection, survey_number))
    connection.execute(sql.delete(db.arrival).where(*row_conditions))
    return taken_arrivals


def _store_rows(
    connection: sql.Connection, survey_number: int, rows: Sequence[ReportRow]
) -> list[ReportRow]:
    """Insert reports in the order of their ids; return those that were not stored before."""
    known_rows = find_rows(connection, db.report, survey_number, [row.id for row in rows])
    stored_ids = {bytes(report_id) for report_id, _, _ in known_rows}
    new_rows = [row for row in rows if row.id not in stored_ids]
    insert_rows(connection, db.report, [(survey_number, *row) for row in new_rows])
    return new_rows


def _rewrite_spent_invitations(
    connection: sql.Connection, survey_number: int, codes: Sequence[bytes]
) -> None:
    """Delete spent invitations and insert them again, in the order of their hashes."""
    invitation_columns = db.invitation.c
    for chunk_start in range(0, len(codes), PIECE_REPORTS):
        code_chunk = codes[chunk_start : chunk_start + PIECE_REPORTS]
        connection.execute(
            sql.delete(db.invitation).where(
                invitation_columns.survey == survey_number, invitation_columns.hash.in_(code_chunk)
            )
        )
        rows = [{"survey": survey_number, "hash": code, "spent": 1} for code in code_chunk]
        connection.execute(sql.insert(db.invitation), rows)


def clear_keys(database: Database, survey_number: int, *, orphans: bool = False) -> None:
    """Destroy the spent keys of a survey and delete their rows.

    ``orphans`` are keys that no transaction has committed, of processes that were killed.
    """
    with database.write() as connection:
        lock_survey(connection, survey_number)
        destroy_spent_keys(connection, survey_number, orphans=orphans)


def clear_orphaned_keys(database: Database) -> None:
    """Destroy the keys that killed processes have left; called at the start."""
    with database.read() as connection:
        named_surveys = set(
            connection.execute(sql.select(db.batch_key.c.survey).distinct()).scalars()
        )
    for survey_number in sorted(
        named_surveys | {batch_survey for batch_survey, _ in database.keys.list_batches()}
    ):
        clear_keys(database, survey_number, orphans=True)


def publish_counts(
    connection: sql.Connection,
    survey_number: int,
    settled_count: int,
    event_counts: Mapping[str, int],
) -> None:
    """Update the public counters."""
    tally_columns, withdrawn_survey = db.tally.c, db.withdrawn.c.survey
    connection.execute(
        sql.update(db.tally)
        .where(tally_columns.survey == survey_number)
        .values(
            settled=tally_columns.settled + settled_count,
            repeated=tally_columns.repeated + event_counts.get("repeated", 0),
            withdrawn=sql.select(sql.func.count())
            .select_from(db.withdrawn)
            .where(withdrawn_survey == survey_number)
            .scalar_subquery(),
        )
    )
    refusal_rows = [
        {"survey": survey_number, "kind": refusal_kind, "times": times}
        for refusal_kind, times in sorted(event_counts.items())
        if refusal_kind != "repeated"
    ]
    if refusal_rows:
        add_times(connection, db.refusal, refusal_rows)


def withdraw_report(
    connection: sql.Connection,
    survey_number: int,
    collection: Collection,
    report_id: bytes,
    state_by_date: str = "open",
) -> Literal["withdrawn", "closed", "not-found"]:
    """Delete a report and leave its id as withdrawn, unless the survey is closed.

    A waiting arrival is emptied and marked; its id is stored when it would have been settled.

    A report that was withdrawn before stays so. After the close the count is final, as announced;
    the next wave may already follow from it.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    survey_number : int
        Of the survey.
    collection : Collection
    report_id : bytes
        Id of the report.
    state_by_date : {"open", "draft", "closed"}
        What the dates of the announcement say about today.
    """
    lock_survey(connection, survey_number)
    keys = load_live_keys(connection, survey_number)
    waiting_arrival = find_arrivals(connection, survey_number, keys, [report_id]).get(report_id)
    is_withdrawn = waiting_arrival is not None and not waiting_arrival.live
    if is_withdrawn or find_rows(connection, db.withdrawn, survey_number, [report_id]):
        return "withdrawn"
    if "closed" in (state_by_date, read_stored_state(connection, survey_number)):
        return "closed"
    if waiting_arrival is not None:
        withdraw_arrival(connection, survey_number, keys, waiting_arrival)
        return "withdrawn"
    report_columns = db.report.c
    deleted_rows: Any = connection.execute(
        sql.delete(db.report)
        .where(report_columns.survey == survey_number, report_columns.id == report_id)
        .returning(report_columns.id, report_columns.question, report_columns.value)
    ).all()
    if not deleted_rows:
        return "not-found"
    apply_to_tally(connection, survey_number, collection, deleted_rows, -1)
    connection.execute(sql.insert(db.withdrawn).values(survey=survey_number, id=report_id))
    return "withdrawn"
