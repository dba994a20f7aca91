"""The tally of a survey in the database, equal to the sum of its settled reports at every commit.

Sums and counts are integers in two blobs; whole answers (sheets) have a table of their own, one
row per distinct answer. ``version`` increases with every change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import sqlalchemy as sql

from discreet.collection.protocol import Collection
from discreet.collection.tally import ID_SAMPLE_SIZE, Tally
from discreet.server import database as db
from discreet.server.database import add_times
from discreet.server.intake import iter_matrices, pack_matrix, unpack_matrix

__all__ = [
    "PublicCounters",
    "apply_to_tally",
    "create_tally",
    "has_same_counts",
    "load_tally",
    "read_counters",
    "read_refusals",
    "recount_reports",
]

ROWS_PER_READ = 50_000
"""Stored reports that are read at a time."""


@dataclass(frozen=True)
class PublicCounters:
    """Public counters, which change only when reports are settled.

    Parameters
    ----------
    version : int
        Increases with every change of the tally.
    settled, repeated, withdrawn : int
        Reports that were ever settled; deliveries of a known report; withdrawals.
    """

    version: int
    settled: int
    repeated: int
    withdrawn: int


def create_tally(connection: sql.Connection, survey_number: int, collection: Collection) -> None:
    """Create the empty tally of a new survey."""
    empty_tally: Tally[Any] = Tally(collection)
    counter_row = {"version": 0, "settled": 0, "repeated": 0, "withdrawn": 0}
    connection.execute(
        sql.insert(db.tally).values(
            survey=survey_number, **counter_row, **_encode_tally(empty_tally)
        )
    )


def _encode_tally(tally: Tally[Any]) -> dict[str, bytes]:
    all_sums = np.concatenate([np.zeros(0, np.int64), *tally.sums])
    return {
        "counted": tally.counted.astype("<i8").tobytes(),
        "sums": all_sums.astype("<i8").tobytes(),
    }


def _load_sums(
    connection: sql.Connection, survey_number: int, collection: Collection
) -> Tally[Any]:
    """Load the tally without sheets and without ids of reports."""
    tally_columns = (db.tally.c.counted, db.tally.c.sums)
    counted_bytes, sum_bytes = connection.execute(
        sql.select(*tally_columns).where(db.tally.c.survey == survey_number)
    ).one()
    channel_sizes = [channel.size or 0 for channel in collection.questions]
    all_sums = np.frombuffer(sum_bytes, "<i8").astype(np.int64)
    channel_sums = np.split(all_sums, np.cumsum(channel_sizes)[:-1])
    return Tally(
        collection, np.frombuffer(counted_bytes, "<i8").astype(np.int64), list(channel_sums)
    )


def apply_to_tally(
    connection: sql.Connection,
    survey_number: int,
    collection: Collection,
    rows: Sequence[Any],
    sign: int = 1,
) -> None:
    """Add stored rows to the tally, or subtract them with ``sign=-1``."""
    tally_change: Tally[Any] = Tally(collection)
    for question, _, matrix in iter_matrices(collection, rows):
        tally_change.add_values(question, matrix)
    tally = _load_sums(connection, survey_number, collection)
    for question, channel in enumerate(collection.questions):
        count_change = sign * int(tally_change.counted[question])
        tally.add_sums(question, sign * tally_change.sums[question], count_change)
        if channel.size is None and tally_change.counted[question]:
            _apply_sheets(
                connection,
                survey_number,
                question,
                sign,
                *tally_change.get_distinct_answers(question),
            )
    tally_columns = db.tally.c
    connection.execute(
        sql.update(db.tally)
        .where(tally_columns.survey == survey_number)
        .values(version=tally_columns.version + 1, **_encode_tally(tally))
    )


def _apply_sheets(
    connection: sql.Connection,
    survey_number: int,
    question: int,
    sign: int,
    sheets: Any,
    times: Any,
) -> None:
    sheet_columns = db.sheet.c
    sheet_rows = [
        {"survey": survey_number, "question": question, "value": value, "times": sign * sheet_times}
        for value, sheet_times in zip(pack_matrix(sheets), times.tolist(), strict=True)
    ]
    add_times(connection, db.sheet, sheet_rows)
    if sign < 0:
        empty_sheets = (
            sheet_columns.survey == survey_number,
            sheet_columns.question == question,
            sheet_columns.times == 0,
        )
        connection.execute(sql.delete(db.sheet).where(*empty_sheets))


def load_tally(
    connection: sql.Connection, survey_number: int, collection: Collection
) -> Tally[Any]:
    """Load the complete tally, with the smallest ids of its reports as the sample."""
    stored_sums = _load_sums(connection, survey_number, collection)
    tally: Tally[Any] = Tally(collection)
    for question, channel in enumerate(collection.questions):
        if channel.size is None:
            sheet_columns = db.sheet.c
            sheet_rows = connection.execute(
                sql.select(sheet_columns.value, sheet_columns.times).where(
                    sheet_columns.survey == survey_number, sheet_columns.question == question
                )
            ).all()
            if sheet_rows:
                matrix = unpack_matrix(
                    [bytes(sheet_row.value) for sheet_row in sheet_rows], channel.width
                )
                tally.add_values(question, matrix, [sheet_row.times for sheet_row in sheet_rows])
        else:
            tally.add_sums(question, stored_sums.sums[question], int(stored_sums.counted[question]))
    id_query = sql.select(db.report.c.id).where(db.report.c.survey == survey_number)
    smallest_ids = connection.execute(id_query.order_by(db.report.c.id).limit(ID_SAMPLE_SIZE))
    tally.sample = {bytes(report_id).hex() for (report_id,) in smallest_ids}
    withdrawn_query = sql.select(db.withdrawn.c.id).where(db.withdrawn.c.survey == survey_number)
    tally.withdrawn = {
        bytes(report_id).hex() for (report_id,) in connection.execute(withdrawn_query)
    }
    tally.rejected.update(read_refusals(connection, survey_number))
    tally.repeated = read_counters(connection, survey_number).repeated
    return tally


def read_counters(connection: sql.Connection, survey_number: int) -> PublicCounters:
    """Read the public counters."""
    tally_columns = db.tally.c
    counter_columns = [tally_columns[counter.name] for counter in fields(PublicCounters)]
    query = sql.select(*counter_columns).where(tally_columns.survey == survey_number)
    return PublicCounters(*connection.execute(query).one())


def read_refusals(connection: sql.Connection, survey_number: int) -> dict[str, int]:
    """Read how many reports were refused, by kind."""
    refusal_columns = db.refusal.c
    query = sql.select(refusal_columns.kind, refusal_columns.times).where(
        refusal_columns.survey == survey_number
    )
    return {row.kind: row.times for row in connection.execute(query.order_by(refusal_columns.kind))}


def iter_stored_rows(connection: sql.Connection, survey_number: int) -> Any:
    """Yield all settled reports in the order of their ids, as lists of (id, question, value)."""
    report_columns, last_id = db.report.c, b""
    while True:
        query = (
            sql.select(report_columns.id, report_columns.question, report_columns.value)
            .where(report_columns.survey == survey_number, report_columns.id > last_id)
            .order_by(report_columns.id)
            .limit(ROWS_PER_READ)
        )
        rows = connection.execute(query).all()
        if not rows:
            return
        yield rows
        last_id = bytes(rows[-1].id)


def recount_reports(
    connection: sql.Connection, survey_number: int, collection: Collection
) -> Tally[Any]:
    """Recount the stored reports into a new tally."""
    tally: Tally[Any] = Tally(collection)
    for rows in iter_stored_rows(connection, survey_number):
        for question, _, matrix in iter_matrices(collection, rows):
            tally.add_values(question, matrix)
    return tally


def has_same_counts(tally: Tally[Any], expected: Tally[Any]) -> bool:
    """Whether two tallies count the same answers."""
    counts, expected_counts = (
        [
            compared_tally.counted,
            *compared_tally.sums,
            *(
                distinct_values
                for question, channel in enumerate(tally.collection.questions)
                if channel.size is None
                for distinct_values in compared_tally.get_distinct_answers(question)
            ),
        ]
        for compared_tally in (tally, expected)
    )
    return all(map(np.array_equal, counts, expected_counts))
