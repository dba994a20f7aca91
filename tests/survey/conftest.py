"""A small questionnaire with two groups, and ways to invent people for it."""

from __future__ import annotations

from collections.abc import Callable
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
