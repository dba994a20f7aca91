"""One question of a plan: what is asked, by which mechanism, and how that is written down."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from discreet.documents import Body
from discreet.errors import PrivacyError, SchemaError
from discreet.mechanisms.frequency import FrequencyOracle, oracle_of
from discreet.mechanisms.mean import MEAN_ORACLES, Laplace, MeanOracle

__all__ = ["Question", "QuestionBody", "mean_oracle_of"]

MOST_NUMBERS = 1 << 19
"""Integers in one report; a report with more would not fit into what a collector accepts."""


@dataclass(frozen=True)
class Question:
    """One question of a plan.

    Parameters
    ----------
    features : tuple of str
        Which features are asked together with the class; none for the class alone.
    mechanism : FrequencyOracle or MeanOracle
        A frequency oracle reports the cell (class, value, value, …), a mean oracle the numbers
        themselves, in a vector that has one place for each feature and class.
    weight : int
        Share of the respondents who answer it, relative to the other questions.
    power : {0, 1, 2}
        0 for cells; 1 for numbers t scaled to [-1, 1], 2 for their squares 2 t^2 - 1.
    """

    features: tuple[str, ...]
    mechanism: FrequencyOracle | MeanOracle
    weight: int
    power: Literal[0, 1, 2] = 0

    def __post_init__(self) -> None:
        if isinstance(self.weight, bool) or not isinstance(self.weight, int) or self.weight < 1:
            raise SchemaError(f"its weight is {self.weight!r}; give a whole number of at least 1")
        if len(set(self.features)) < len(self.features):
            raise SchemaError("it asks for a feature twice")
        if isinstance(self.mechanism, FrequencyOracle) != (self.power == 0):
            wanted = "a frequency oracle" if self.power == 0 else "a mean oracle"
            raise SchemaError(f"power {self.power} needs {wanted}, not {self.mechanism.name}")
        if self.mechanism.width > MOST_NUMBERS:
            raise SchemaError(
                f"a report of {self.mechanism.name} would hold {self.mechanism.width} numbers, at "
                f"most {MOST_NUMBERS} can be sent; use the oracle olh or hr for so many cells"
            )
        if isinstance(self.mechanism, Laplace) and self.mechanism.active != len(self.features):
            # with fewer, a device could only answer for some records, and silence would tell which
            raise PrivacyError(
                f"laplace is told that {self.mechanism.active} numbers may differ from zero, but "
                f"{len(self.features)} features are asked at once"
            )

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {
            "features": list(self.features),
            "power": self.power,
            "weight": self.weight,
            "mechanism": self.mechanism.name,
            "size": self.mechanism.size,
            "epsilon": self.mechanism.epsilon,
            "theta": getattr(self.mechanism, "theta", None),
            "parameters": self.mechanism.parameters(),
        }


class QuestionBody(Body):
    """Shape of a question on disk."""

    features: list[str]
    power: Literal[0, 1, 2]
    weight: int
    mechanism: str
    size: int
    epsilon: float
    theta: float | None
    parameters: dict[str, Any]

    def question(self) -> Question:
        """The question this shape stands for; its probabilities must be those of its epsilon."""
        mechanism: FrequencyOracle | MeanOracle
        if self.power == 0:
            mechanism = oracle_of(
                self.mechanism, self.size, self.epsilon, self.theta, self.parameters
            )
        else:
            mechanism = mean_oracle_of(self.mechanism, self.parameters)
        return Question(tuple(self.features), mechanism, self.weight, self.power)


def mean_oracle_of(name: str, parameters: Mapping[str, Any]) -> MeanOracle:
    """The mean oracle that a plan names; its probabilities must be those of its epsilon."""
    if name not in MEAN_ORACLES:
        raise SchemaError(f"mechanism is {name!r}; write one of {', '.join(MEAN_ORACLES)}")
    kind = MEAN_ORACLES[name]
    known = inspect.signature(kind).parameters
    given = {key: value for key, value in parameters.items() if key in known}
    try:
        mechanism = kind(**given)
    except TypeError:
        raise SchemaError(f"the parameters of {name} lack its epsilon or size") from None
    if mechanism.parameters() != dict(parameters):
        raise PrivacyError(f"the parameters of {name} are not those of its epsilon and size")
    return mechanism
