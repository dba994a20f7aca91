"""Whole sheets say more than their tables, and are believed only as far as they agree with them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from discreet import EstimationError, FormatError, estimate
from discreet.collection.simulation import simulate_tally
from discreet.collection.tally import Tally
from discreet.mechanisms.laws import AnswerLaw as PublicLaw
from discreet.randomness import SeededRandom
from discreet.statistics.statistics import Statistics
from discreet.survey import whole_sheet_em
from discreet.survey.inversion import estimate_statistics
from discreet.survey.questionnaire import PersonalLaw, Questionnaire
from discreet.survey.whole_sheet_em import (
    NaiveBayesLaw,
    PseudoCountSelection,
    WholeSheetEM,
    encode_sheets,
)
from schemas import make_answer_schema

FEATURES = 9
SCHEMA = make_answer_schema([f"x{j}" for j in range(FEATURES)], [0, 1], "y", [0, 1])
SOME = np.array([0.05, 0.7])
"""P(yes | class) of every feature where they depend on the class."""


def people(count, seed, rates=SOME, share=0.35):
    rng = np.random.default_rng(seed)
    y = (rng.random(count) < share).astype(int)
    X = (rng.random((count, FEATURES)) < rates[y][:, None]).astype(int)
    return np.column_stack([X, y])


def collected(theta, seed, count=600, **more):
    survey = Questionnaire.from_schema(SCHEMA, theta)
    return estimate_statistics(
        simulate_tally(survey, people(count, seed, **more), SeededRandom(seed))
    )


def accuracy(statistics, seed=999):
    truth = people(4000, seed)
    rows = {f"x{j}": truth[:, j] for j in range(FEATURES)}
    found = estimate(statistics).predict_joint_log_proba(rows).argmax(axis=1)
    return float((found == truth[:, -1]).mean())


@pytest.mark.slow
def test_true_sheets_are_told_from_drawn_ones_where_tables_cannot():
    """At theta 0.1 the tables of 600 people are mostly noise; together the answers are not."""
    gains, ours = [], []
    for seed in range(4):
        statistics = collected(0.1, seed)
        ours.append(accuracy(statistics))
        gains.append(ours[-1] - accuracy(replace(statistics, likeliest=None)))
    assert np.mean(ours) > 0.92
    assert np.mean(gains) > 0.04


@pytest.mark.slow
def test_where_nothing_depends_on_the_class_the_tables_are_left_alone():
    weights = [
        collected(0.2, seed, rates=np.array([0.3, 0.3])).likeliest.weight for seed in range(4)
    ]
    assert np.mean(weights) < 0.25
    assert collected(0.2, 0).likeliest.weight > 0.8  # the twin: everything depends on it


def test_true_answers_that_are_not_independent_weigh_less():
    """Copies of one answer: the Naive Bayes law cannot be right, and the unbiased tables show it.

    The known-bad twin gives the answers their independence back.
    """
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.5).astype(int)
    answer = (rng.random(4000) < np.where(y == 1, 0.65, 0.5)).astype(int)
    copies = np.column_stack([*[answer] * FEATURES, y])
    independent = people(4000, 0, np.array([0.5, 0.65]), 0.5)
    survey, found = Questionnaire.from_schema(SCHEMA, 0.5), []
    for truth in (copies, independent):
        found.append(
            estimate_statistics(simulate_tally(survey, truth, SeededRandom(1))).likeliest.weight
        )
    assert found[0] < 0.7 < found[1]


def test_each_step_makes_the_sheets_likelier():
    """EM with a public law that is not uniform; the pull's own prior is part of what is climbed."""
    laws = [PersonalLaw(("x0", "y"), (1, 2, 3, 4)), PersonalLaw(("x1",), (5, 1))]
    survey = Questionnaire.from_schema(SCHEMA, 0.3, laws=laws)
    truth = people(500, 3)
    tally = simulate_tally(survey, truth, SeededRandom(3))
    start = NaiveBayesLaw(np.array([0.5, 0.5]), np.full((2, 2 * FEATURES), 0.5))
    em = WholeSheetEM(0.3, np.full(FEATURES, 2))
    sheets = encode_sheets(survey, 0.3, *tally.get_distinct_answers())
    reached, law = [], start
    for _ in range(12):
        reached.append(em.compute_log_likelihood(sheets, law))
        law = em.run_em(sheets, 1e-9, law, 1)
    # one person is added to every class and cell, so the ascent may end a little lower
    assert all(b > a - 0.5 for a, b in pairwise(reached))
    assert reached[-1] > reached[0] + 20


