"""Many respondents at once, each randomizing alone and sending one sheet: honest simulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.encoding import class_codes
from discreet.randomness import Random
from discreet.survey.questionnaire import Questionnaire
from discreet.survey.respondent import randomized
from discreet.survey.tally import Tally

__all__ = ["encoded", "simulate"]


def encoded(questionnaire: Questionnaire, columns: Mapping[str, Any]) -> Integers:
    """Columns of true answers as cell numbers, a row a person, in the order of a sheet."""
    schema = questionnaire.schema
    codes = [questionnaire.cells[name].column(columns[name]) for name in schema.names]
    codes.append(class_codes(schema, columns[schema.target]))
    return np.column_stack(codes).astype(np.int64)


def simulate(
    questionnaire: Questionnaire,
    answers: Integers,
    random: Random,
    personal: Integers | None = None,
) -> Tally:
    """Tally of one sheet from every row of true answers.

    Parameters
    ----------
    questionnaire : Questionnaire
    answers : array of int, (people, questions)
        As :func:`encoded` makes them.
    random : Random
    personal : array of int of the same shape, optional
        The people's own personal answers; drawn from the public law if not given.
    """
    tally = Tally(questionnaire, simulated=random.simulated)
    tally.add_answers(randomized(questionnaire, answers, random, personal))
    return tally
