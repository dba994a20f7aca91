"""A small questionnaire with two groups, and ways to invent people for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from discreet import Categorical, Numeric, Schema
from discreet.survey.questionnaire import Group, PersonalLaw, Questionnaire


@pytest.fixture
def schema() -> Schema:
    return Schema(
        [
            Categorical("smokes", ["no", "yes"], optional=False),
            Categorical("region", ["north", "south", "east"], optional=False),
            Numeric("age", 18, 98, integer=True),
        ],
        "sick",
        ["no", "yes"],
    )


@pytest.fixture
def survey(schema: Schema) -> Questionnaire:
    return Questionnaire(
        schema,
        [Group(("smokes", "sick"), theta=0.6), Group(("region", "age"), theta=0.4)],
        [PersonalLaw(("smokes",), (1, 3)), PersonalLaw(("region", "age"), (1, 2, 3) * 3)],
        {"age": (50,)},
    )


@pytest.fixture
def answers() -> dict[str, Any]:
    return {"smokes": "yes", "region": "south", "age": 40, "sick": "no"}


def _invented(survey: Questionnaire, people: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    target = rng.integers(0, survey.sizes[-1], people)
    columns = [(rng.integers(0, size, people) + target) % size for size in survey.sizes[:-1]]
    some = rng.random((people, len(columns))) < 0.5
    columns = [np.where(s, c, 0) for s, c in zip(some.T, columns, strict=True)]
    return np.column_stack([*columns, target])


@pytest.fixture
def invented() -> Callable[..., np.ndarray]:
    """True answers whose features depend on the target, for a questionnaire and a number."""
    return _invented


def _sheet_law(survey: Questionnaire, truth: Sequence[int]) -> np.ndarray:
    """P(sheet | truth) of every sheet, from the definition: who is true, who has a decoy."""
    law = np.zeros(survey.sizes)
    numbers = range(len(survey.groups))
    personal = survey.law(survey.names)
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
