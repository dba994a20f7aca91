"""Sealed reports that wait to be settled: the database does not link reports and invitations.

An arrival and the invitation spent on it are one row, sealed under the key of their batch. The row
is found by marks, which are MACs of the id and of the invitation's hash under that key; all rows of
a survey are equally long. Settling opens them and destroys the key: what is left of the rows in
pages, indexes, logs, replicas and backups can then no longer be decrypted.

All functions run in a transaction in which the caller holds the survey alone
(:func:`~discreet.server.database.exclusive`), except for those that only read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sql

from discreet.errors import FormatError
from discreet.server import database as db
from discreet.server.database import among, insert_rows, keys_of
from discreet.server.intake import Row
from discreet.server.keys import Key, Keys, LostKeyError, batch_key_name
from discreet.server.problems import NOTICES

__all__ = [
    "Arrival",
    "Waiting",
    "close_keys",
    "closed_keys",
    "count_waiting",
    "destroy_keys",
    "destroy_spent_keys",
    "find_arrivals",
    "insert_arrivals",
    "live_keys",
    "open_arrivals",
    "read_age",
    "retire_keys",
    "sealing_key",
    "set_age",
    "spent_in_arrivals",
    "withdraw_arrival",
]

REPORT = b"report|"  # kinds of marks, of one length
CODE = b"invite|"
HEAD = struct.Struct("<B32s16sqI")
"""Whether there is an invitation, its hash, id and question of the report, length of its value."""
LENGTHEN = 64
"""A value beyond the longest of its survey, which a tally would refuse, is filled up to this."""


class _Stored(NamedTuple):
    """A row of ``arrival`` without its survey."""

    mark: bytes
    code: bytes | None
    batch: int
    live: int
    body: bytes


class Arrival(NamedTuple):
    """A report on its way to the database.

    Parameters
    ----------
    row : Row
    code : bytes, optional
        Hash of the invitation that came with it.
    """

    row: Row
    code: bytes | None = None


@dataclass(frozen=True)
class Waiting:
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


def _key_states(connection: sql.Connection, survey: int) -> dict[int, str]:
    here = db.batch_key.c
    query = sql.select(here.number, here.state).where(here.survey == survey)
    return {row.number: row.state for row in connection.execute(query)}


def live_keys(
    connection: sql.Connection, survey: int, *, lost_allowed: bool = False
) -> dict[int, Key]:
    """Load the keys under which arrivals may wait, by their numbers.

    Parameters
    ----------
    connection : Connection
    survey : int
    lost_allowed : bool, default False
        Whether to go on without keys whose files are gone: another server may have settled their
        batch since this transaction began to read.
    """
    keys, found = keys_of(connection), {}
    live = [n for n, state in _key_states(connection, survey).items() if state != "spent"]
    keys.forget_batches(survey, (batch_key_name(survey, number) for number in live))
    for number in live:
        try:
            found[number] = keys.load(batch_key_name(survey, number), number)
        except LostKeyError:
            if not lost_allowed:
                raise
    return found


def sealing_key(connection: sql.Connection, survey: int) -> Key:
    """Get the key that seals new arrivals; a new key is on the disk before a row refers to it."""
    keys, states = keys_of(connection), _key_states(connection, survey)
    for number, state in states.items():
        if state == "sealing":
            return keys.load(batch_key_name(survey, number), number)
    number = keys.spares.get(survey, 0)
    name = batch_key_name(survey, number)
    if number in states or not keys.exists(name):
        number = keys.draw_number()
        name = batch_key_name(survey, number)
        keys.create(name, number)
        keys.spares[survey] = number  # of a transaction that fails; the next one takes it
    keys.set_age(name, 0.0)
    row = {"survey": survey, "number": number, "state": "sealing"}
    connection.execute(sql.insert(db.batch_key).values(**row))
    return keys.load(name, number)


def closed_keys(connection: sql.Connection, survey: int) -> list[int]:
    """List the numbers of the keys whose batch is being settled."""
    states = _key_states(connection, survey)
    return [number for number, state in states.items() if state == "closed"]


def read_age(connection: sql.Connection, survey: int) -> float:
    """Read the age in seconds of the oldest key: how long at least one batch has waited."""
    keys, states = keys_of(connection), _key_states(connection, survey)
    live = [batch_key_name(survey, n) for n, state in states.items() if state != "spent"]
    return max(map(keys.read_age, live), default=0.0)


def set_age(connection: sql.Connection, survey: int, seconds: float) -> None:
    """Set the age of a survey's keys: 0 while too few wait, more if some were kept back."""
    keys, states = keys_of(connection), _key_states(connection, survey)
    for number in (n for n, state in states.items() if state != "spent"):
        keys.set_age(batch_key_name(survey, number), seconds)


