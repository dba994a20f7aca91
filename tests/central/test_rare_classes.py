"""A rare class: when it is one, what is chosen then, and that it is ranked as well as without."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from discreet import Categorical, CentralNB, Schema, SeededRandom
from discreet.central.rare_classes import (
    EVIDENCE_WEIGHTS,
    LikelihoodChoice,
    compute_balance,
    compute_class_gains,
    is_surely_rare,
)
from discreet.central.selection import RowSample
from discreet.statistics.scoring import Scoring

FEATURES = 30
SCHEMA = Schema(
    [Categorical(f"x{i}", ["no", "yes"], optional=False) for i in range(FEATURES)],
    "y",
    ["common", "rare"],
)


def draw_people(rows: int, share: float, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Every feature says a little about the class, and each five of them say the same."""
    rng = np.random.default_rng(seed)
    is_rare = rng.random(rows) < share
    signals = rng.random((rows, FEATURES // 5)) < np.where(is_rare, 0.6, 0.3)[:, None]
    cells = np.repeat(signals, 5, axis=1) ^ (rng.random((rows, FEATURES)) < 0.1)
    columns = {f"x{i}": np.where(cells[:, i], "yes", "no") for i in range(FEATURES)}
    return pd.DataFrame(columns), np.where(is_rare, "rare", "common")


def fit(X, y, seed: int = 0, epsilon: float = 1.0, **options) -> CentralNB:
    return CentralNB(epsilon, schema=SCHEMA, random_state=seed, **options).fit(X, y)


@pytest.mark.parametrize(
    ("counts", "noise_std", "is_rare"),
    [
        ([50.0, 950.0], 35.0, True),
        ([950.0, 50.0], 35.0, True),
        ([150.0, 850.0], 35.0, False),  # not surely
        ([199.0, 801.0], 0.0, True),
        ([200.0, 800.0], 0.0, False),
        ([-40.0, 900.0], 35.0, True),
        ([-40.0, 20.0], 35.0, False),  # hardly anybody is there
        ([0.0, 0.0], 0.0, False),
        ([10.0, 500.0, 490.0], 1.0, False),  # of two classes only
        ([500.0], 0.0, False),
    ],
)
def test_a_class_is_rare_where_its_noisy_count_surely_says_so(counts, noise_std, is_rare):
    assert is_surely_rare(np.array(counts), noise_std) == is_rare


def test_two_classes_tell_less_the_less_even_they_are():
    assert compute_balance(np.array([500.0, 500.0])) == 1
    assert compute_balance(np.array([-3.0, 500.0])) == 0
    balances = [compute_balance(np.array([n, 1000.0 - n])) for n in (10, 100, 200, 400)]
    assert balances == sorted(balances)


@pytest.mark.slow
def test_all_features_are_used_and_only_the_weight_of_evidence_is_chosen():
    nb = fit(*draw_people(3000, 0.03, 0))
    names = [charge.name for charge in nb.guarantee_.charges]
    assert [name for name in names if "choice" in name] == ["choice of scoring"]
    assert sum(name.startswith("table of") for name in names) == FEATURES
    assert nb.statistics_.scoring.beta in EVIDENCE_WEIGHTS
    assert nb.statistics_.scoring.features is None
    assert sum(Fraction(charge.epsilon) for charge in nb.guarantee_.charges) <= 1
    with_delta = fit(*draw_people(3000, 0.03, 0), delta=1e-6)
    assert with_delta.guarantee_.delta <= 1e-6
    assert with_delta.statistics_.scoring.features is None


def test_of_classes_that_are_not_rare_nothing_changes():
    names = [charge.name for charge in fit(*draw_people(1000, 0.4, 0)).guarantee_.charges]
    assert any(name.startswith("choice of feature") for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, 0.1])
def test_a_rare_class_is_ranked_as_without_any_choice_and_is_not_believed_too_much(share):
    """Over eight tables; by the number of rows that are right the choice would be by chance."""
    auc, losses = [], []
    others, truth = draw_people(4000, share, 99)
    for seed in range(8):
        X, y = draw_people(4000, share, seed)
        proba = [
            fit(X, y, seed, **options).predict_proba(others)[:, 1]
            for options in ({}, {"selection": False})
        ]
        auc.append([roc_auc_score(truth == "rare", one) for one in proba])
        losses.append([log_loss(truth == "rare", one) for one in proba])
    default, every = np.mean(auc, axis=0)
    assert every > 0.65
    assert default > every - 0.03
    default_loss, every_loss = np.mean(losses, axis=0)
    assert default_loss < every_loss
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert default_loss < 1.1 * entropy


def test_the_likeliest_candidate_is_chosen_and_a_light_one_is_preferred_without_rows():
    rng, log_prior = np.random.default_rng(0), np.log([0.9, 0.1])
    codes = (rng.random(4000) < 0.1).astype(int)
    evidence = np.column_stack([np.zeros(4000), np.where(codes == 1, 2.0, -0.5)])
    scorings = [Scoring("log-ratios", beta=weight) for weight in EVIDENCE_WEIGHTS]
    choose = LikelihoodChoice(log_prior)

    def weigh(sign: float, rows: slice) -> int:
        scores = [log_prior + sign * weight * evidence[rows] for weight in EVIDENCE_WEIGHTS]
        sample = RowSample({}, codes[rows])
        return choose(scorings, scores, sample, Fraction(1, 3), SeededRandom(0))

    assert weigh(1.0, slice(None)) == 0
    assert weigh(-1.0, slice(None)) == len(EVIDENCE_WEIGHTS) - 1
    nobody = slice(0, 0)
    assert compute_class_gains([evidence[nobody]] * 2, codes[nobody], log_prior).shape == (0, 2)


@pytest.mark.slow
def test_with_people_enough_the_model_is_corrected():
    X, y = draw_people(30_000, 0.1, 0)
    nb = fit(X, y, epsilon=5.0)
    names = [charge.name for charge in nb.guarantee_.charges]
    assert "choice of start" in names
    assert "choice of temperature" not in names
    assert sum(Fraction(charge.epsilon) for charge in nb.guarantee_.charges) <= 5
