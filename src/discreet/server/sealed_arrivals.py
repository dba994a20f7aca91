"""Sealed reports that wait to be settled: the database does not link reports and invitations.

An arrival and the invitation spent on it are one row, sealed under the key of their batch. The row
is found by marks, which are MACs of the id and of the invitation's hash under that key; all rows of
a survey are equally long. Settling opens them and destroys the key: what is left of the rows in
pages, indexes, logs, replicas and backups can then no longer be decrypted.

All functions run in a transaction in which the caller holds the survey alone
(:func:`~discreet.server.database.lock_survey`), except for those that only read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sql

from discreet.errors import FormatError
from discreet.server import database as db
from discreet.server.database import find_rows, get_keys, insert_rows
from discreet.server.intake import ReportRow
from discreet.server.keys import Key, KeyFolder, LostKeyError, format_key_name
from discreet.server.problems import NOTICES

__all__ = [
    "Arrival",
    "WaitingArrival",
    "close_keys",
    "count_waiting",
    "destroy_keys",
    "destroy_spent_keys",
    "ensure_sealing_key",
    "find_arrivals",
    "find_spent_codes",
    "insert_arrivals",
    "list_closed_keys",
    "load_live_keys",
    "open_arrivals",
    "read_key_age",
    "retire_keys",
    "set_key_age",
    "withdraw_arrival",
]

REPORT_MARK = b"report|"  # kinds of marks, of one length
CODE_MARK = b"invite|"
ARRIVAL_HEADER = struct.Struct("<B32s16sqI")
"""Whether there is an invitation, its hash, id and question of the report, length of its value."""
LIVE_STATES = ("sealing", "closed")
"""Of keys under which arrivals may wait."""
OVERSIZE_PADDING_BYTES = 64
"""A value beyond the longest of its survey, which a tally would refuse, is filled up to this."""


class Arrival(NamedTuple):
    """A report on its way to the database.

    Parameters
    ----------
    row : ReportRow
    code : bytes, optional
        Hash of the invitation that came with it.
    """

    row: ReportRow
    code: bytes | None = None


@dataclass(frozen=True)
class WaitingArrival:
    """A row of the table of arrivals, opened.

    Parameters
    ----------
    mark : bytes
    arrival : Arrival
    live : bool
        False after its sender has withdrawn it; then its question is 0 and its value empty.
    """

    mark: bytes
    arrival: Arrival
    live: bool


# ---------------------------------------------------------------- keys


def _read_key_states(connection: sql.Connection, survey_number: int) -> dict[int, str]:
    key_columns = db.batch_key.c
    query = sql.select(key_columns.number, key_columns.state).where(
        key_columns.survey == survey_number
    )
    return {row.number: row.state for row in connection.execute(query)}


def _list_keys(connection: sql.Connection, survey_number: int, *states: str) -> list[int]:
    """List the numbers of the keys in one of these states."""
    key_states = _read_key_states(connection, survey_number)
    return [key_number for key_number, state in key_states.items() if state in states]


def load_live_keys(
    connection: sql.Connection, survey_number: int, *, lost_allowed: bool = False
) -> dict[int, Key]:
    """Load the keys under which arrivals may wait, by their numbers.

    Parameters
    ----------
    connection : Connection
    survey_number : int
    lost_allowed : bool, default False
        Whether to go on without keys whose files are gone: another server may have settled their
        batch since this transaction began to read.
    """
    key_folder, keys_by_number = get_keys(connection), {}
    live_numbers = _list_keys(connection, survey_number, *LIVE_STATES)
    key_folder.forget_batches(
        survey_number, (format_key_name(survey_number, key_number) for key_number in live_numbers)
    )
    for key_number in live_numbers:
        try:
            keys_by_number[key_number] = key_folder.load_key(
                format_key_name(survey_number, key_number), key_number
            )
        except LostKeyError:
            if not lost_allowed:
                raise
    return keys_by_number


def ensure_sealing_key(connection: sql.Connection, survey_number: int) -> Key:
    """Get the key that seals new arrivals; a new key is on the disk before a row refers to it."""
    key_folder, key_states = get_keys(connection), _read_key_states(connection, survey_number)
    for key_number, state in key_states.items():
        if state == "sealing":
            return key_folder.load_key(format_key_name(survey_number, key_number), key_number)
    key_number = key_folder.spare_numbers.get(survey_number, 0)
    key_name = format_key_name(survey_number, key_number)
    if key_number in key_states or not key_folder.has_key(key_name):
        key_number = key_folder.draw_number()
        key_name = format_key_name(survey_number, key_number)
        key_folder.create_key(key_name, key_number)
        key_folder.spare_numbers[survey_number] = (
            key_number  # of a transaction that fails; the next one takes it
        )
    key_folder.set_age(key_name, 0.0)
    row = {"survey": survey_number, "number": key_number, "state": "sealing"}
    connection.execute(sql.insert(db.batch_key).values(**row))
    return key_folder.load_key(key_name, key_number)


def list_closed_keys(connection: sql.Connection, survey_number: int) -> list[int]:
    """List the numbers of the keys whose batch is being settled."""
    return _list_keys(connection, survey_number, "closed")


def read_key_age(connection: sql.Connection, survey_number: int) -> float:
    """Read the age in seconds of the oldest key: how long at least one batch has waited."""
    key_folder = get_keys(connection)
    return max(
        (
            key_folder.read_age(format_key_name(survey_number, key_number))
            for key_number in _list_keys(connection, survey_number, *LIVE_STATES)
        ),
        default=0.0,
    )


def set_key_age(connection: sql.Connection, survey_number: int, seconds: float) -> None:
    """Set the age of a survey's keys: 0 while too few wait, more if some were kept back."""
    key_folder = get_keys(connection)
    for key_number in _list_keys(connection, survey_number, *LIVE_STATES):
        key_folder.set_age(format_key_name(survey_number, key_number), seconds)


