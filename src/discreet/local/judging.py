"""Judging waves: each person says by one randomized bit whether a candidate model is right.

Noisy tables do not show how much features repeat one another, so a model made from them may be too
sure. People can tell: a later wave carries candidate models that follow from the earlier tallies;
chance assigns one to each person, whose device compares its decision with the person's class and
reports right or wrong by randomized response with the whole epsilon. The shares of right decisions
choose the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from discreet.collection.tally import Tally
from discreet.errors import EstimationError
from discreet.estimation.candidates import choose_candidate, list_candidate_scorings, make_candidate
from discreet.estimation.from_statistics import estimate_scorings
from discreet.local.plan import Plan, Question
from discreet.local.planning import compute_shuffled_local_epsilon
from discreet.local.question import VERDICTS
from discreet.mechanisms.frequency import DE, FrequencyOracle
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.shuffling import Shuffle
from discreet.statistics.candidate import CandidateModel
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Statistics

__all__ = [
    "apply_verdicts",
    "compute_judges",
    "list_judged_scorings",
    "make_candidates",
    "make_judging_questions",
]

EVIDENCE_WEIGHTS = (0.5, 0.35)
"""Weights of all evidence that are judged besides 1; .15 to .85 compared: docs/experiments/
local.md, "Judging"."""
FEATURE_SET_SIZES = (1, 2, 4, 8)
"""Sizes of the sets of best features that are judged; compared in the same place."""
MAX_JUDGED_MODELS = 1 + len(EVIDENCE_WEIGHTS) + len(FEATURE_SET_SIZES)
"""Most candidates of a judging wave."""
MIN_LEAD_DEVIATIONS = 0.5
"""Standard deviations by which a candidate must lead the default; 0, .5, 1 and 2 compared there."""
JUDGES_SHARE = 0.2
"""Share of all respondents who judge."""
MAX_VERDICT_ERROR = 0.025
"""Largest standard error of a candidate's share of right decisions at which judging pays:
docs/experiments/local.md, "Judging"."""
MAX_SCORE_DIFFERENCE = 2
"""Largest difference of a whole score that another machine's rounding may make."""


def compute_judges(respondents: int, epsilon: float, delta: float | None = None) -> int:
    """Compute how many of all respondents should judge: a fifth, or none where it does not pay.

    It pays where the share of right decisions of each candidate becomes known well enough:
    sqrt(1/4 / (p - q)^2 / n), with p and q of randomized response and n people per candidate.

    Parameters
    ----------
    respondents : int
        Of all waves together.
    epsilon : float
        Total per person.
    delta : float, optional
        Of shuffled reports: their own epsilon is the one that the shuffle of the judges allows.

    Examples
    --------
    >>> compute_judges(100_000, 1.0), compute_judges(20_000, 1.0), compute_judges(20_000, 4.0)
    (20000, 0, 4000)
    """
    judges = int(JUDGES_SHARE * respondents)
    if judges < MAX_JUDGED_MODELS or not math.isfinite(epsilon):
        return 0
    local_epsilon = epsilon
    if delta is not None:
        local_epsilon = compute_shuffled_local_epsilon(Shuffle(epsilon, delta, judges))
    verdict_error = 0.5 / math.tanh(local_epsilon / 2) / math.sqrt(judges / MAX_JUDGED_MODELS)
    return judges if verdict_error <= MAX_VERDICT_ERROR else 0


def list_judged_scorings(statistics: Statistics) -> tuple[Scoring, ...]:
    """List the scorings whose models are judged, the default of the statistics first."""
    return list_candidate_scorings(
        statistics,
        MAX_JUDGED_MODELS,
        evidence_weights=EVIDENCE_WEIGHTS,
        feature_set_sizes=FEATURE_SET_SIZES,
    )


def make_candidates(
    statistics: Statistics, scorings: Sequence[Scoring] | None = None
) -> list[CandidateModel]:
    """Make the candidate models of the earlier waves' statistics.

    Parameters
    ----------
    statistics : Statistics
    scorings : sequence of Scoring, optional
        Those that are judged, if not given.
    """
    judged_scorings = list_judged_scorings(statistics) if scorings is None else scorings
    return [make_candidate(model) for model in estimate_scorings(statistics, judged_scorings)]


def make_judging_questions(candidates: Sequence[CandidateModel], epsilon: float) -> list[Question]:
    """Make one question for each candidate model, all asked equally often.

    Parameters
    ----------
    candidates : sequence of CandidateModel
    epsilon : float
        Of one report.
    """
    return [
        Question(tuple(candidate.tables), DE(epsilon, VERDICTS), 1, candidate=candidate)
        for candidate in candidates
    ]


def apply_verdicts(
    statistics: Statistics, tally: Tally[Plan], guarantee: Guarantee | None = None
) -> Statistics:
    """Set the scoring of the earlier waves' statistics to that of the candidate judged best.

    Parameters
    ----------
    statistics : Statistics
        Of the earlier waves together, from which the candidates of the plan follow.
    tally : Tally
        Of the judging wave.
    guarantee : Guarantee, optional
        That of the judging wave; by default that of its plan, for the number of people counted.
    """
    plan = tally.collection
    judging_guarantee = guarantee or plan.make_guarantee(tally.smallest_shuffle_size)
    scorings = list_judged_scorings(statistics)
    if not _are_alike(
        [question.candidate for question in plan.questions], make_candidates(statistics, scorings)
    ):
        raise EstimationError(
            "the judged models do not follow from these earlier waves; give the tallies that the "
            "plan of the judging wave was made after, and leave out --postprocess"
        )
    return replace(
        statistics,
        scoring=scorings[_choose_by_verdicts(tally)],
        guarantee=statistics.guarantee.compose_parallel(
            judging_guarantee.void_if(simulated=tally.simulated).include_schema(plan.schema)
        ),
    )


def _are_alike(
    judged_models: Sequence[CandidateModel | None], expected_models: Sequence[CandidateModel]
) -> bool:
    """Whether these are the same models, but for the rounding of another machine."""
    return all(
        judged is not None
        and expected is not None
        and judged.tables.keys() == expected.tables.keys()
        and all(
            np.abs(judged_scores - expected_scores).max() <= MAX_SCORE_DIFFERENCE
            for judged_scores, expected_scores in (
                (judged.offsets, expected.offsets),
                *((judged.tables[name], expected.tables[name]) for name in judged.tables),
            )
        )
        for judged, expected in zip_longest(judged_models, expected_models)
    )


def _choose_by_verdicts(tally: Tally[Plan]) -> int:
    """Choose the candidate that is surely ahead of the default; of 0 if none is."""
    right_shares, variances = [], []
    for question, judges, sums in zip(
        tally.collection.questions, tally.counted.tolist(), tally.sums, strict=True
    ):
        oracle = question.mechanism
        assert isinstance(oracle, FrequencyOracle)
        if judges == 0:  # nothing is known of it
            right_shares.append(0.0)
            variances.append(math.inf)
            continue
        shares = oracle.estimate(sums, judges) / judges
        noise_variances = oracle.compute_sum_variances(np.arange(VERDICTS), shares)
        right_share = float(np.clip(shares[1], 0.0, 1.0))
        right_shares.append(float(shares[1]))
        variances.append((float(noise_variances[1]) + right_share * (1 - right_share)) / judges)
    excess_shares, excess_variances = np.array(right_shares), np.array(variances)
    return choose_candidate(
        excess_shares - excess_shares[0],
        excess_variances + excess_variances[0],
        MIN_LEAD_DEVIATIONS,
    )
