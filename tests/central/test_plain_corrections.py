"""Corrections are computed the quick way; the plain way gives the same model to the last bit."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from discreet import Categorical, CentralNB, Numeric, Schema
from discreet.central import corrections, histogram
from discreet.central.budget import IntegerNoise
from discreet.central.corrections import CorrectionState, max_rows, sum_rows
from discreet.central.selection import RowSample, count_correct
from discreet.estimation import corrections as steps
from discreet.estimation.corrections import AdditiveModel
from discreet.statistics.scoring import Correction


def score_plainly(sample, model):
    scores = np.tile(np.log(model.prior), (len(sample.class_codes), 1))
    for name, table in model.tables.items():
        scores = scores + table.T[sample.cell_indices[name]]
    for groups, table in model.pairs.items():
        indices, _ = group_plainly(sample, dict(groups))
        scores = scores + np.column_stack([table, np.zeros(len(table))]).T[indices]
    return scores


def group_plainly(sample, groups):
    """Row by row of the cells, and what is ignored at the end."""
    indices, count, ignored = 0, 1, False
    for name, cell_groups in groups.items():
        own = np.array(cell_groups)[sample.cell_indices[name]]
        size = max(cell_groups) + 1
        indices, count, ignored = indices * size + own, count * size, ignored | (own < 0)
    return np.where(ignored, count, indices), count


def residuals_plainly(scores, codes):
    if scores.shape[1] == 2:
        with np.errstate(over="ignore"):
            q = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
        return np.trunc(1024 * (codes - q)[:, None]), np.trunc(1024 * (q * (1 - q)))
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = odds / sum_rows(odds)[:, None]
    left = (codes[:, None] == np.arange(scores.shape[1])) - p
    curved = np.maximum((1 - sum_rows(p * p)) / 4, 0)
    total = np.maximum(sum_rows(np.abs(left)) + curved, 1)
    return np.trunc(1024 * (left / total[:, None])), np.trunc(1024 * (curved / total))


def qualities_plainly(residuals, groupings, price):
    """A table for every pair."""
    qualities = []
    for first, second in combinations(groupings, 2):
        tables = np.zeros((residuals.shape[1], first.padded_count, second.padded_count))
        for table, column in zip(tables, residuals.T, strict=True):
            np.add.at(table, (first.indices, second.indices), column)
        wrong = int(np.abs(tables[:, :-1, :-1]).sum())
        qualities.append(wrong - round(price * first.group_count * second.group_count))
    return qualities


def likely_plainly(scores, codes, *_):
    centred = scores - scores.max(axis=1, keepdims=True)
    log_p = centred[np.arange(len(codes)), codes] - np.log(sum_rows(np.exp(centred)))
    return int(np.floor(1024 * np.clip(1 + np.maximum(log_p, -4) / 4, 0, 1)).sum())


def correct_plainly(state, groups, noise, random):
    """All residuals for every correction, and the scores of rows through their cells."""
    left, curved = residuals_plainly(state.row_scores, state.sample.class_codes)
    indices, count = group_plainly(state.sample, groups)
    sums = np.zeros((left.shape[1] + 1, count + 1))
    for own, values in zip(sums, [*left.T, curved], strict=True):
        np.add.at(own, indices, values)
    noisy = noise.add(sums[:, :count], random) / 1024
    correction = Correction(groups, noisy[:-1], noisy[-1], noise.variance / 1024**2)
    state.model, change = state.model.apply_correction(correction)
    state.corrections += (correction,)
    state.row_scores = state.row_scores + np.column_stack([change, 0 * change[:, :1]]).T[indices]
    state._residuals = None


def smooth_plainly(residuals, curvatures, variances, correlations):
    """One law and class after the other."""
    laws = []
    for std in steps.CHANGE_STDS:
        covariance, changes, gain = std**2 * correlations, np.empty(residuals.shape), 0.0
        for c, (g, h, v) in enumerate(zip(residuals, curvatures, variances, strict=True)):
            root = np.linalg.cholesky(h[:, None] * covariance * h + np.diag(v))
            white = np.linalg.solve(root, g)
            gain -= float(np.log(np.diag(root)).sum() - 0.5 * np.log(v).sum())
            gain -= 0.5 * float(white @ white - (g**2 / v).sum())
            changes[c] = covariance @ (h * np.linalg.solve(root.T, white))
        laws.append((changes, gain))
    return laws


def right_plainly(scores, codes, *_):
    return int((scores.argmax(axis=1) == codes).sum())


def compute_plainly(monkeypatch):
    monkeypatch.setattr(RowSample, "score_rows", score_plainly)
    monkeypatch.setattr(RowSample, "find_group_indices", group_plainly)
    monkeypatch.setattr(CorrectionState, "add_correction", correct_plainly)
    monkeypatch.setattr(corrections, "compute_residuals", residuals_plainly)
    monkeypatch.setattr(corrections, "compute_pair_qualities", qualities_plainly)
    monkeypatch.setattr(corrections, "compute_truncated_log_likelihood", likely_plainly)
    monkeypatch.setattr(steps, "_fit_smooth_changes", smooth_plainly)
    for module in (corrections, histogram):
        monkeypatch.setattr(module, "count_correct", right_plainly)


def people(classes, missing, rows=9000):
    """Rows that are worth correcting: features that say the same, and some values missing."""
    rng = np.random.default_rng(classes)
    y = rng.integers(0, classes, rows)
    common = rng.normal(size=rows) + y
    columns = {f"x{i}": common + rng.normal(size=rows) for i in range(3)}
    columns |= {f"c{i}": ((y + (rng.random(rows) < 0.3)) % 4).astype(object) for i in range(3)}
    if missing:
        for name in ("x0", "c0"):
            columns[name][rng.random(rows) < 0.1] = None
    features = [
        Numeric(name, -4, classes + 4, optional=missing is not None)
        if name[0] == "x"
        else Categorical(name, range(4), optional=missing is not None)
        for name in columns
    ]
    schema = Schema(
        features, "y", range(classes), missing=missing or "skip", outliers="clip", unseen="error"
    )
    return pd.DataFrame(columns), y, schema


@pytest.mark.slow
@pytest.mark.parametrize("missing", [None, "skip", "category"])
@pytest.mark.parametrize("classes", [2, 3, 9])
def test_the_model_is_the_same_to_the_last_bit(monkeypatch, classes, missing):
    X, y, schema = people(classes, missing)
    options = {"schema": schema, "missing": missing or "skip", "random_state": 5}
    quick, quick_sums = fit(monkeypatch, X, y, **options)
    assert any(" and " in charge.name for charge in quick.guarantee_.charges)  # a pair, too
    compute_plainly(monkeypatch)
    plain, plain_sums = fit(monkeypatch, X, y, **options)
    assert quick_sums == plain_sums
    assert quick.statistics_.to_json() == plain.statistics_.to_json()
    assert quick.model_.to_json() == plain.model_.to_json()


def fit(monkeypatch, X, y, **options):
    """A model, and all whole numbers that got noise on the way."""
    sums = []

    def add(noise, numbers, random):
        sums.append(np.asarray(numbers).tolist())
        return real(noise, numbers, random)

    real = IntegerNoise.add
    with monkeypatch.context() as patch:
        patch.setattr(IntegerNoise, "add", add)
        return CentralNB(60.0, **options).fit(X, y), sums


@pytest.mark.parametrize("classes", [2, 3, 17])
def test_the_largest_of_a_row_and_how_many_are_right(classes):
    rng = np.random.default_rng(classes)
    scores = rng.integers(0, 3, (500, classes)).astype(float)  # many are level
    codes = rng.integers(0, classes, 500)
    np.testing.assert_array_equal(max_rows(scores), scores.max(axis=1))
    assert count_correct(scores, codes) == right_plainly(scores, codes)


def test_a_step_is_the_same_for_each_prior_deviation_alone(monkeypatch):
    """All of them at once give the bits that each of them gives."""
    rng = np.random.default_rng(0)
    residuals, scores = rng.normal(0, 30, (3, 12)), rng.normal(size=(3, 12))
    correction = Correction({"a": tuple(range(12))}, residuals, rng.uniform(5, 90, 12), 4.0)
    model = AdditiveModel(np.array([0.2, 0.3, 0.5]), {"a": scores}, {"a": 10})
    quick = model.apply_correction(correction)[1]
    monkeypatch.setattr(steps, "_fit_smooth_changes", smooth_plainly)
    assert quick.tobytes() == model.apply_correction(correction)[1].tobytes()
