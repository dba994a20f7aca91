"""A prediction at the desk, with its stability and the weight of each answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.estimation.uncertainty import estimate_agreement
from discreet.model.explanation import Explanation
from discreet.model.support import ValueRange
from discreet.server.analysis import Analysis
from discreet.server.evidence import SupportedOdds

__all__ = ["Prediction", "make_prediction"]


@dataclass(frozen=True)
class Prediction:
    """A predicted class, with its reasons.

    Parameters
    ----------
    explanation : Explanation
    agreement : float
        Probability that a model of the true answers of the same people predicts the same class.
    reasons : tuple of SupportedOdds
        Every answer, then what was so before, and all of it together.
    """

    explanation: Explanation
    agreement: float
    reasons: tuple[SupportedOdds, ...]

    @property
    def has_support(self) -> bool:
        """Whether the range that the reports support is known for some reason."""
        return any(reason.range for reason in self.reasons)

    @property
    def share(self) -> str:
        """Share of the people with these answers who belong to the class, in percent, by the model.

        At most "more than 99": a model of randomized answers is never certain.
        """
        class_percent = 100 * self.explanation.probability
        return "more than 99" if class_percent > 99 else f"{class_percent:.0f}"


def make_prediction(
    analysis: Analysis, answers: Mapping[str, Any], against: str = ""
) -> Prediction:
    """Predict the class of one person's answers.

    Parameters
    ----------
    analysis : Analysis
    answers : mapping of name to value
    against : str
        The class to compare with; the runner-up if it is not another class of the schema.
    """
    model, statistics = analysis.model, analysis.statistics
    explanation = model.explain(answers)
    rival_class = next(
        (schema_class for schema_class in model.schema.classes if str(schema_class) == against),
        None,
    )
    if rival_class is not None and rival_class != explanation.predicted:
        explanation = model.explain(answers, rival_class)
    answer_columns = {
        feature_name: np.array([answers.get(feature_name)], dtype=object)
        for feature_name in model.inputs.names
    }
    agreement = float(estimate_agreement(statistics, answer_columns)[0])
    return Prediction(explanation, agreement, tuple(_list_reasons(explanation)))


def _list_reasons(explanation: Explanation) -> list[SupportedOdds]:
    def make_reason(
        statement: str, log_odds: float, odds_range: ValueRange | None = None
    ) -> SupportedOdds:
        favoured_class, odds = explanation.predicted, math.exp(min(abs(log_odds), 700))
        if log_odds < 0:
            favoured_class = explanation.against
            odds_range = odds_range and (_invert_ratio(odds_range[1]), _invert_ratio(odds_range[0]))
        return SupportedOdds(statement, favoured_class, odds, odds_range)

    return [
        *(
            make_reason(f"{item.feature} = {item.value}", item.log_odds, item.odds_range)
            for item in explanation.evidence
        ),
        make_reason("before any answer", explanation.prior),
        make_reason("all together", explanation.log_odds),
    ]


def _invert_ratio(ratio: float) -> float:
    return 1 / ratio if ratio > 0 else math.inf