def test_the_law_of_drawn_sheets_is_the_public_one():
    laws = [PersonalLaw(("x0", "y"), (1, 2, 3, 4)), PersonalLaw(("x1",), (5, 1))]
    survey = Questionnaire.from_schema(SCHEMA, 0.3, laws=laws)
    tally = simulate_tally(survey, people(200, 4), SeededRandom(4))
    rows, times = tally.get_distinct_answers()
    (channel,) = survey.channels
    wanted = [
        np.log(0.7 * float(channel.compute_personal_probability(row.tolist()))) for row in rows
    ]
    sheets = encode_sheets(survey, 0.3, rows, times)
    assert sheets.log_decoy == pytest.approx(np.array(wanted), rel=1e-9)
    cells = sheets.cell_indicators.toarray().reshape(len(rows), 2, FEATURES, 2)
    for row, code, sheet_cells in zip(rows, sheets.class_codes, cells, strict=True):
        assert code == row[-1]
        assert np.array_equal(sheet_cells[code], np.eye(2)[row[:-1]])
        assert not sheet_cells[1 - code].any()
    assert (
        PublicLaw((0,), (1, 0)).min_probability == 0
    )  # a law may hold zeros: then a sheet is surely true


def test_pseudo_counts_weigh_by_the_likelihood_of_sheets_left_out():
    """Log-probabilities are averaged, and dependence is believed as far as it gains."""
    law = NaiveBayesLaw(np.array([0.5, 0.5]), np.full((2, 2), 0.5))
    selection = PseudoCountSelection([law] * 6, np.array([-9.0, -2.0, -1.0, -1.0, -20.0, -7.0]))
    weights = selection.compute_weights()
    assert weights.sum() == pytest.approx(1)
    assert weights[1] / weights[2] == pytest.approx(np.exp(-1))
    assert weights[[0, 4, 5]].tolist() == [0, 0, 0]  # below a hundredth of the largest
    assert selection.compute_dependence_belief() == 0.5  # a gain of 6
    gain = replace(selection, log_likelihoods=selection.log_likelihoods + np.eye(6)[5])
    assert gain.compute_dependence_belief() == pytest.approx(1 / (1 + np.e))

    class Steps:
        """EM that ends at once, with the starting law of the pseudo-count."""

        normalize_features = WholeSheetEM(0.5, np.array([2])).normalize_features

        def run_em(self, sheets, pseudo_count, law):
            return law

    one, other = (NaiveBayesLaw(np.array([p, 1 - p]), np.array([[p, 1 - p]])) for p in (0.5, 0.9))
    even = PseudoCountSelection([one, other, *[law] * 4], np.array([-3.0, -3.0, *[-np.inf] * 4]))
    averaged = even.fit_averaged_law(Steps(), None)
    wanted = np.sqrt([0.45, 0.05]) / np.sqrt([0.45, 0.05]).sum()
    assert averaged.shares == pytest.approx(wanted)
    assert averaged.tables[0] == pytest.approx(wanted)


def test_tables_are_drawn_to_the_margin_of_their_feature():
    em = WholeSheetEM(0.5, np.array([2, 3]))
    counts = np.array([[4.0, 0, 1, 2, 1], [1, 1, 0, 0, 2]])
    margin = np.array([6 / 8, 2 / 8, 2 / 9, 3 / 9, 4 / 9])
    totals = np.array([4.0, 2.0])
    assert em.normalize_features(counts.sum(axis=0) + 1) == pytest.approx(margin)
    assert em._shrink_to_margin(counts, totals, np.inf) == pytest.approx(np.array([margin] * 2))
    wanted = (counts + 3 * margin) / (totals[:, None] + 3)
    assert em._shrink_to_margin(counts, totals, 3.0) == pytest.approx(wanted)