def close_keys(connection: sql.Connection, survey: int) -> list[int]:
    """Close all keys to new arrivals; return their numbers."""
    live = [n for n, state in _key_states(connection, survey).items() if state != "spent"]
    _set_state(connection, survey, live, "closed")
    return live


def retire_keys(connection: sql.Connection, survey: int, numbers: Iterable[int]) -> None:
    """Mark keys under which nothing waits any more as spent, to be destroyed after the commit."""
    _set_state(connection, survey, numbers, "spent")


def _set_state(connection: sql.Connection, survey: int, numbers: Iterable[int], state: str) -> None:
    here = db.batch_key.c
    where = (here.survey == survey, here.number.in_(list(numbers)))
    connection.execute(sql.update(db.batch_key).where(*where).values(state=state))


def destroy_keys(keys: Keys, survey: int, numbers: Iterable[int]) -> list[int]:
    """Destroy keys that a committed transaction has retired; return the destroyed numbers.

    Failures are retried by the next settling or start.
    """
    destroyed = []
    for number in numbers:
        try:
            keys.destroy(batch_key_name(survey, number))
            destroyed.append(number)
        except FormatError as error:
            NOTICES.print(str(error))
    return destroyed


def destroy_spent_keys(connection: sql.Connection, survey: int, *, orphans: bool = False) -> None:
    """Destroy keys that were marked as spent before this transaction, and forget them.

    Parameters
    ----------
    connection : Connection
    survey : int
    orphans : bool, default False
        Whether to destroy keys, too, that no transaction has committed: at a start, of processes
        that were killed.
    """
    keys, states = keys_of(connection), _key_states(connection, survey)
    spent = [number for number, state in states.items() if state == "spent"]
    lost = [n for s, n in keys.batches() if s == survey and n not in states] if orphans else []
    destroyed = destroy_keys(keys, survey, (*spent, *lost))
    if destroyed:
        here = db.batch_key.c
        gone = (here.survey == survey, here.number.in_(destroyed))
        connection.execute(sql.delete(db.batch_key).where(*gone))


# ---------------------------------------------------------------- rows


def count_waiting(
    connection: sql.Connection,
    survey: int,
    most: int | None = None,
    batches: Sequence[int] | None = None,
    *,
    live_only: bool = True,
) -> int:
    """Count the reports that are not settled, without withdrawn ones.

    Parameters
    ----------
    connection : Connection
    survey : int
    most : int, optional
        Counted up to this.
    batches : sequence of int, optional
        Numbers of the keys under which they wait; any if not given.
    live_only : bool, default True
        False counts what was withdrawn, too.
    """
    here = db.arrival.c
    where = [here.survey == survey, *([here.live == 1] if live_only else [])]
    if batches is not None:
        where.append(here.batch.in_(batches))
    some = sql.select(here.mark).where(*where).limit(most).subquery()
    return int(connection.execute(sql.select(sql.func.count()).select_from(some)).scalar_one())


