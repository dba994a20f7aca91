"""Lost keys: checked at the start, and given up only with ``--give-up-lost``.

The key of a batch seals the reports that were acknowledged and not settled, until the next
settling: they are lost with it. Nothing else is.
"""

from __future__ import annotations

import sqlalchemy as sql

from discreet.server import database as db
from discreet.server.database import Database, lock_survey
from discreet.server.keys import LostKeyError, format_key_name
from discreet.server.sealed_arrivals import count_waiting, load_live_keys, retire_keys
from discreet.server.settling import clear_keys
from discreet.server.surveys import SurveyStore

__all__ = ["check_keys", "give_up_lost"]


def check_keys(database: Database) -> None:
    """Refuse with :class:`~discreet.server.keys.LostKeyError` where a needed key is lost."""
    for survey, _ in SurveyStore(database).list_surveys():
        with database.read() as connection:
            if count_waiting(connection, survey.number, 1, live_only=False):
                load_live_keys(connection, survey.number)


def give_up_lost(database: Database) -> dict[str, int]:
    """Delete arrivals whose keys are lost; return their number by survey."""
    lost_counts = {}
    for survey, _ in SurveyStore(database).list_surveys():
        survey_number = survey.number
        with database.write() as connection:
            lock_survey(connection, survey_number)
            key_columns = db.batch_key.c
            is_live = (key_columns.survey == survey_number, key_columns.state != "spent")
            lost_batches = [
                batch_number
                for batch_number in connection.execute(
                    sql.select(key_columns.number).where(*is_live)
                ).scalars()
                if not _is_readable(database, survey_number, batch_number)
            ]
            lost_count = count_waiting(connection, survey_number, None, lost_batches)
            sealed_rows = (
                db.arrival.c.survey == survey_number,
                db.arrival.c.batch.in_(lost_batches),
            )
            connection.execute(sql.delete(db.arrival).where(*sealed_rows))
            retire_keys(connection, survey_number, lost_batches)
        clear_keys(database, survey_number)
        if lost_batches:
            lost_counts[survey.slug] = lost_count
    return lost_counts


def _is_readable(database: Database, survey_number: int, batch_number: int) -> bool:
    try:
        database.keys.load_key(format_key_name(survey_number, batch_number), batch_number)
    except LostKeyError:
        return False
    return True
