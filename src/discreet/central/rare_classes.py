"""Two classes of which one is rare: what is chosen then, and by which quality.

Where one class has a few people in a hundred, nearly every rule is right for as many rows as "never
that class" is. So the number of rows that are right chooses at random, and how rows are ranked by
the probability of the rare class suffers. The class counts, which are released first, say so. Then

1. all features are used: a choice between them would be such a choice;
2. corrections need as many people of the rare class as of each of two equal ones;
3. how much the evidence counts next to the class shares is chosen by how probable the rows' classes
   become. It changes how sure the model is, and not how it ranks rows.

The quality of a candidate is how much likelier it makes each row's class than the worst of the
candidates does, from 0 to 1 a row. So one more record raises each quality by at most one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.central.corrections import RESIDUAL_STEPS, compute_log_probability
from discreet.central.selection import RowSample, sample_exponential_mechanism, weigh_rows
from discreet.estimation.corrections import AdditiveModel
from discreet.estimation.log_ratios import LogRatios
from discreet.randomness import Random
from discreet.statistics.scoring import Scoring

__all__ = [
    "EVIDENCE_SHARE",
    "LikelihoodChoice",
    "build_evidence_candidates",
    "compute_balance",
    "compute_class_gains",
    "is_surely_rare",
]

RARE_SHARE = 0.2
"""A class is rare if it has less than this share of the people; .15 compared:
docs/experiments/central.md, "Rare classes"."""
SURE_DEVIATIONS = 2.0
"""Standard deviations of its noise by which a count must be below that share."""
EVIDENCE_SHARE = Fraction(6, 100)
"""Share of the budget for the choice of the evidence's weight; 4 to 8 % compared:
docs/experiments/central.md, "Rare classes"."""
EVIDENCE_WEIGHTS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05)
"""Weights of the evidence that are candidates."""
MAX_LOSS_TO_SHARE = 3.0
"""The log-probability of a row's class is truncated at this many nats below that of the class's
share; 1 to 4 compared: docs/experiments/central.md, "Rare classes"."""
MAX_CLASS_GAIN = 2.0
"""Largest gain of a row over the worst candidate, in nats; larger ones are cut here. 1 to 3
compared: docs/experiments/central.md, "Rare classes"."""


def is_surely_rare(class_counts: Floats, noise_std: float) -> bool:
    """Whether one of two classes is surely rare, by noisy counts.

    Parameters
    ----------
    class_counts : array of shape (classes,)
    noise_std : float
        Standard deviation of the noise of each.

    >>> [is_surely_rare(np.array([n, 5000.0]), 35.0) for n in (100.0, 1000.0, 2000.0)]
    [True, True, False]
    """
    cautious_count = float(class_counts.min()) + SURE_DEVIATIONS * noise_std
    return len(class_counts) == 2 and cautious_count < RARE_SHARE * float(class_counts.sum())


def compute_balance(class_counts: Floats) -> float:
    """How much two classes of these sizes tell, next to two equal ones: 4 p (1 - p).

    Parameters
    ----------
    class_counts : array of shape (classes,)
        Noisy.

    >>> round(compute_balance(np.array([10.0, 90.0])), 3)
    0.36
    """
    rare_share = max(float(class_counts.min()), 0.0) / float(class_counts.sum())
    return 4 * rare_share * (1 - rare_share)


def build_evidence_candidates(ratios: LogRatios) -> dict[Scoring, AdditiveModel]:
    """The default scoring of all features, with its evidence toned down more and more.

    Parameters
    ----------
    ratios : LogRatios
        Of the tables that were released.
    """
    scorings = [replace(ratios.statistics.scoring, beta=weight) for weight in EVIDENCE_WEIGHTS]
    return {scoring: ratios.build_model(scoring) for scoring in scorings}


@dataclass(frozen=True, eq=False)
class LikelihoodChoice:
    """Chooses the candidate under which the rows' classes are most probable.

    Parameters
    ----------
    log_prior : array of shape (classes,)
        Logarithms of the class shares.
    """

    log_prior: Floats

    def __call__(
        self,
        scorings: Sequence[Scoring],
        candidate_scores: Sequence[Floats],
        sample: RowSample,
        epsilon: Fraction | float,
        random: Random,
    ) -> int:
        """Choose by the exponential mechanism; evidence of the weight w has 1/w beforehand.

        Parameters
        ----------
        scorings : sequence of Scoring
            Of the candidates.
        candidate_scores : sequence of arrays of shape (rows, classes)
        sample : RowSample
            The rows that were scored.
        epsilon : Fraction or float
            What the choice costs a person.
        random : Random
        """
        row_gains = compute_class_gains(candidate_scores, sample.class_codes, self.log_prior)
        gains = weigh_rows(row_gains, sample.weights).sum(axis=0)
        step_epsilon = epsilon / (RESIDUAL_STEPS * sample.influence.count_sensitivity)
        qualities = [
            int(gain) - round(math.log(scoring.beta) / step_epsilon)
            for gain, scoring in zip(gains, scorings, strict=True)
        ]
        return sample_exponential_mechanism(qualities, step_epsilon, random)


def compute_class_gains(
    candidate_scores: Sequence[Floats], class_codes: Integers, log_prior: Floats
) -> Integers:
    """What each row adds to the quality of each candidate, from 0 to 1 in 1/1024.

    Parameters
    ----------
    candidate_scores : sequence of arrays of shape (rows, classes)
    class_codes : array of int, (rows,)
    log_prior : array of shape (classes,)
        Logarithms of the class shares.

    Returns
    -------
    array of int, (rows, candidates)
    """
    least_log_probability = (log_prior - MAX_LOSS_TO_SHARE)[class_codes]
    log_probability = np.stack(
        [
            np.maximum(compute_log_probability(row_scores, class_codes), least_log_probability)
            for row_scores in candidate_scores
        ],
        axis=1,
    )
    log_gains = log_probability - log_probability.min(axis=1, keepdims=True)
    row_gains = np.minimum(log_gains / MAX_CLASS_GAIN, 1.0)
    return np.asarray(np.floor(RESIDUAL_STEPS * row_gains), dtype=np.int64)
