"""The tally of a survey in the database, equal to the sum of its settled reports at every commit.

Sums and counts are integers in two blobs; whole answers (sheets) have a table of their own, one
row per distinct answer. ``version`` increases with every change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sql

from discreet.collection.protocol import Collection
from discreet.collection.tally import SAMPLED, Tally
from discreet.server import database as db
from discreet.server.database import insert_of
from discreet.server.intake import matrices_of, packed_rows, unpacked

__all__ = ["Published", "fold", "load", "published", "recounted", "same", "start"]

STREAMED = 50_000
"""Stored reports that are read at a time."""


@dataclass(frozen=True)
class Published:
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


def start(connection: sql.Connection, number: int, collection: Collection) -> None:
    """Create the empty tally of a new survey."""
    empty: Tally[Any] = Tally(collection)
    row = {"version": 0, "settled": 0, "repeated": 0, "withdrawn": 0}
    connection.execute(sql.insert(db.tally).values(survey=number, **row, **_blobs(empty)))


def _blobs(tally: Tally[Any]) -> dict[str, bytes]:
    sums = np.concatenate([np.zeros(0, np.int64), *tally.sums])
    return {"counted": tally.counted.astype("<i8").tobytes(), "sums": sums.astype("<i8").tobytes()}


def _added_up(connection: sql.Connection, number: int, collection: Collection) -> Tally[Any]:
    """Load the tally without sheets and without ids of reports."""
    columns = (db.tally.c.counted, db.tally.c.sums)
    counted, sums = connection.execute(
        sql.select(*columns).where(db.tally.c.survey == number)
    ).one()
    sizes = [channel.size or 0 for channel in collection.questions]
    numbers = np.frombuffer(sums, "<i8").astype(np.int64)
    parts = np.split(numbers, np.cumsum(sizes)[:-1])
    return Tally(collection, np.frombuffer(counted, "<i8").astype(np.int64), list(parts))


def fold(
    connection: sql.Connection,
    number: int,
    collection: Collection,
    rows: Sequence[Any],
    sign: int = 1,
) -> None:
    """Add stored rows to the tally, or subtract them with ``sign=-1``."""
    change: Tally[Any] = Tally(collection)
    for question, _, matrix in matrices_of(collection, rows):
        change.add_values(question, matrix)
    tally = _added_up(connection, number, collection)
    for question, channel in enumerate(collection.questions):
        counted = sign * int(change.counted[question])
        tally.add_sums(question, sign * change.sums[question], counted)
        if channel.size is None and change.counted[question]:
            _fold_whole(connection, number, question, sign, *change.distinct(question))
    here = db.tally.c
    connection.execute(
        sql.update(db.tally)
        .where(here.survey == number)
        .values(version=here.version + 1, **_blobs(tally))
    )


def _fold_whole(
    connection: sql.Connection, number: int, question: int, sign: int, rows: Any, times: Any
) -> None:
    here = db.sheet.c
    keys = [here.survey, here.question, here.value]
    upsert = insert_of(connection, db.sheet)
    upsert = upsert.on_conflict_do_update(
        index_elements=keys, set_={"times": here.times + upsert.excluded.times}
    )
    values = [
        {"survey": number, "question": question, "value": value, "times": sign * often}
        for value, often in zip(packed_rows(rows), times.tolist(), strict=True)
    ]
    connection.execute(upsert, values)
    if sign < 0:
        gone = (here.survey == number, here.question == question, here.times == 0)
        connection.execute(sql.delete(db.sheet).where(*gone))


def load(connection: sql.Connection, number: int, collection: Collection) -> Tally[Any]:
    """Load the complete tally, with the smallest ids of its reports as the sample."""
    stored = _added_up(connection, number, collection)
    tally: Tally[Any] = Tally(collection)
    for question, channel in enumerate(collection.questions):
        if channel.size is None:
            here = db.sheet.c
            found = connection.execute(
                sql.select(here.value, here.times).where(
                    here.survey == number, here.question == question
                )
            ).all()
            if found:
                matrix = unpacked([bytes(one.value) for one in found], channel.width)
                tally.add_values(question, matrix, [one.times for one in found])
        else:
            tally.add_sums(question, stored.sums[question], int(stored.counted[question]))
    ids = sql.select(db.report.c.id).where(db.report.c.survey == number)
    smallest = connection.execute(ids.order_by(db.report.c.id).limit(SAMPLED))
    tally.sample = {bytes(id_).hex() for (id_,) in smallest}
    gone = sql.select(db.withdrawn.c.id).where(db.withdrawn.c.survey == number)
    tally.withdrawn = {bytes(id_).hex() for (id_,) in connection.execute(gone)}
    refused = sql.select(db.refusal.c.kind, db.refusal.c.times).where(db.refusal.c.survey == number)
    tally.rejected.update({row.kind: row.times for row in connection.execute(refused)})
    tally.repeated = published(connection, number).repeated
    return tally


def published(connection: sql.Connection, number: int) -> Published:
    """Read the public counters."""
    here = db.tally.c
    found = connection.execute(
        sql.select(here.version, here.settled, here.repeated, here.withdrawn).where(
            here.survey == number
        )
    ).one()
    return Published(*found)


def stored_rows(connection: sql.Connection, number: int) -> Any:
    """Yield all settled reports in the order of their ids, as lists of (id, question, value)."""
    here, last = db.report.c, b""
    while True:
        query = (
            sql.select(here.id, here.question, here.value)
            .where(here.survey == number, here.id > last)
            .order_by(here.id)
            .limit(STREAMED)
        )
        rows = connection.execute(query).all()
        if not rows:
            return
        yield rows
        last = bytes(rows[-1].id)


def recounted(connection: sql.Connection, number: int, collection: Collection) -> Tally[Any]:
    """Recount the stored reports into a new tally."""
    tally: Tally[Any] = Tally(collection)
    for rows in stored_rows(connection, number):
        for question, _, matrix in matrices_of(collection, rows):
            tally.add_values(question, matrix)
    return tally


def same(one: Tally[Any], other: Tally[Any]) -> bool:
    """Whether two tallies count the same answers."""
    channels = one.collection.questions
    whole = [number for number, channel in enumerate(channels) if channel.size is None]
    return (
        np.array_equal(one.counted, other.counted)
        and all(map(np.array_equal, one.sums, other.sums))
        and all(all(map(np.array_equal, one.distinct(n), other.distinct(n))) for n in whole)
    )
