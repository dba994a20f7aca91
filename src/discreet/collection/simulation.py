"""Simulate many respondents at once, each randomizing alone and sending one report.

The computation is that of a device, vectorised. It reads raw data, so it runs only where raw data
are available anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from discreet.arrays import Integers
from discreet.collection.protocol import C, Codes, Collection
from discreet.collection.tally import Tally
from discreet.randomness import Random

__all__ = ["answers", "simulate"]


def answers(
    collection: Collection, codes: Codes, random: Random
) -> Iterator[tuple[int, Integers, Integers]]:
    """Simulate one answer per record; iterate over (question, rows, serialised answers).

    Parameters
    ----------
    collection : Plan or Questionnaire
    codes : Codes
        True records, as ``collection.encoded`` makes them.
    random : Random
    """
    asked = collection.draw(len(codes), random)
    order = np.argsort(asked, kind="stable")
    ends = np.searchsorted(asked[order], np.arange(len(collection.questions) + 1))
    for question in range(len(collection.questions)):
        rows = order[ends[question] : ends[question + 1]]
        if len(rows):
            yield question, rows, collection.randomized(question, codes[rows], random)


def simulate(collection: C, codes: Codes, random: Random) -> Tally[C]:
    """Simulate one report per record and tally them.

    Parameters
    ----------
    collection : Collection
        A plan or a questionnaire.
    codes : Codes
        The records, encoded; see :func:`answers`.
    random : Random
        The source; a seeded one marks the tally as simulated.
    """
    tally = Tally(collection, simulated=random.simulated)
    for question, _, values in answers(collection, codes, random):
        tally.add_values(question, values)
    if collection.shuffled is not None:  # the anonymiser is simulated, too: one shuffle of all
        tally.batches.add(random.raw(16).tobytes().hex(), tally.reports)
    return tally
