"""Settling: arrivals become reports, in batches, so that nothing tells when or with what they came.

An arrival shares its transaction with the invitation that was spent on it. Settling breaks every
such tie: one transaction moves at least k arrivals, in the order of their random ids, and adds them
to the tally; another one writes the spent invitations anew, in the order of their hashes. What is
left over in the database is removed after that (:meth:`~discreet.server.database.Database.tidy`).
Before it is settled, a report could be joined with its invitation by whoever reads the disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import sqlalchemy as sql

from discreet.collection.protocol import Collection
from discreet.server import database as db
from discreet.server.database import Database, exclusive, insert_of
from discreet.server.surveys import stored_state
from discreet.server.tallies import fold

PIECE = 2_000
"""Reports that are settled in one transaction, so that others do not wait long."""

__all__ = ["reseal", "settle", "settle_piece", "waiting", "withdraw"]


def waiting(connection: sql.Connection, number: int, most: int | None = None) -> int:
    """How many arrivals are not settled; counted up to ``most``."""
    here = db.arrival.c
    some = sql.select(here.id).where(here.survey == number).limit(most).subquery()
    return int(connection.execute(sql.select(sql.func.count()).select_from(some)).scalar_one())


def settle(database: Database, number: int, collection: Collection, least: int) -> int:
    """Settle what has arrived, if it is at least so many; how many reports were settled."""
    total = 0
    while moved := settle_piece(database, number, collection, least):
        total += moved
    if total:
        while reseal(database, number):
            continue
        database.sweep()
        database.tidy()
    return total


def settle_piece(
    database: Database,
    number: int,
    collection: Collection,
    least: int,
    seen: Mapping[str, int] | None = None,
) -> int:
    """Settle one batch in one transaction; how many reports it had, 0 where there are too few.

    Parameters
    ----------
    database : Database
    number : int
        Of the survey.
    collection : Plan or Questionnaire
    least : int
        No batch is smaller than this.
    seen : mapping, optional
        What else happened since the last time, by kind: repetitions and refusals. It is published
        together with the batch.
    """
    here = db.arrival.c
    with database.write() as connection:
        exclusive(connection, number)
        count = waiting(connection, number, max(PIECE, least) + least)
        if count < max(least, 1):
            return 0
        # never leave fewer than k behind: they would be a small batch
        size = max(PIECE, least)
        size = size if count >= size + least else count
        rows = connection.execute(
            sql.select(here.id, here.question, here.value)
            .where(here.survey == number)
            .order_by(here.id)
            .limit(size)
        ).all()
        batch = (here.survey == number, here.id <= rows[-1].id)
        move = insert_of(connection, db.report).from_select(
            ["survey", "id", "question", "value"],
            sql.select(here.survey, here.id, here.question, here.value)
            .where(*batch)
            .order_by(here.id),
        )
        moved = connection.execute(move.on_conflict_do_nothing().returning(db.report.c.id))
        new = {bytes(id_) for (id_,) in moved}
        connection.execute(sql.delete(db.arrival).where(*batch))
        fold(connection, number, collection, [row for row in rows if bytes(row.id) in new])
        publish(connection, number, len(new), seen or {})
    return len(rows)


def publish(connection: sql.Connection, number: int, settled: int, seen: Mapping[str, int]) -> None:
    """Move the numbers that anybody may watch."""
    here, gone = db.tally.c, db.withdrawn.c.survey
    connection.execute(
        sql.update(db.tally)
        .where(here.survey == number)
        .values(
            settled=here.settled + settled,
            repeated=here.repeated + seen.get("repeated", 0),
            withdrawn=sql.select(sql.func.count())
            .select_from(db.withdrawn)
            .where(gone == number)
            .scalar_subquery(),
        )
    )
    kinds = Counter({kind: times for kind, times in seen.items() if kind != "repeated"})
    if kinds:
        upsert = insert_of(connection, db.refusal)
        upsert = upsert.on_conflict_do_update(
            index_elements=[db.refusal.c.survey, db.refusal.c.kind],
            set_={"times": db.refusal.c.times + upsert.excluded.times},
        )
        rows = [{"survey": number, "kind": kind, "times": n} for kind, n in sorted(kinds.items())]
        connection.execute(upsert, rows)


def reseal(database: Database, number: int) -> int:
    """Write invitations spent since the last time anew, in the order of their hashes; how many."""
    here = db.invitation.c
    fresh = (here.survey == number, sql.text("spent = 1"))
    first = sql.select(here.hash).where(*fresh).order_by(here.hash).limit(PIECE)
    with database.write() as connection:
        exclusive(connection, number)
        last = connection.execute(sql.select(sql.func.max(first.subquery().c.hash))).scalar()
        if last is None:
            return 0
        spent = (*fresh, here.hash <= last)
        gone = connection.execute(sql.delete(db.invitation).where(*spent).returning(here.hash))
        codes = sorted(bytes(code) for (code,) in gone)
        rows = [{"survey": number, "hash": code, "spent": 2} for code in codes]
        connection.execute(sql.insert(db.invitation), rows)
        return len(rows)


def withdraw(
    connection: sql.Connection,
    number: int,
    collection: Collection,
    identity: bytes,
    by_date: str = "open",
) -> Literal["withdrawn", "closed", "not-found"]:
    """Delete a report and leave its id as withdrawn, unless the survey is closed.

    What was withdrawn before stays so. After the close the count is final, as people were told; a
    next wave may follow from it already.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    number : int
        Of the survey.
    collection : Collection
    identity : bytes
        Id of the report.
    by_date : {"open", "draft", "closed"}
        What the dates of the announcement say about today.
    """
    exclusive(connection, number)
    if db.among(connection, db.withdrawn, number, [identity]):
        return "withdrawn"
    if "closed" in (by_date, stored_state(connection, number)):
        return "closed"
    for table in (db.arrival, db.report):
        here = table.c
        gone: Any = connection.execute(
            sql.delete(table)
            .where(here.survey == number, here.id == identity)
            .returning(here.id, here.question, here.value)
        ).all()
        if gone:
            if table is db.report:
                fold(connection, number, collection, gone, -1)
            connection.execute(sql.insert(db.withdrawn).values(survey=number, id=identity))
            return "withdrawn"
    return "not-found"
