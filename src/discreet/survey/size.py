"""How many respondents a survey needs for a wanted precision, before anyone is asked.

The score of a sheet has a variance that the channel bounds for every population
(``survey/variance.py``), so the figures hold whatever the true answers are; most populations do
better.

>>> from discreet import Categorical, Schema
>>> from discreet.survey.questionnaire import Questionnaire
>>> schema = Schema([Categorical("smokes", ["no", "yes"], optional=False)], "sick", ["no", "yes"])
>>> survey = Questionnaire.of(schema, theta=0.5)
>>> [(one.what, round(one.standard_error, 3)) for one in precision_of(survey, 1000)]
[('smokes and sick', 0.032), ('smokes', 0.032), ('sick', 0.032)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Floats
from discreet.errors import EstimationError
from discreet.survey.inversion import channel_variance, unmixed
from discreet.survey.predicate import Predicate
from discreet.survey.questionnaire import Questionnaire

__all__ = ["SharePrecision", "precision_of"]


@dataclass(frozen=True)
class SharePrecision:
    """The standard error of an estimated share, at most.

    Parameters
    ----------
    what : str
        A question, two questions (all combinations of their answers), or a predicate.
    standard_error : float
        As a share of the people; the largest over all populations.
    respondents : int
        For which it holds; it falls with the square root of their number.
    """

    what: str
    standard_error: float
    respondents: int


def precision_of(
    questionnaire: Questionnaire, respondents: int, predicates: Sequence[str] = ()
) -> list[SharePrecision]:
    """How precise shares can be expected to be, worst first.

    Without predicates: of every answer to every question, and of every combination of an answer
    with an answer to the target, which is what a model is made of.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondents : int
    predicates : sequence of str, optional
    """
    if respondents < 1:
        raise EstimationError(f"respondents is {respondents}; expect at least one")
    found = []
    if predicates:
        for text in predicates:
            one = Predicate.parse(questionnaire, text)
            variance = _worst(questionnaire, one.names, np.asarray(one.table, float)[None])
            found.append((text, variance))
    else:
        target = questionnaire.schema.target
        pairs = [(name, target) for name in questionnaire.schema.names]
        for names in [*pairs, *((name,) for name in questionnaire.names)]:
            sizes = [questionnaire.cells[name].size for name in names]
            every = np.eye(math.prod(sizes)).reshape(-1, *sizes)
            found.append((" and ".join(names), _worst(questionnaire, names, every)))
    made = [SharePrecision(what, math.sqrt(v / respondents), respondents) for what, v in found]
    return sorted(made, key=lambda one: -one.standard_error)


def _worst(questionnaire: Questionnaire, names: Sequence[str], tables: Floats) -> float:
    """The largest variance of one sheet's score, over the predicates and over all populations."""
    scores = unmixed(questionnaire, names, tables)
    return float(np.max(channel_variance(questionnaire, names, tables, scores).worst()))
