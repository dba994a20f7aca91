"""The schema of the small questionnaire."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from discreet import Schema
from discreet.survey import Questionnaire


@pytest.fixture
def schema(survey_schema: Schema) -> Schema:
    return survey_schema


def _sheet_law(survey: Questionnaire, truth: Sequence[int]) -> np.ndarray:
    """P(sheet | truth) of every sheet, from the definition: who is true, who has a decoy."""
    law = np.zeros(survey.sizes)
    numbers = range(len(survey.groups))
    personal = survey.compute_personal_law(survey.names)
    for true in itertools.chain.from_iterable(
        itertools.combinations(numbers, k) for k in range(len(numbers) + 1)
    ):
        weight = 1.0
        fixed = list(truth)
        drawn = []
        for n in numbers:
            channel, places = survey.channels[n], survey.places[n]
            theta = float(channel.theta_exact)
            weight *= theta if n in true else 1 - theta
            if n not in true and channel.name == "related":
                for place in places:
                    fixed[place] = 1 - truth[place]
            elif n not in true:
                drawn += places
        others = tuple(k for k in range(len(fixed)) if k not in drawn)
        margin = personal.sum(axis=others, keepdims=True)
        index = tuple(slice(None) if k in drawn else fixed[k] for k in range(len(fixed)))
        flat = tuple(slice(None) if k in drawn else 0 for k in range(len(fixed)))
        law[index] += weight * margin[flat]
    return law


@pytest.fixture
def sheet_law() -> Callable[..., np.ndarray]:
    """P(sheet | truth) of every sheet, an axis per question, for a questionnaire and a truth."""
    return _sheet_law