def test_many_sheets_are_thinned_evenly(monkeypatch):
    """A sheet that many people sent is taken as often as it was sent."""
    times = np.array([1, 90, 9])
    for people, sheets in ((20, [0, 18, 2]), (200, [1, 90, 9])):
        chosen = whole_sheet_em._sample_respondents(times, people)
        assert np.bincount(chosen, minlength=3).tolist() == sheets
    rows = np.eye(3, dtype=int)
    assert whole_sheet_em._thin_sheets(rows, times) == (rows, times)  # three different ones are few
    monkeypatch.setattr(whole_sheet_em, "MAX_FITTED_RESPONDENTS", 2)
    taken, counts = whole_sheet_em._thin_sheets(rows, times)
    assert (taken.tolist(), counts.tolist()) == ([[0, 1, 0]], [2])
    monkeypatch.setattr(whole_sheet_em, "MAX_FITTED_RESPONDENTS", 300)
    monkeypatch.setattr(whole_sheet_em, "SELECTION_RESPONDENTS", 300)
    assert accuracy(collected(0.5, 0, count=3000)) > 0.97


def test_only_sheets_that_are_true_or_drawn_as_a_whole():
    truth = people(300, 0)
    for survey in (
        Questionnaire.from_schema(
            SCHEMA, 0.6, [["x0", "y"], [f"x{j}" for j in range(1, FEATURES)]]
        ),
        Questionnaire.from_schema(SCHEMA, 0.7, model="related"),
        Questionnaire.from_schema(SCHEMA, 1),
    ):
        assert estimate_statistics(simulate_tally(survey, truth, SeededRandom(0))).likeliest is None
    few = Questionnaire.from_schema(SCHEMA, 0.5)
    assert estimate_statistics(simulate_tally(few, truth[:5], SeededRandom(0))).likeliest is None


def test_it_travels_and_the_published_way_does_without_it():
    statistics = collected(0.2, 1)
    back = Statistics.from_json(statistics.to_json())
    assert back.likeliest.weight == statistics.likeliest.weight
    for one, other in zip(estimate(back).factors, estimate(statistics).factors, strict=True):
        assert np.array_equal(one.log_probability, other.log_probability)
    without = replace(statistics, likeliest=None)
    for how in ("none", "paper", "norm-sub"):
        one, other = estimate(statistics, how), estimate(without, how)
        assert np.array_equal(one.log_prior, other.log_prior)
        assert np.array_equal(one.factors[0].log_probability, other.factors[0].log_probability)
    assert (statistics + statistics).likeliest is None


def test_a_given_prior_stays_as_given():
    model = estimate(collected(0.2, 1), prior=np.array([0.9, 0.1]))
    assert np.exp(model.log_prior) == pytest.approx([0.9, 0.1])


def test_what_does_not_fit_is_refused():
    statistics = collected(0.2, 1)
    one = statistics.likeliest
    for bad in (
        replace(one, weight=1.5),
        replace(one, shares=np.array([0.5, 0.25, 0.25])),
        replace(one, shares=np.array([1.0, 0.0])),
        replace(one, shares=np.array([1.0, 1.0])),
        replace(one, tables={**one.tables, "x0": one.tables["x0"] * 2}),
        replace(one, tables={**one.tables, "x0": np.full((2, 3), 0.3)}),
        replace(one, tables={"x0": one.tables["x0"]}),
    ):
        with pytest.raises(EstimationError, match="likeliest"):
            replace(statistics, likeliest=bad)
    import json

    body = json.loads(statistics.to_json())
    del body["digest"]
    body["likeliest"]["weight"] = 7
    with pytest.raises(FormatError):
        Statistics.from_json(json.dumps(body))


def test_an_empty_tally_is_still_refused():
    with pytest.raises(EstimationError, match="empty"):
        estimate_statistics(Tally(Questionnaire.from_schema(SCHEMA, 0.5)))
