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

from discreet.announcement import Announcement, Words
from discreet.collection.simulation import answers
from discreet.errors import FormatError
from discreet.randomness import CryptoRandom
from discreet.schema import Categorical
from discreet.server import surveys as acts
from discreet.server.arrivals import take_many
from discreet.server.database import Database
from discreet.server.intake import Row, packed
from discreet.server.settle import settle_piece
from discreet.server.surveys import SIMULATED

__all__ = ["invented", "rehearse"]


def invented(collection: Any, people: int) -> dict[str, Any]:
    """Simulate columns of records whose answers depend on the class."""
    rng = np.random.default_rng()
    schema = getattr(collection, "original", collection.schema)
    weights = np.arange(len(schema.classes), 0, -1.0)
    classes = rng.choice(len(schema.classes), people, p=weights / weights.sum())
    lean = classes / max(len(schema.classes) - 1, 1)
    columns: dict[str, Any] = {}
    for number, feature in enumerate(schema.features):
        strength = 0.75 if number % 2 == 0 else 0.25
        place = np.clip(0.5 + strength * (lean - 0.5) + rng.normal(0, 0.22, people), 0, 1)
        if isinstance(feature, Categorical):
            size = len(feature.values)
            cells = np.minimum((place * size).astype(int), size - 1)
            columns[feature.name] = np.array(feature.values, dtype=object)[cells]
        else:
            low, high = float(feature.lower or 0), float(feature.upper or 1)
            numbers = low + place * (high - low)
            columns[feature.name] = np.round(numbers) if feature.integer else numbers
    columns[schema.target] = np.array(schema.classes, dtype=object)[classes]
    return columns


def rehearse(database: Database, collection: Any, announcement: Announcement, people: int) -> str:
    """Create a closed collection of simulated reports; return its name.

    Parameters
    ----------
    database : Database
    collection : Plan or Questionnaire
    announcement : Announcement
        Of the real one.
    people : int
    """
    name = announcement.name[: 64 - len(SIMULATED)].rstrip("-") + SIMULATED
    known = acts.Surveys(database).find(name)
    if known is not None and known.collection.digest != collection.digest:
        raise FormatError(
            f"{name} holds simulated answers to another {collection.kind}; delete it first"
        )
    if known is not None:
        return name
    words = {
        tag: replace(one, title=f"SIMULATED: {one.title}")
        for tag, one in announcement.words.items()
    }
    made = replace(
        announcement,
        name=name,
        words=words or {"en": Words(f"SIMULATED: {name}")},
        batch=1,
        deletes="",  # there are no respondents to whom deletion was announced
    )
    random = CryptoRandom()
    codes = collection.encoded(invented(collection, people))
    rows = [
        Row(secrets.token_bytes(16), question, packed(value))
        for question, _, values in answers(collection, codes, random)
        for value in np.asarray(values).tolist()
    ]
    with database.write() as connection:
        number = acts.create(connection, collection, made, invented=True)
        acts.set_state(connection, number, "open")
        take_many(connection, number, rows)
        acts.set_state(connection, number, "closed")
    while not settle_piece(database, number, collection, 1).last:
        pass
    return name
