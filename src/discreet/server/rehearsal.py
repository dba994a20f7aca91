"""Simulated respondents in a collection of their own, so that the desk can be tried at once.

Each respondent has a random class and answers that depend on it, and randomizes like a real one.
Their collection is closed and named ``NAME-simulated``; nothing of it is ever mixed with real
reports.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.collection.announcement import Announcement, AnnouncementTexts
from discreet.collection.simulation import iter_simulated_answers
from discreet.errors import FormatError
from discreet.randomness import CryptoRandom
from discreet.schema.schema import Categorical
from discreet.server import surveys
from discreet.server.arrivals import store_batch
from discreet.server.database import Database
from discreet.server.intake import ReportRow, pack_integers
from discreet.server.settling import settle_piece
from discreet.server.surveys import SIMULATED_SUFFIX

__all__ = ["create_rehearsal", "simulate_records"]


def simulate_records(collection: Any, respondents: int) -> dict[str, Any]:
    """Simulate columns of records whose answers depend on the class."""
    rng = np.random.default_rng()
    schema = collection.original
    weights = np.arange(len(schema.classes), 0, -1.0)
    class_indices = rng.choice(len(schema.classes), respondents, p=weights / weights.sum())
    class_positions = class_indices / max(len(schema.classes) - 1, 1)
    columns: dict[str, Any] = {}
    for feature_index, feature in enumerate(schema.features):
        strength = 0.75 if feature_index % 2 == 0 else 0.25
        relative_positions = np.clip(
            0.5 + strength * (class_positions - 0.5) + rng.normal(0, 0.22, respondents), 0, 1
        )
        if isinstance(feature, Categorical):
            category_count = len(feature.values)
            cell_indices = np.minimum(
                (relative_positions * category_count).astype(int), category_count - 1
            )
            columns[feature.name] = np.array(feature.values, dtype=object)[cell_indices]
        else:
            lower, upper = float(feature.lower or 0), float(feature.upper or 1)
            numbers = lower + relative_positions * (upper - lower)
            numbers = np.round(numbers) if feature.integer else numbers
            columns[feature.name] = np.array([*map(feature.restore_value, numbers.tolist())])
    columns[schema.target] = np.array(schema.classes, dtype=object)[class_indices]
    return columns


def create_rehearsal(
    database: Database, collection: Any, announcement: Announcement, respondents: int
) -> str:
    """Create a closed collection of simulated reports; return its name.

    Parameters
    ----------
    database : Database
    collection : Plan or Questionnaire
    announcement : Announcement
        Of the real one.
    respondents : int
    """
    rehearsal_name = announcement.name[: 64 - len(SIMULATED_SUFFIX)].rstrip("-") + SIMULATED_SUFFIX
    existing_survey = surveys.SurveyStore(database).find_survey(rehearsal_name)
    if existing_survey is not None:
        if existing_survey.collection.digest == collection.digest:
            return rehearsal_name
        raise FormatError(
            f"{rehearsal_name} holds simulated answers to another {collection.kind}; "
            "delete it first"
        )
    simulated_words = {
        tag: replace(page_words, title=f"SIMULATED: {page_words.title}")
        for tag, page_words in announcement.words.items()
    }
    rehearsal_announcement = replace(
        announcement,
        name=rehearsal_name,
        words=simulated_words or {"en": AnnouncementTexts(f"SIMULATED: {rehearsal_name}")},
        batch=1,
        deletes="",  # there are no respondents to whom deletion was announced
    )
    random = CryptoRandom()
    cell_codes = collection.encode_columns(simulate_records(collection, respondents))
    report_rows = [
        ReportRow(secrets.token_bytes(16), question, pack_integers(value))
        for question, _, values in iter_simulated_answers(collection, cell_codes, random)
        for value in np.asarray(values).tolist()
    ]
    with database.write() as connection:
        survey_number = surveys.create_survey(
            connection, collection, rehearsal_announcement, is_simulated=True
        )
        surveys.set_state(connection, survey_number, "open")
        store_batch(connection, survey_number, report_rows)
        surveys.set_state(connection, survey_number, "closed")
    while not settle_piece(database, survey_number, collection, 1).is_last:
        pass
    return rehearsal_name
