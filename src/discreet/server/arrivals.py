"""What happens to a report that arrives, decided by the database and exactly once.

An arrival waits in its own table until it is settled. An id is known from ``arrival``, ``report``
or ``withdrawn``; the same content again is a repetition, other content under the same id is
refused. The code of an invitation is spent in the transaction that stores the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import sqlalchemy as sql

from discreet.server import database as db
from discreet.server.database import among, exclusive, shared
from discreet.server.intake import Row
from discreet.server.surveys import stored_state

__all__ = ["Arrival", "Outcome", "take", "take_many"]

Outcome = Literal[
    "counted", "repeated", "id-reused", "withdrawn", "closed", "not-open", "invitation", "not-found"
]


HERE = "WHERE survey = %(survey)s AND id = ANY(%(ids)b)"
KNOWN = (
    f"SELECT id, question, value FROM arrival {HERE} UNION ALL "
    f"SELECT id, question, value FROM report {HERE} UNION ALL "
    f"SELECT id, NULL, NULL FROM withdrawn {HERE}"
)


@dataclass(frozen=True)
class Arrival:
    """A report on its way to the database.

    Parameters
    ----------
    row : Row
    code : bytes, optional
        Hash of the invitation that came with it.
    """

    row: Row
    code: bytes | None = None


def take(
    connection: sql.Connection,
    number: int,
    invited: bool,
    arrivals: Sequence[Arrival],
    by_date: str = "open",
) -> list[Outcome]:
    """Store what is new; what became of each.

    Parameters
    ----------
    connection : Connection
        In a transaction that the caller commits before anybody is answered.
    number : int
        Of the survey.
    invited : bool
        Whether every report needs an invitation.
    arrivals : sequence of Arrival
    by_date : {"open", "draft", "closed"}
        What the dates of the announcement say about today.
    """
    shared(connection, number)
    state = _state(connection, number, by_date)
    known = _known(connection, number, [one.row.id for one in arrivals])
    unspent = set()
    if invited and state == "open":
        codes = sorted({one.code for one in arrivals if one.code and one.row.id not in known})
        unspent = _spend(connection, number, codes)
    outcomes, fresh = [], {}
    for one in arrivals:
        row = one.row
        if row.id in known:
            outcomes.append(_again(row, known[row.id]))
        elif state != "open":
            outcomes.append(state)
        elif invited and one.code not in unspent:
            outcomes.append("invitation")
        else:
            unspent.discard(one.code)
            known[row.id] = row
            fresh[row.id] = one
            outcomes.append("counted")
    lost = _insert(connection, number, [one.row for one in fresh.values()])
    unspent |= {fresh[id_].code for id_ in lost}
    if unspent:  # reports whose id came twice in this very moment, with two codes
        _set_spent(connection, number, sorted(filter(None, unspent)), 0)
    # another server may have stored the very same reports since we looked, and spent their codes
    doubtful = [
        place
        for place, one in enumerate(arrivals)
        if outcomes[place] == "invitation" or (outcomes[place] == "counted" and one.row.id in lost)
    ]
    now = _known(connection, number, [arrivals[place].row.id for place in doubtful])
    for place in doubtful:
        row = arrivals[place].row
        if row.id in now:
            outcomes[place] = _again(row, now[row.id])
    return outcomes


def _state(connection: sql.Connection, number: int, by_date: str = "open") -> Any:
    state = stored_state(connection, number)
    state = by_date if state == "open" else state
    return "not-found" if state is None else "not-open" if state == "draft" else state


def _known(
    connection: sql.Connection, number: int, ids: Sequence[bytes]
) -> dict[bytes, Row | None]:
    """The reports that are here under these ids; None for those that were withdrawn."""
    distinct = sorted(set(ids))
    if not distinct:
        return {}
    if connection.dialect.name == "sqlite":
        rows = [
            (*row, None, None)[:3]
            for table in (db.arrival, db.report, db.withdrawn)
            for row in among(connection, table, number, distinct)
        ]
    else:  # the list of ids travels once
        rows = list(connection.exec_driver_sql(KNOWN, {"survey": number, "ids": distinct}))
    return {
        bytes(id_): None if value is None else Row(bytes(id_), question, bytes(value))
        for id_, question, value in rows
    }


def _again(row: Row, before: Row | None) -> Outcome:
    if before is None:
        return "withdrawn"
    return "repeated" if row == before else "id-reused"


def _spend(connection: sql.Connection, number: int, codes: Sequence[bytes]) -> set[bytes | None]:
    """Mark codes as spent; those that were unspent until now."""
    table = db.invitation.c
    unspent = [code for code, spent in among(connection, db.invitation, number, codes) if not spent]
    if not unspent:
        return set()
    change = (
        sql.update(db.invitation)
        .where(table.survey == number, table.hash.in_(unspent), table.spent == 0)
        .values(spent=1)
        .returning(table.hash)
    )
    return {bytes(code) for (code,) in connection.execute(change)}


def _set_spent(connection: sql.Connection, number: int, codes: Sequence[bytes], spent: int) -> None:
    table = db.invitation.c
    where = (table.survey == number, table.hash.in_(codes))
    connection.execute(sql.update(db.invitation).where(*where).values(spent=spent))


def _insert(connection: sql.Connection, number: int, rows: Sequence[Row]) -> set[bytes]:
    """Insert arrivals; the ids that another server inserted in this very moment."""
    if not rows:
        return set()
    if connection.dialect.name == "sqlite":  # one writer: nothing came in between
        connection.exec_driver_sql(
            "INSERT INTO arrival VALUES (?, ?, ?, ?)", [(number, *row) for row in sorted(rows)]
        )
        return set()
    ids, questions, values = (list(column) for column in zip(*sorted(rows), strict=True))
    made = connection.exec_driver_sql(
        "INSERT INTO arrival SELECT %s::int, * FROM unnest(%b::bytea[], %s::bigint[], %b::bytea[]) "
        "ON CONFLICT DO NOTHING RETURNING id",
        (number, ids, questions, values),
    )
    return set(ids) - {bytes(id_) for (id_,) in made}


# ---------------------------------------------------------------- many at once


def take_many(connection: sql.Connection, number: int, rows: Sequence[Row]) -> Counter[str]:
    """Store the rows of one piece of a batch; how many of them met which outcome.

    Whoever sends batches speaks for the survey, so no invitation is asked for.
    """
    exclusive(connection, number)
    state, outcomes = _state(connection, number), Counter[str]()
    known, fresh = _known(connection, number, [row.id for row in rows]), []
    for row in rows:
        if row.id in known:
            outcomes[_again(row, known[row.id])] += 1
        elif state != "open":
            outcomes[state] += 1
        else:
            known[row.id] = row
            fresh.append(row)
    outcomes["counted"] += len(fresh)
    if connection.dialect.name == "sqlite":
        _insert(connection, number, fresh)
    elif fresh:
        raw: Any = connection.connection.dbapi_connection
        with raw.cursor() as cursor, cursor.copy("COPY arrival FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(copied(number, fresh))
    return outcomes


def copied(number: int, rows: Sequence[Row]) -> bytes:
    """Rows of ``arrival`` as PostgreSQL reads them in binary, built by NumPy."""
    parts = [b"PGCOPY\n\xff\r\n\0" + bytes(8)]
    lengths = np.array([len(row.value) for row in rows])
    for length in np.unique(lengths).tolist():
        some = [rows[place] for place in np.flatnonzero(lengths == length).tolist()]
        shape = [("fields", ">i2"), ("a", ">i4"), ("survey", ">i4"), ("b", ">i4"), ("id", "V16")]
        shape += [("c", ">i4"), ("question", ">i8"), ("d", ">i4"), ("value", f"V{length}")]
        made = np.zeros(len(some), shape)
        made["fields"], made["a"], made["survey"], made["b"] = 4, 4, number, 16
        made["c"], made["d"] = 8, length
        made["id"] = np.frombuffer(b"".join(row.id for row in some), "V16")
        made["question"] = [row.question for row in some]
        made["value"] = np.frombuffer(b"".join(row.value for row in some), f"V{length}")
        parts.append(made.tobytes())
    return b"".join((*parts, b"\xff\xff"))