def _sealed(key: Key, arrival: Arrival, longest: int, live: bool = True) -> tuple[Any, ...]:
    """Seal an arrival as a row without its survey; all bodies of a survey are equally long."""
    row, code = arrival.row, arrival.code
    mark = key.mark(REPORT, row.id)
    head = HEAD.pack(code is not None, code or bytes(32), row.id, row.question, len(row.value))
    too_long = len(row.value) > longest
    room = -(-len(row.value) // LENGTHEN) * LENGTHEN if too_long else longest
    body = key.seal(mark, head + row.value.ljust(room, b"\0"))
    return mark, None if code is None else key.mark(CODE, code), key.number, int(live), body


def _opened(keys: Mapping[int, Key], row: Any) -> Waiting:
    mark = bytes(row.mark)
    content = keys[row.batch].open(mark, bytes(row.body))
    invited, code, identity, question, length = HEAD.unpack_from(content)
    value = content[HEAD.size : HEAD.size + length]
    arrival = Arrival(Row(identity, question, value), code if invited else None)
    return Waiting(mark, arrival, bool(row.live))


def open_arrivals(rows: Sequence[Any], keys: Mapping[int, Key]) -> list[Waiting]:
    """Open stored rows."""
    return [_opened(keys, row) for row in rows]


def find_arrivals(
    connection: sql.Connection, survey: int, keys: Mapping[int, Key], ids: Iterable[bytes]
) -> dict[bytes, Waiting]:
    """Find the arrivals with these ids, under any live key."""
    marks = [key.mark(REPORT, identity) for identity in ids for key in keys.values()]
    found = [_Stored._make(row) for row in among(connection, db.arrival, survey, marks)]
    return {waiting.arrival.row.id: waiting for waiting in open_arrivals(found, keys)}


def spent_in_arrivals(
    connection: sql.Connection, survey: int, keys: Mapping[int, Key], codes: Iterable[bytes]
) -> set[bytes]:
    """Find the invitations among these that came with waiting arrivals."""
    marks = {key.mark(CODE, code): code for code in codes for key in keys.values()}
    here, found = db.arrival.c, set()
    ordered = sorted(marks)
    for start in range(0, len(ordered), db.VARIABLES):
        some = ordered[start : start + db.VARIABLES]
        query = sql.select(here.code).where(here.survey == survey, here.code.in_(some))
        found |= {marks[bytes(code)] for (code,) in connection.execute(query)}
    return found


def insert_arrivals(
    connection: sql.Connection, survey: int, longest: int, arrivals: Sequence[Arrival | Waiting]
) -> None:
    """Seal arrivals and store them, in the order of their marks."""
    if not arrivals:
        return
    key = sealing_key(connection, survey)
    rows = sorted(
        (
            _sealed(key, arrival, longest)
            if isinstance(arrival, Arrival)
            else _sealed(key, arrival.arrival, longest, arrival.live)
            for arrival in arrivals
        ),
        key=lambda row: row[0],
    )
    insert_rows(connection, db.arrival, [(survey, *row) for row in rows])


def withdraw_arrival(
    connection: sql.Connection, survey: int, keys: Mapping[int, Key], waiting: Waiting
) -> None:
    """Delete the answer of an arrival; its invitation stays spent, and nothing of it is counted.

    Its row keeps its length, the invitation and the id, which are written at settling.
    """
    here = db.arrival.c
    where = (here.survey == survey, here.mark == waiting.mark)
    batch, body = connection.execute(sql.select(here.batch, here.body).where(*where)).one()
    content = keys[batch].open(waiting.mark, bytes(body))
    invited, code, identity, _, _ = HEAD.unpack_from(content)
    emptied = HEAD.pack(invited, code, identity, 0, 0).ljust(len(content), b"\0")
    changed = {"live": 0, "body": keys[batch].seal(waiting.mark, emptied)}
    connection.execute(sql.update(db.arrival).where(*where).values(**changed))
