"""A prediction at the desk, in words: how sure it is, and how much each answer weighs."""

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
        How probably a model of the true answers of the same people would decide the same.
    reasons : tuple of Evidence
        Every answer, then what was so before, and all of it together.
    """

    said: Explanation
    steady: float
    reasons: tuple[Evidence, ...]

    @property
    def sure(self) -> bool:
        """Whether anything is known about what the reports support."""
        return any(one.range for one in self.reasons)

    @property
    def share(self) -> str:
        """How many of 100 people who answer so belong to the class, by the model.

        No model of answers with chance in them knows it of all.
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
        The class to compare with; the runner-up if it is none, or the predicted one itself.
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
