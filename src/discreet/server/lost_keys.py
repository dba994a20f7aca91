"""Lost keys: checked at the start, and given up only with ``--give-up-lost``.

The key of a batch seals the reports that were acknowledged and not settled, until the next
settling: they are lost with it. Nothing else is.
"""

from __future__ import annotations

import sqlalchemy as sql

from discreet.server import database as db
from discreet.server.database import Database, exclusive
from discreet.server.keys import LostKeyError, batch_key_name
from discreet.server.sealed_arrivals import count_waiting, live_keys, retire_keys
from discreet.server.settle import clear_keys
from discreet.server.surveys import Surveys

__all__ = ["check_keys", "give_up_lost"]


def check_keys(database: Database) -> None:
    """Refuse with :class:`~discreet.server.keys.LostKeyError` where a needed key is lost."""
    for survey, _ in Surveys(database).all():
        with database.read() as connection:
            if count_waiting(connection, survey.number, 1, live_only=False):
                live_keys(connection, survey.number)


def give_up_lost(database: Database) -> dict[str, int]:
    """Delete arrivals whose keys are lost; return their number by survey."""
    lost = {}
    for survey, _ in Surveys(database).all():
        number = survey.number
        with database.write() as connection:
            exclusive(connection, number)
            here = db.batch_key.c
            live = (here.survey == number, here.state != "spent")
            gone = [
                batch
                for batch in connection.execute(sql.select(here.number).where(*live)).scalars()
                if not _is_readable(database, number, batch)
            ]
            count = count_waiting(connection, number, None, gone)
            sealed = (db.arrival.c.survey == number, db.arrival.c.batch.in_(gone))
            connection.execute(sql.delete(db.arrival).where(*sealed))
            retire_keys(connection, number, gone)
        clear_keys(database, number)
        if gone:
            lost[survey.slug] = count
    return lost


def _is_readable(database: Database, number: int, batch: int) -> bool:
    try:
        database.keys.load(batch_key_name(number, batch), batch)
    except LostKeyError:
        return False
    return True
