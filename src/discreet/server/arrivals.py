"""Storage of arriving reports: the database decides the outcome of each, exactly once.

An arrival waits in its own table, sealed, until it is settled. An id is known from ``arrival``,
``report`` or ``withdrawn``; the same content again is a repetition, other content under the same
id is refused. The code of an invitation is spent by the row that stores the report.

:func:`store_arrivals` looks up what is there (:func:`read_intake_state`,
:func:`find_known_reports`, :func:`find_unspent_codes`), decides (:func:`decide_outcomes`), then
stores what is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any, Literal

import sqlalchemy as sql

from discreet.server import database as db
from discreet.server.database import find_rows, lock_survey
from discreet.server.intake import ReportRow
from discreet.server.keys import Key
from discreet.server.sealed_arrivals import (
    Arrival,
    find_arrivals,
    find_spent_codes,
    insert_arrivals,
    load_live_keys,
)

__all__ = ["Arrival", "Outcome", "store_arrivals", "store_batch"]

Outcome = Literal[
    "counted", "repeated", "id-reused", "withdrawn", "closed", "not-open", "invitation", "not-found"
]


def store_arrivals(
    connection: sql.Connection,
    survey_number: int,
    needs_invitation: bool,
    arrivals: Sequence[Arrival],
    state_by_date: str = "open",
) -> list[Outcome]:
    """Store new reports; return the outcome of each arrival.

    Parameters
    ----------
    connection : Connection
        In a transaction that the caller commits before it answers any sender.
    survey_number : int
        Of the survey.
    needs_invitation : bool
        Whether every report needs an invitation.
    arrivals : sequence of Arrival
    state_by_date : {"open", "draft", "closed"}
        What the dates of the announcement say about today.
    """
    lock_survey(connection, survey_number)
    state, longest_bytes = read_intake_state(connection, survey_number, state_by_date)
    keys = load_live_keys(connection, survey_number)
    known_reports = find_known_reports(
        connection, survey_number, keys, [arrival.row.id for arrival in arrivals]
    )
    unspent_codes: set[bytes] | None = None
    if needs_invitation:
        presented_codes = {
            arrival.code
            for arrival in arrivals
            if arrival.code and state == "open" and arrival.row.id not in known_reports
        }
        unspent_codes = find_unspent_codes(connection, survey_number, keys, presented_codes)
    outcomes = decide_outcomes(arrivals, known_reports, state, unspent_codes)
    counted_arrivals = [
        arrival if needs_invitation else Arrival(arrival.row)
        for arrival, outcome in zip(arrivals, outcomes, strict=True)
        if outcome == "counted"
    ]
    insert_arrivals(connection, survey_number, longest_bytes, counted_arrivals)
    return outcomes


def read_intake_state(
    connection: sql.Connection, survey_number: int, state_by_date: str
) -> tuple[Any, int]:
    """Read the outcome of new reports to a survey, and the bytes of its longest report.

    The outcome is "open" where they are taken.
    """
    survey_columns = db.survey.c
    query = sql.select(survey_columns.state, survey_columns.longest).where(
        survey_columns.number == survey_number
    )
    state, longest_bytes = connection.execute(query).one_or_none() or ("not-found", 0)
    state = state_by_date if state == "open" else state
    return "not-open" if state == "draft" else state, longest_bytes


def find_known_reports(
    connection: sql.Connection, survey_number: int, keys: Mapping[int, Key], ids: Sequence[bytes]
) -> dict[bytes, ReportRow | None]:
    """Find the stored reports with these ids; None for those that were withdrawn."""
    distinct_ids = sorted(set(ids))
    waiting_arrivals = find_arrivals(connection, survey_number, keys, distinct_ids)
    known_reports: dict[bytes, ReportRow | None] = {
        report_id: waiting.arrival.row if waiting.live else None
        for report_id, waiting in waiting_arrivals.items()
    }
    for report_id, question, value in find_rows(connection, db.report, survey_number, distinct_ids):
        known_reports[bytes(report_id)] = ReportRow(bytes(report_id), question, bytes(value))
    for (report_id,) in find_rows(connection, db.withdrawn, survey_number, distinct_ids):
        known_reports[bytes(report_id)] = None
    return known_reports


def find_unspent_codes(
    connection: sql.Connection, survey_number: int, keys: Mapping[int, Key], codes: set[bytes]
) -> set[bytes]:
    """Find the codes among these that are unused invitations."""
    unspent_codes = {
        bytes(code)
        for code, is_spent in find_rows(connection, db.invitation, survey_number, sorted(codes))
        if not is_spent
    }
    return unspent_codes - find_spent_codes(connection, survey_number, keys, unspent_codes)


def decide_outcomes(
    arrivals: Sequence[Arrival],
    stored_reports: Mapping[bytes, ReportRow | None],
    state: Any,
    unspent_codes: Set[bytes] | None,
) -> list[Outcome]:
    """Decide the outcome of each arrival, in their order; nothing is read or stored.

    What is counted makes its id known, and spends its code, for the arrivals after it.

    Parameters
    ----------
    arrivals : sequence of Arrival
    stored_reports : mapping of id to ReportRow
        As from :func:`find_known_reports`.
    state : str
        As from :func:`read_intake_state`.
    unspent_codes : set of bytes, optional
        Of the codes that came with arrivals; None where no invitation is needed.
    """
    known_reports = dict(stored_reports)
    usable_codes: set[bytes | None] = set(unspent_codes or ())
    outcomes: list[Outcome] = []
    for arrival in arrivals:
        row = arrival.row
        if row.id in known_reports:
            outcomes.append(compare_reports(row, known_reports[row.id]))
        elif state != "open":
            outcomes.append(state)
        elif unspent_codes is not None and arrival.code not in usable_codes:
            outcomes.append("invitation")
        else:
            usable_codes.discard(arrival.code)
            known_reports[row.id] = row
            outcomes.append("counted")
    return outcomes


def compare_reports(row: ReportRow, known_row: ReportRow | None) -> Outcome:
    """Separate repetitions from other content under an id that was taken or withdrawn."""
    if known_row is None:
        return "withdrawn"
    return "repeated" if row == known_row else "id-reused"


# ---------------------------------------------------------------- many at once


def store_batch(
    connection: sql.Connection,
    survey_number: int,
    rows: Sequence[ReportRow],
    state_by_date: str = "open",
) -> Counter[str]:
    """Store the rows of one piece of a batch; count them by outcome.

    Only owners of the survey send batches, so no invitation is needed.
    """
    return Counter(
        store_arrivals(
            connection, survey_number, False, [Arrival(row) for row in rows], state_by_date
        )
    )