def close_keys(connection: sql.Connection, survey_number: int) -> list[int]:
    """Close all keys to new arrivals; return their numbers."""
    live_numbers = _list_keys(connection, survey_number, *LIVE_STATES)
    _set_key_state(connection, survey_number, live_numbers, "closed")
    return live_numbers


def retire_keys(connection: sql.Connection, survey_number: int, key_numbers: Iterable[int]) -> None:
    """Mark keys under which nothing waits any more as spent, to be destroyed after the commit."""
    _set_key_state(connection, survey_number, key_numbers, "spent")


def _set_key_state(
    connection: sql.Connection, survey_number: int, key_numbers: Iterable[int], state: str
) -> None:
    key_columns = db.batch_key.c
    key_filter = (key_columns.survey == survey_number, key_columns.number.in_(list(key_numbers)))
    connection.execute(sql.update(db.batch_key).where(*key_filter).values(state=state))


def destroy_keys(
    key_folder: KeyFolder, survey_number: int, key_numbers: Iterable[int]
) -> list[int]:
    """Destroy keys that a committed transaction has retired; return the destroyed numbers.

    Failures are retried by the next settling or start.
    """
    destroyed_numbers = []
    for key_number in key_numbers:
        try:
            key_folder.destroy_key(format_key_name(survey_number, key_number))
            destroyed_numbers.append(key_number)
        except FormatError as error:
            NOTICES.print_once(str(error))
    return destroyed_numbers


def destroy_spent_keys(
    connection: sql.Connection, survey_number: int, *, orphans: bool = False
) -> None:
    """Destroy keys that were marked as spent before this transaction, and forget them.

    Parameters
    ----------
    connection : Connection
    survey_number : int
    orphans : bool, default False
        Whether to destroy keys, too, that no transaction has committed: at a start, of processes
        that were killed.
    """
    key_folder, key_states = get_keys(connection), _read_key_states(connection, survey_number)
    dead_numbers = [key_number for key_number, state in key_states.items() if state == "spent"]
    if orphans:
        dead_numbers += [
            key_number
            for orphan_survey, key_number in key_folder.list_batches()
            if orphan_survey == survey_number and key_number not in key_states
        ]
    destroyed_numbers = destroy_keys(key_folder, survey_number, dead_numbers)
    if destroyed_numbers:
        key_columns = db.batch_key.c
        destroyed_rows = (
            key_columns.survey == survey_number,
            key_columns.number.in_(destroyed_numbers),
        )
        connection.execute(sql.delete(db.batch_key).where(*destroyed_rows))


# ---------------------------------------------------------------- rows


def count_waiting(
    connection: sql.Connection,
    survey_number: int,
    limit: int | None = None,
    key_numbers: Sequence[int] | None = None,
    *,
    live_only: bool = True,
) -> int:
    """Count the reports that are not settled, without withdrawn ones.

    Parameters
    ----------
    connection : Connection
    survey_number : int
    limit : int, optional
        Counted up to this.
    key_numbers : sequence of int, optional
        Numbers of the keys under which they wait; any if not given.
    live_only : bool, default True
        False counts what was withdrawn, too.
    """
    arrival_columns = db.arrival.c
    conditions = [arrival_columns.survey == survey_number]
    if live_only:
        conditions.append(arrival_columns.live == 1)
    if key_numbers is not None:
        conditions.append(arrival_columns.batch.in_(key_numbers))
    counted_rows = sql.select(arrival_columns.mark).where(*conditions).limit(limit).subquery()
    return int(
        connection.execute(sql.select(sql.func.count()).select_from(counted_rows)).scalar_one()
    )


