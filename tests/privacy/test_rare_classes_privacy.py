"""What is chosen for a rare class keeps its promise, exactly: what a row moves, what is charged.

The transcripts of test_central_privacy.py, with class counts of which one is surely rare.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from central_transcripts import EPSILON, RECORDS, SCHEMA, cost, scores_of, transcript_of, worst
from scipy.special import log_softmax

from discreet.central import histogram, rare_classes
from discreet.central.corrections import RESIDUAL_STEPS
from discreet.central.rare_classes import EVIDENCE_SHARE, EVIDENCE_WEIGHTS, compute_class_gains

RARE = {"first": (7_700, 300)}
NAME = "choice of scoring"
BASES = [[], RECORDS[:1], RECORDS[3:9], RECORDS[:5] * 3]
LOG_PRIOR = np.log([0.97, 0.03])


def weigh(scores: np.ndarray, log_prior: np.ndarray) -> list[np.ndarray]:
    return [log_prior + weight * scores for weight in EVIDENCE_WEIGHTS]


def compute_uncut_gains(candidate_scores, class_codes, log_prior, floor=None):
    """Known bad: log-probabilities as they are, of which a row may move any amount."""
    rows = np.arange(len(class_codes))
    log_probability = np.stack(
        [log_softmax(scores, axis=1)[rows, class_codes] for scores in candidate_scores], axis=1
    )
    if floor is not None:
        log_probability = np.maximum(log_probability, (log_prior - floor)[class_codes][:, None])
    gains = log_probability - log_probability.min(axis=1, keepdims=True)
    return np.floor(RESIDUAL_STEPS * gains / rare_classes.MAX_CLASS_GAIN).astype(np.int64)


def find_largest_gain(compute_gains) -> int:
    scores = scores_of(2)
    gains = [
        compute_gains(weigh(scores, LOG_PRIOR), np.full(len(scores), code), LOG_PRIOR)
        for code in (0, 1)
    ]
    assert min(int(class_gains.min()) for class_gains in gains) == 0
    return max(int(class_gains.max()) for class_gains in gains)


def test_a_row_raises_the_quality_of_a_candidate_by_at_most_one():
    assert find_largest_gain(compute_class_gains) == RESIDUAL_STEPS
    assert find_largest_gain(compute_uncut_gains) > 10 * RESIDUAL_STEPS
    # truncation without the cut is not enough
    floored = partial(compute_uncut_gains, floor=rare_classes.MAX_LOSS_TO_SHARE)
    assert find_largest_gain(floored) > RESIDUAL_STEPS


def list_choice(trained, given):
    """The step of the choice and its charge; no features are chosen before it."""
    charges = {charge.name: Fraction(charge.epsilon) for charge in trained.model.guarantee.charges}
    assert [name for name in charges if "choice" in name] == [NAME]
    return given[-1:], charges[NAME]


def find_excess(monkeypatch, bases=BASES, **options) -> float:
    """The largest cost of the choice as a multiple of what was charged for it."""
    largest = 0.0
    for base in bases:
        given, _, trained = transcript_of(monkeypatch, base, "histogram", **RARE, **options)
        choice, charge = list_choice(trained, given)
        assert charge <= Fraction(EPSILON) * EVIDENCE_SHARE
        for record in RECORDS:
            more, *_ = transcript_of(monkeypatch, [*base, record], "histogram", **RARE, **options)
            largest = max(largest, float(cost(choice, more[-1:]) / charge))
    return largest


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["skip", "category"])
def test_the_weight_of_evidence_costs_at_most_its_charge(monkeypatch, missing):
    schema = replace(SCHEMA, missing=missing)
    assert 0 < find_excess(monkeypatch, schema=schema, corrections=False) <= 1 + 1e-9
    found = worst(monkeypatch, "histogram", BASES, schema=schema, corrections=False, **RARE)
    assert Fraction(EPSILON) / 3 < found <= Fraction(EPSILON)


@pytest.mark.slow
def test_with_corrections_everything_costs_at_most_epsilon(monkeypatch):
    plenty = {"first": (77_000, 3_000)}
    *_, trained = transcript_of(monkeypatch, RECORDS, "histogram", **plenty)
    names = [charge.name for charge in trained.model.guarantee.charges]
    assert {"choice of start", NAME} <= {*names}
    assert "choice of temperature" not in names
    found = worst(monkeypatch, "histogram", BASES[1:3], **plenty)
    assert Fraction(EPSILON) / 3 < found <= Fraction(EPSILON)


def separate(candidate_scores, class_codes, log_prior, compute_gains=compute_class_gains):
    """The same of scores that are so far apart that truncation matters."""
    return compute_gains([40 * scores for scores in candidate_scores], class_codes, log_prior)


@pytest.mark.slow
def test_of_sure_models_the_choice_costs_at_most_its_charge(monkeypatch):
    monkeypatch.setattr(rare_classes, "compute_class_gains", separate)
    assert 0.6 < find_excess(monkeypatch, corrections=False) <= 1 + 1e-9


@pytest.mark.slow
def test_twin_a_quality_that_is_not_cut(monkeypatch):
    uncut = partial(separate, compute_gains=compute_uncut_gains)
    monkeypatch.setattr(rare_classes, "compute_class_gains", uncut)
    assert find_excess(monkeypatch, corrections=False) > 1


@pytest.mark.slow
def test_twin_rows_that_count_threefold(monkeypatch):
    monkeypatch.setattr(rare_classes, "compute_class_gains", lambda *given: 3 * separate(*given))
    assert find_excess(monkeypatch, corrections=False) > 1


def list_kinds(monkeypatch, first) -> set[tuple[object, ...]]:
    """All steps with their noise, and what is charged for the choice: of unlike tables."""
    kinds = set()
    for records in ([], RECORDS[:1], RECORDS * 9, [RECORDS[0]] * 4000):
        given, _, trained = transcript_of(
            monkeypatch, records, "histogram", first=first, corrections=False
        )
        (charge,) = (c.epsilon for c in trained.model.guarantee.charges if c.name == NAME)
        kinds.add((*((kind, noise) for kind, noise, _ in given), round(charge / EPSILON, 3)))
    return kinds


def test_whether_a_class_is_rare_follows_from_noisy_counts_alone(monkeypatch):
    for first, share in ((RARE["first"], 0.06), ((4_000, 4_000), 0.05)):
        (kind,) = list_kinds(monkeypatch, first)
        assert kind[-1] == share


def test_twin_rare_by_the_exact_counts(monkeypatch):
    real = histogram._plan_scoring

    def plan(source, budget, settings, class_counts, *rest):
        exact = replace(class_counts, counts=source.count_classes().astype(float))
        return real(source, budget, settings, exact, *rest)

    monkeypatch.setattr(histogram, "_plan_scoring", plan)
    assert len(list_kinds(monkeypatch, (4_000, 4_000))) > 1
