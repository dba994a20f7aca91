"""The choice of a temperature: how sure the released model may be (docs/maths.md, "Temperature").

Where features say the same, a Naive Bayes model counts their evidence twice: it decides well, and
its probabilities are far too sure. They are then replaced by their power P^t, normalised, which
keeps every decision. t is chosen by the exponential mechanism; what a row adds to the quality of a
temperature is how much likelier it makes the row's class than the worst of the temperatures does,
from 0 to 1. So one more record raises each quality by at most one, and a person with up to k of
them by at most k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.central.budget import Budget
from discreet.central.corrections import (
    RESIDUAL_STEPS,
    TEMPERATURES,
    compute_truncated_log_probability,
)
from discreet.central.selection import (
    RowSample,
    compute_subsample_share,
    sample_exponential_mechanism,
    weigh_rows,
)
from discreet.estimation.corrections import AdditiveModel
from discreet.randomness import Random

__all__ = [
    "TemperatureBudget",
    "choose_temperature",
    "compute_temperature_gains",
]

TEMPERATURE_SHARE = Fraction(3, 100)
"""Share of the budget for the choice; 2, 3 and 5 % compared: docs/experiments/central.md."""
MIN_PEOPLE_TIMES_TEMPERATURE_EPSILON = 30
"""Least people * epsilon of the choice, 10 to 50 compared; with fewer, none is made:
docs/experiments/central.md."""
MAX_LOG_GAIN = 2.7
"""Largest gain in the truncated log-probability of a row, in nats: of two classes, where it is
-4 at temperature 1 and -1.31 at .25. Larger ones, of very many classes, are cut here."""
TEMPERATURE_PRIOR_POWER = 2
"""Temperatures t have the weight t^2 beforehand, 1.5 to 3 compared: docs/experiments/central.md."""


@dataclass(frozen=True)
class TemperatureBudget:
    """What the choice costs, and which share of the rows at hand it looks at.

    Parameters
    ----------
    cost : Fraction
        0 if no temperature is chosen.
    row_share : Fraction
    """

    cost: Fraction = Fraction(0)
    row_share: Fraction = Fraction(0)

    @classmethod
    def from_people(cls, budget: Budget, sampled_people: float) -> TemperatureBudget:
        """The budget for that many rows at hand, by what is already private.

        >>> TemperatureBudget.from_people(Budget(1.0), 900)
        TemperatureBudget(cost=Fraction(0, 1), row_share=Fraction(0, 1))
        >>> TemperatureBudget.from_people(Budget(1.0), 5000)
        TemperatureBudget(cost=Fraction(3, 100), row_share=Fraction(1, 1))
        """
        cost = budget.total * TEMPERATURE_SHARE
        epsilon = budget.compute_selection_epsilon(cost)
        if not sampled_people * epsilon >= MIN_PEOPLE_TIMES_TEMPERATURE_EPSILON:
            return cls()
        return cls(cost, compute_subsample_share(epsilon, sampled_people))


def choose_temperature(
    sample: RowSample, model: AdditiveModel, epsilon: Fraction, random: Random
) -> float:
    """Choose how sure the model may be, by the exponential mechanism.

    Parameters
    ----------
    sample : RowSample
        The rows that are looked at.
    model : AdditiveModel
        The model that is released.
    epsilon : Fraction
        Of the exponential mechanism.
    random : Random
    """
    row_gains = compute_temperature_gains(sample.score_rows(model), sample.class_codes)
    gains = weigh_rows(row_gains, sample.weights)
    step_epsilon = epsilon / (RESIDUAL_STEPS * sample.influence.count_sensitivity)
    qualities = [
        int(gain) + round(TEMPERATURE_PRIOR_POWER * math.log(temperature) / step_epsilon)
        for gain, temperature in zip(gains.sum(axis=0), TEMPERATURES, strict=True)
    ]
    return TEMPERATURES[sample_exponential_mechanism(qualities, step_epsilon, random)]


def compute_temperature_gains(scores: Floats, class_codes: Integers) -> Integers:
    """What each row adds to the quality of each temperature, from 0 to 1 in 1/1024.

    Parameters
    ----------
    scores : array of shape (rows, classes)
    class_codes : array of int, (rows,)

    Returns
    -------
    array of int, (rows, temperatures)
    """
    log_probability = np.stack(
        [
            compute_truncated_log_probability(temperature * scores, class_codes)
            for temperature in TEMPERATURES
        ],
        axis=1,
    )
    log_gains = log_probability - log_probability.min(axis=1, keepdims=True)
    row_gains = np.minimum(log_gains / MAX_LOG_GAIN, 1.0)
    return np.asarray(np.floor(RESIDUAL_STEPS * row_gains), dtype=np.int64)