def _seal_arrival(
    key: Key, arrival: Arrival | WaitingArrival, longest_bytes: int
) -> tuple[Any, ...]:
    """Seal an arrival as a row without its survey; all bodies of a survey are equally long."""
    live = arrival.live if isinstance(arrival, WaitingArrival) else True
    row, code = arrival.arrival if isinstance(arrival, WaitingArrival) else arrival
    mark = key.compute_mark(REPORT_MARK, row.id)
    header = ARRIVAL_HEADER.pack(
        code is not None, code or bytes(32), row.id, row.question, len(row.value)
    )
    is_too_long = len(row.value) > longest_bytes
    padded_length = (
        -(-len(row.value) // OVERSIZE_PADDING_BYTES) * OVERSIZE_PADDING_BYTES
        if is_too_long
        else longest_bytes
    )
    body = key.seal(mark, header + row.value.ljust(padded_length, b"\0"))
    return (
        mark,
        None if code is None else key.compute_mark(CODE_MARK, code),
        key.number,
        int(live),
        body,
    )


def _open_arrival(keys: Mapping[int, Key], row: Any) -> WaitingArrival:
    mark = bytes(row.mark)
    content = keys[row.batch].open(mark, bytes(row.body))
    has_invitation, code, report_id, question, value_length = ARRIVAL_HEADER.unpack_from(content)
    value = content[ARRIVAL_HEADER.size : ARRIVAL_HEADER.size + value_length]
    arrival = Arrival(ReportRow(report_id, question, value), code if has_invitation else None)
    return WaitingArrival(mark, arrival, bool(row.live))


def open_arrivals(rows: Sequence[Any], keys: Mapping[int, Key]) -> list[WaitingArrival]:
    """Open stored rows."""
    return [_open_arrival(keys, row) for row in rows]


def find_arrivals(
    connection: sql.Connection,
    survey_number: int,
    keys: Mapping[int, Key],
    report_ids: Iterable[bytes],
) -> dict[bytes, WaitingArrival]:
    """Find the arrivals with these ids, under any live key."""
    marks = [
        key.compute_mark(REPORT_MARK, report_id)
        for report_id in report_ids
        for key in keys.values()
    ]
    stored_rows = find_rows(connection, db.arrival, survey_number, marks)
    return {waiting.arrival.row.id: waiting for waiting in open_arrivals(stored_rows, keys)}


def find_spent_codes(
    connection: sql.Connection, survey_number: int, keys: Mapping[int, Key], codes: Iterable[bytes]
) -> set[bytes]:
    """Find the invitations among these that came with waiting arrivals."""
    marks = {key.compute_mark(CODE_MARK, code): code for code in codes for key in keys.values()}
    arrival_columns, spent_codes = db.arrival.c, set()
    sorted_marks = sorted(marks)
    for chunk_start in range(0, len(sorted_marks), db.MAX_STATEMENT_VALUES):
        mark_chunk = sorted_marks[chunk_start : chunk_start + db.MAX_STATEMENT_VALUES]
        query = sql.select(arrival_columns.code).where(
            arrival_columns.survey == survey_number, arrival_columns.code.in_(mark_chunk)
        )
        spent_codes |= {marks[bytes(code)] for (code,) in connection.execute(query)}
    return spent_codes


def insert_arrivals(
    connection: sql.Connection,
    survey_number: int,
    longest_bytes: int,
    arrivals: Sequence[Arrival | WaitingArrival],
) -> None:
    """Seal arrivals and store them, in the order of their marks."""
    if not arrivals:
        return
    key = ensure_sealing_key(connection, survey_number)
    sealed_rows = sorted(
        (_seal_arrival(key, arrival, longest_bytes) for arrival in arrivals),
        key=lambda row: row[0],
    )
    insert_rows(connection, db.arrival, [(survey_number, *row) for row in sealed_rows])


def withdraw_arrival(
    connection: sql.Connection, survey_number: int, keys: Mapping[int, Key], waiting: WaitingArrival
) -> None:
    """Delete the answer of an arrival; its invitation stays spent, and nothing of it is counted.

    Its row keeps its length, the invitation and the id, which are written at settling.
    """
    arrival_columns = db.arrival.c
    row_filter = (arrival_columns.survey == survey_number, arrival_columns.mark == waiting.mark)
    key_number, body = connection.execute(
        sql.select(arrival_columns.batch, arrival_columns.body).where(*row_filter)
    ).one()
    content = keys[key_number].open(waiting.mark, bytes(body))
    has_invitation, code, report_id, _, _ = ARRIVAL_HEADER.unpack_from(content)
    emptied = ARRIVAL_HEADER.pack(has_invitation, code, report_id, 0, 0).ljust(len(content), b"\0")
    changed_values = {"live": 0, "body": keys[key_number].seal(waiting.mark, emptied)}
    connection.execute(sql.update(db.arrival).where(*row_filter).values(**changed_values))
