"""A prediction at the desk, with its stability and the weight of each answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.estimation.uncertainty import steadiness
from discreet.model.explanation import Explanation
from discreet.server.analysis import Analysis
from discreet.server.evidence import Evidence, range_of
from discreet.statistics import Statistics

__all__ = ["Prediction", "prediction_of"]


@dataclass(frozen=True)
class Prediction:
    """A predicted class, with its reasons.

    Parameters
    ----------
    said : Explanation
    steady : float
        Probability that a model of the true answers of the same people predicts the same class.
    reasons : tuple of Evidence
        Every answer, then what was so before, and all of it together.
    """

    said: Explanation
    steady: float
    reasons: tuple[Evidence, ...]

    @property
    def sure(self) -> bool:
        """Whether the range that the reports support is known for some reason."""
        return any(one.range for one in self.reasons)

    @property
    def share(self) -> str:
        """Share of the people with these answers who belong to the class, in percent, by the model.

        At most "more than 99": a model of randomized answers is never certain.
        """
        chance = 100 * self.said.probability
        return "more than 99" if chance > 99 else f"{chance:.0f}"


def prediction_of(analysis: Analysis, row: Mapping[str, Any], against: str = "") -> Prediction:
    """Predict the class of one person's answers.

    Parameters
    ----------
    analysis : Analysis
    row : mapping of name to value
    against : str
        The class to compare with; the runner-up if it is not another class of the schema.
    """
    model, statistics = analysis.model, analysis.statistics
    said = model.explain(row)
    rival = next((one for one in model.schema.classes if str(one) == against), None)
    if rival is not None and rival != said.predicted:
        said = model.explain(row, rival)
    columns = {name: np.array([row.get(name)], dtype=object) for name in model.inputs.names}
    steady = float(steadiness(statistics, columns)[0])
    return Prediction(said, steady, tuple(_reasons(said, statistics)))


def _reasons(said: Explanation, statistics: Statistics) -> list[Evidence]:
    def weighed(what: str, log_odds: float, answer: tuple[str, str] | None = None) -> Evidence:
        two = [str(said.predicted), str(said.against)]
        label, other = two if log_odds >= 0 else two[::-1]
        supported = answer and range_of(statistics, answer, label, other)
        return Evidence(what, label, math.exp(min(abs(log_odds), 700)), supported)

    found = []
    for one in said.evidence:
        answer = (one.feature, one.value)
        found.append(weighed(f"{one.feature} = {one.value}", one.log_odds, answer))
    found.append(weighed("before any answer", said.prior))
    return [*found, weighed("all together", said.log_odds)]
