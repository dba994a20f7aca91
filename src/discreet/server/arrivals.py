"""Storage of arriving reports: the database decides the outcome of each, exactly once.

An arrival waits in its own table, sealed, until it is settled. An id is known from ``arrival``,
``report`` or ``withdrawn``; the same content again is a repetition, other content under the same
id is refused. The code of an invitation is spent by the row that stores the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import sqlalchemy as sql

from discreet.server import database as db
from discreet.server.database import among, exclusive
from discreet.server.intake import Row
from discreet.server.keys import Key
from discreet.server.sealed_arrivals import (
    Arrival,
    find_arrivals,
    insert_arrivals,
    live_keys,
    spent_in_arrivals,
)

__all__ = ["Arrival", "Outcome", "take", "take_many"]

Outcome = Literal[
    "counted", "repeated", "id-reused", "withdrawn", "closed", "not-open", "invitation", "not-found"
]


def take(
    connection: sql.Connection,
    number: int,
    invited: bool,
    arrivals: Sequence[Arrival],
    by_date: str = "open",
) -> list[Outcome]:
    """Store new reports; return the outcome of each arrival.

    Parameters
    ----------
    connection : Connection
        In a transaction that the caller commits before it answers any sender.
    number : int
        Of the survey.
    invited : bool
        Whether every report needs an invitation.
    arrivals : sequence of Arrival
    by_date : {"open", "draft", "closed"}
        What the dates of the announcement say about today.
    """
    exclusive(connection, number)
    state, longest = _state(connection, number, by_date)
    keys = live_keys(connection, number)
    known = _known(connection, number, keys, [arrival.row.id for arrival in arrivals])
    unspent: set[bytes | None] = set()
    if invited and state == "open":
        fresh = (arrival for arrival in arrivals if arrival.row.id not in known)
        unspent |= _unspent(connection, number, keys, {a.code for a in fresh if a.code})
    outcomes: list[Outcome] = []
    counted = []
    for arrival in arrivals:
        row = arrival.row
        if row.id in known:
            outcomes.append(_again(row, known[row.id]))
        elif state != "open":
            outcomes.append(state)
        elif invited and arrival.code not in unspent:
            outcomes.append("invitation")
        else:
            unspent.discard(arrival.code)
            known[row.id] = row
            counted.append(arrival if invited else Arrival(row))
            outcomes.append("counted")
    insert_arrivals(connection, number, longest, counted)
    return outcomes


def _state(connection: sql.Connection, number: int, by_date: str = "open") -> tuple[Any, int]:
    """Read the outcome of new reports to a survey, and the bytes of its longest report."""
    here = db.survey.c
    query = sql.select(here.state, here.longest).where(here.number == number)
    state, longest = connection.execute(query).one_or_none() or (None, 0)
    state = by_date if state == "open" else state
    return ("not-found" if state is None else "not-open" if state == "draft" else state), longest


def _known(
    connection: sql.Connection, number: int, keys: Mapping[int, Key], ids: Sequence[bytes]
) -> dict[bytes, Row | None]:
    """Find the stored reports with these ids; None for those that were withdrawn."""
    distinct = sorted(set(ids))
    known: dict[bytes, Row | None] = {
        identity: waiting.arrival.row if waiting.live else None
        for identity, waiting in find_arrivals(connection, number, keys, distinct).items()
    }
    for identity, question, value in among(connection, db.report, number, distinct):
        known[bytes(identity)] = Row(bytes(identity), question, bytes(value))
    for (identity,) in among(connection, db.withdrawn, number, distinct):
        known[bytes(identity)] = None
    return known


def _again(row: Row, before: Row | None) -> Outcome:
    if before is None:
        return "withdrawn"
    return "repeated" if row == before else "id-reused"


def _unspent(
    connection: sql.Connection, number: int, keys: Mapping[int, Key], codes: set[bytes]
) -> set[bytes]:
    """Find the codes among these that are unused invitations."""
    unspent = {
        bytes(code)
        for code, spent in among(connection, db.invitation, number, sorted(codes))
        if not spent
    }
    return unspent - spent_in_arrivals(connection, number, keys, unspent)


# ---------------------------------------------------------------- many at once


def take_many(
    connection: sql.Connection, number: int, rows: Sequence[Row], by_date: str = "open"
) -> Counter[str]:
    """Store the rows of one piece of a batch; count them by outcome.

    Only owners of the survey send batches, so no invitation is needed.
    """
    return Counter(take(connection, number, False, [Arrival(row) for row in rows], by_date))
