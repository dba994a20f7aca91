"""Settling: arrivals become reports in batches, so that neither time nor invitation is linked.

An arrival is one sealed row with the invitation that was spent on it. Settling breaks this tie: one
transaction opens at least k arrivals, stores their reports in the order of their random ids and
their invitations in the order of their hashes, and adds the reports to the tally. Before that, the
key and the database together link a report with its invitation.

Who settles is drawn, so that nobody who sends all other reports knows when the last one is among
them: when 2k or more wait, whole batches of k are settled and k or more are kept back, a uniformly
random choice. What is kept back is sealed again under the next key; then the key is destroyed. When
k or more have waited for ``LONGEST_WAIT``, and at the close, all are settled.

One act of settling ends with what waited when it began. What arrives meanwhile waits for the next
one: otherwise a report would be settled alone, in one transaction with its invitation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import sqlalchemy as sql

from discreet.announcement import Announcement
from discreet.collection.protocol import Collection
from discreet.server import database as db
from discreet.server.database import Database, among, exclusive, insert_of, insert_rows
from discreet.server.intake import Row
from discreet.server.sealed_arrivals import (
    Waiting,
    close_keys,
    closed_keys,
    count_waiting,
    destroy_keys,
    destroy_spent_keys,
    find_arrivals,
    insert_arrivals,
    live_keys,
    open_arrivals,
    read_age,
    retire_keys,
    set_age,
    withdraw_arrival,
)
from discreet.server.surveys import stored_state
from discreet.server.tallies import fold

PIECE = 2_000
"""Reports that are settled in one transaction, so that others do not wait long."""
LONGEST_WAIT = 7 * 24 * 3600.0  # seconds
"""After at least one batch has waited for this long, all waiting reports are settled."""

__all__ = [
    "LONGEST_WAIT",
    "Piece",
    "clear_keys",
    "clear_left_keys",
    "settle",
    "settle_piece",
    "smallest_pool",
    "withdraw",
]


class Piece(NamedTuple):
    """The result of one transaction of settling.

    Parameters
    ----------
    settled : int
        Number of reports that it settled.
    last : bool
        Whether it ends its act: what arrived since the first piece waits for the next act.
    """

    settled: int
    last: bool


def smallest_pool(least: int) -> int:
    """Compute how many reports must wait to settle one batch and keep back another."""
    return 2 * least if least > 1 else 1


def settle(database: Database, number: int, collection: Collection, least: int) -> int:
    """Settle what has arrived, if enough waits; return the number of settled reports."""
    piece, total = Piece(0, last=False), 0
    while not piece.last:
        piece = settle_piece(database, number, collection, least, begins=not total)
        total += piece.settled
    if total:
        database.sweep()
        database.tidy()
    return total


def settle_piece(
    database: Database,
    number: int,
    collection: Collection,
    least: int,
    seen: Mapping[str, int] | None = None,
    *,
    begins: bool = True,
) -> Piece:
    """Settle randomly drawn reports in one transaction; none if too few wait.

    Parameters
    ----------
    database : Database
    number : int
        Of the survey.
    collection : Plan or Questionnaire
    least : int
        No batch is smaller than this, and at least as many are kept back; 1 settles all.
    seen : mapping, optional
        Repetitions and refusals since the last settling, by kind; published together with the
        batch.
    begins : bool, default True
        Whether this is the first piece of its act. Later ones go on with what waited then.
    """
    with database.write() as connection:
        exclusive(connection, number)
        destroy_spent_keys(connection, number)
        least = max(least, 1)
        age = read_age(connection, number)
        whole = least == 1 or age > LONGEST_WAIT  # nothing is kept back
        pool = least if whole else smallest_pool(least)
        size = _piece_size(connection, number, least)
        tail = pool if least > 1 else size
        closed = closed_keys(connection, number)
        count = count_waiting(connection, number, size + tail, closed)
        if begins and (whole or count < pool):
            if _too_few(connection, number, least, pool):
                return Piece(0, last=True)
            closed = close_keys(connection, number)
            count = count_waiting(connection, number, size + tail, closed)
        elif count < pool:  # another server has settled the rest
            return Piece(0, last=True)
        # never leave fewer than k behind: they would be a small batch
        last = count < size + tail
        settled = size if not last else count if whole else (count // least - 1) * least
        batch = _take_out(connection, number, closed, None if last and whole else settled)
        _spend(connection, number, sorted(w.arrival.code for w in batch if w.arrival.code))
        rows = sorted(waiting.arrival.row for waiting in batch if waiting.live)
        new = _store(connection, number, rows)
        gone = sorted(waiting.arrival.row.id for waiting in batch if not waiting.live)
        if gone:
            values = [{"survey": number, "id": identity} for identity in gone]
            connection.execute(sql.insert(db.withdrawn), values)
        fold(connection, number, collection, new)
        publish(connection, number, len(new), (seen or {}) if rows else {})
        if last:
            kept = _take_out(connection, number, closed, None)
            retire_keys(connection, number, closed)
            _keep_back(connection, number, kept, age)
    if last:
        destroy_keys(database.keys, number, closed)
    return Piece(len(rows), last)


def _piece_size(connection: sql.Connection, number: int, least: int) -> int:
    """Compute the reports per transaction: whole batches; at least one batch if all are settled."""
    if least > 1:
        return max(PIECE // least, 1) * least
    announced = sql.select(db.survey.c.announcement).where(db.survey.c.number == number)
    text = connection.execute(announced).scalar()
    return PIECE if text is None else max(PIECE, Announcement.from_json(text).batch)


def _too_few(connection: sql.Connection, number: int, least: int, pool: int) -> bool:
    """Whether too few reports wait; without a minimum, withdrawn reports count, too.

    ``MAX_WAIT_SECONDS`` starts when a whole batch waits: otherwise somebody who adds all other
    reports to an old one would learn that report.
    """
    if pool <= 1:
        return count_waiting(connection, number, 1, live_only=False) == 0
    count = count_waiting(connection, number, pool)
    if count < least:
        set_age(connection, number, 0.0)
    return count < pool


def _keep_back(
    connection: sql.Connection, number: int, kept: Sequence[Waiting], age: float
) -> None:
    """Seal the arrivals kept back under the next key, which inherits the age of the last one."""
    if kept:
        here = db.survey.c
        query = sql.select(here.longest).where(here.number == number)
        insert_arrivals(connection, number, connection.execute(query).scalar_one(), kept)
        set_age(connection, number, age)


def _take_out(
    connection: sql.Connection, number: int, closed: Sequence[int], size: int | None
) -> list[Waiting]:
    """Open and delete the arrivals under closed keys: all, or ``size`` with the smallest marks.

    The marks are MACs under secret keys: those with the smallest ones are a uniformly random choice
    to everybody who does not have the keys.
    """
    here = db.arrival.c
    chosen = [here.survey == number, here.batch.in_(closed)]
    if size is not None:
        live = sql.select(here.mark).where(*chosen, here.live == 1)
        last = connection.execute(live.order_by(here.mark).offset(size - 1).limit(1)).scalar_one()
        chosen.append(here.mark <= last)
    columns = (here.mark, here.code, here.batch, here.live, here.body)
    stored = connection.execute(sql.select(*columns).where(*chosen)).all()
    batch = open_arrivals(stored, live_keys(connection, number))
    connection.execute(sql.delete(db.arrival).where(*chosen))
    return batch


def _store(connection: sql.Connection, number: int, rows: Sequence[Row]) -> list[Row]:
    """Insert reports in the order of their ids; return those that were not stored before."""
    known = among(connection, db.report, number, [row.id for row in rows])
    stored = {bytes(identity) for identity, _, _ in known}
    new = [row for row in rows if row.id not in stored]
    insert_rows(connection, db.report, [(number, *row) for row in new])
    return new


def _spend(connection: sql.Connection, number: int, codes: Sequence[bytes]) -> None:
    """Delete spent invitations and insert them again, in the order of their hashes."""
    here = db.invitation.c
    for start in range(0, len(codes), PIECE):
        some = codes[start : start + PIECE]
        connection.execute(
            sql.delete(db.invitation).where(here.survey == number, here.hash.in_(some))
        )
        rows = [{"survey": number, "hash": code, "spent": 1} for code in some]
        connection.execute(sql.insert(db.invitation), rows)


def clear_keys(database: Database, number: int, *, orphans: bool = False) -> None:
    """Destroy the spent keys of a survey and delete their rows.

    ``orphans`` are keys that no transaction has committed, of processes that were killed.
    """
    with database.write() as connection:
        exclusive(connection, number)
        destroy_spent_keys(connection, number, orphans=orphans)


def clear_left_keys(database: Database) -> None:
    """Destroy the keys that killed processes have left; called at the start."""
    with database.read() as connection:
        named = set(connection.execute(sql.select(db.batch_key.c.survey).distinct()).scalars())
    for number in sorted(named | {survey for survey, _ in database.keys.batches()}):
        clear_keys(database, number, orphans=True)


def publish(connection: sql.Connection, number: int, settled: int, seen: Mapping[str, int]) -> None:
    """Update the public counters."""
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


def withdraw(
    connection: sql.Connection,
    number: int,
    collection: Collection,
    identity: bytes,
    by_date: str = "open",
) -> Literal["withdrawn", "closed", "not-found"]:
    """Delete a report and leave its id as withdrawn, unless the survey is closed.

    A waiting arrival is emptied and marked; its id is stored when it would have been settled.

    A report that was withdrawn before stays so. After the close the count is final, as announced;
    the next wave may already follow from it.

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
    keys = live_keys(connection, number)
    waits = find_arrivals(connection, number, keys, [identity]).get(identity)
    withdrawn = waits is not None and not waits.live
    if withdrawn or among(connection, db.withdrawn, number, [identity]):
        return "withdrawn"
    if "closed" in (by_date, stored_state(connection, number)):
        return "closed"
    if waits is not None:
        withdraw_arrival(connection, number, keys, waits)
        return "withdrawn"
    here = db.report.c
    gone: Any = connection.execute(
        sql.delete(db.report)
        .where(here.survey == number, here.id == identity)
        .returning(here.id, here.question, here.value)
    ).all()
    if not gone:
        return "not-found"
    fold(connection, number, collection, gone, -1)
    connection.execute(sql.insert(db.withdrawn).values(survey=number, id=identity))
    return "withdrawn"
