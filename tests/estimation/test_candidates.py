"""Candidate models: whole numbers that decide alike everywhere, and the choice among them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from discreet import estimate
from discreet.datasets import make_mortgage
from discreet.errors import EstimationError
from discreet.estimation.candidates import (
    choose_candidate,
    count_correct_rows,
    list_candidate_scorings,
    make_candidate,
    rank_features,
)
from discreet.model import NaiveBayesModel
from discreet.schema.cells import Cells
from discreet.statistics.candidate import MAX_SCORE, CandidateModel, CandidateModelBody
from discreet.statistics.scoring import Scoring
from discreet.tables.in_memory import CountRequest, count_arrays

PEOPLE = make_mortgage(600, missing=0.05)
BINS = 4


def noisy_statistics(scale=6.0, seed=0):
    """Statistics with a known variance, as a round releases them."""
    codes = np.array([list(PEOPLE.schema.classes).index(label) for label in PEOPLE.y])
    bins = dict.fromkeys(PEOPLE.schema.names, BINS)
    exact = count_arrays(PEOPLE.schema, dict(PEOPLE.X), codes, CountRequest(bins))
    rng = np.random.default_rng(seed)
    tables = {
        name: replace(
            table,
            counts=table.counts + rng.normal(0, scale, table.counts.shape),
            variances=np.full(table.counts.shape, scale**2),
        )
        for name, table in exact.tables.items()
    }
    variances = np.full(len(exact.totals), scale**2)
    return replace(exact, tables=tables, variances=variances)


STATISTICS = noisy_statistics()


def rows():
    """Cells and classes of the rows."""
    schema = PEOPLE.schema
    cells = {
        name: Cells.from_schema(schema, name, BINS).encode_column(PEOPLE.X[name])
        for name in schema.names
    }
    return cells, np.array([list(schema.classes).index(label) for label in PEOPLE.y])


def with_scoring(scoring, statistics=STATISTICS):
    return estimate(replace(statistics, scoring=scoring))


@pytest.mark.parametrize("method", ["none", "paper", "norm-sub", "norm-cut", "bayes", "log-ratios"])
def test_every_postprocess_can_be_toned_down(method):
    """Log-odds are multiplied by beta, and probabilities stay valid."""
    prior = (0.6, 0.4)  # pooled margins hang on the prior, so it is the same for all
    assert len(prior) == len(PEOPLE.schema.classes)
    full, half, none = (
        with_scoring(Scoring(method, beta=beta, prior=prior)) for beta in (1.0, 0.5, 0.0)
    )
    for factor, toned, silent in zip(full.factors, half.factors, none.factors, strict=True):
        odds = factor.log_probability[1] - factor.log_probability[0]
        np.testing.assert_allclose(
            toned.log_probability[1] - toned.log_probability[0], odds / 2, atol=1e-9
        )
        np.testing.assert_allclose(silent.log_probability[0], silent.log_probability[1], atol=1e-9)
        assert np.exp(toned.log_probability[:, :BINS]).sum(axis=1).max() < 1 + 1e-9
    NaiveBayesModel.from_json(with_scoring(Scoring(method, beta=4.0)).to_json())


@pytest.mark.parametrize("method", ["none", "paper", "norm-sub", "norm-cut", "bayes", "log-ratios"])
def test_every_postprocess_can_be_left_with_a_part_of_its_features(method):
    names = PEOPLE.schema.names
    chosen = with_scoring(Scoring(method, features=(names[2], names[0])))
    assert [factor.name for factor in chosen.factors] == [names[0], names[2]]
    nothing = with_scoring(Scoring(method, features=()))
    assert len(set(nothing.predict(PEOPLE.X))) == 1


def test_candidates_begin_with_the_default_and_differ():
    scorings = list_candidate_scorings(STATISTICS)
    assert scorings[0] == STATISTICS.scoring
    assert 3 < len(scorings) <= 8
    assert scorings == list_candidate_scorings(noisy_statistics())
    bodies = [str(make_candidate(with_scoring(one)).to_body()) for one in scorings]
    assert len(set(bodies)) == len(bodies)
    assert list_candidate_scorings(STATISTICS, 2) == scorings[:2]


def test_features_are_ranked_by_what_they_say():
    model = estimate(STATISTICS)
    ranked = rank_features(model)
    assert sorted(ranked) == sorted(PEOPLE.schema.names)
    silent = replace(
        model,
        factors=[
            replace(factor, log_probability=np.tile(factor.log_probability[:1], (2, 1)))
            if factor.name == ranked[0]
            else factor
            for factor in model.factors
        ],
    )
    assert rank_features(silent)[-1] == ranked[0]


def test_whole_numbers_decide_like_the_model_and_like_plain_python():
    cells, codes = rows()
    model = estimate(STATISTICS)
    candidate = make_candidate(model)
    decided = candidate.predict(cells)
    assert np.mean(PEOPLE.schema.classes[1] == model.predict(PEOPLE.X)) == np.mean(decided == 1)
    for row in range(50):
        scores = candidate.offsets.tolist()
        for name, table in candidate.tables.items():
            column = table[:, cells[name][row]].tolist()
            scores = [score + more for score, more in zip(scores, column, strict=True)]
        assert scores.index(max(scores)) == decided[row]
    assert count_correct_rows([candidate], cells, codes).tolist() == [int((decided == codes).sum())]


def test_one_row_changes_each_count_by_at_most_one():
    cells, codes = rows()
    candidates = [
        make_candidate(with_scoring(scoring)) for scoring in list_candidate_scorings(STATISTICS)
    ]
    counts = count_correct_rows(candidates, cells, codes)
    for row in (0, 17, 300):
        others = np.delete(np.arange(len(codes)), row)
        fewer = count_correct_rows(
            candidates, {name: one[others] for name, one in cells.items()}, codes[others]
        )
        assert set((counts - fewer).tolist()) <= {0, 1}


def test_the_first_class_wins_a_tie_and_impossible_cells_are_neutral():
    tie = CandidateModel(np.array([3, 3, 1]), {"x": np.array([[0, 1], [0, 1], [2, 0]])})
    assert tie.predict({"x": np.array([0, 1])}).tolist() == [0, 0]
    schema = PEOPLE.schema
    model = estimate(STATISTICS)
    factor = model.factors[0]
    impossible = factor.log_probability.copy()
    impossible[:, 0], impossible[0, 1] = -np.inf, -np.inf
    candidate = make_candidate(
        NaiveBayesModel(schema, model.log_prior, [replace(factor, log_probability=impossible)])
    )
    table = candidate.tables[factor.name]
    assert table[:, 0].tolist() == [0, 0]
    assert table[0, 1] == -MAX_SCORE


def test_candidates_travel_as_strict_whole_numbers():
    candidate = make_candidate(estimate(STATISTICS))
    text = json.dumps(candidate.to_body())
    assert CandidateModelBody.model_validate_json(text).to_candidate().to_body() == json.loads(text)
    first = PEOPLE.schema.names[0]
    for wrong in (
        {"offsets": [0.5, 0], "tables": {}},
        {"offsets": [0, True], "tables": {}},
        {"offsets": [0, MAX_SCORE + 1], "tables": {}},
        {"offsets": [], "tables": {}},
        {"offsets": [0, 0], "tables": {first: [[0], ["1"]]}},
        {"offsets": [0, 0], "tables": {}, "code": "1"},
    ):
        with pytest.raises(ValidationError):
            CandidateModelBody.model_validate_json(json.dumps(wrong))
    ragged = {"offsets": [0, 0], "tables": {first: [[0], [1, 2]]}}
    body = CandidateModelBody.model_validate(ragged)
    with pytest.raises(EstimationError, match="other cells"):
        body.to_candidate()
    with pytest.raises(EstimationError, match="2 of 3 classes"):
        candidate.check_cells(3, {})
    sizes = {name: table.shape[1] for name, table in candidate.tables.items()}
    candidate.check_cells(2, sizes)
    with pytest.raises(EstimationError, match=f"{first}: a candidate has"):
        candidate.check_cells(2, {**sizes, first: 99})


def test_models_with_densities_are_no_candidates():
    bins = dict.fromkeys(PEOPLE.schema.names, BINS)
    codes = np.zeros(len(PEOPLE.y), dtype=np.int64)
    codes[::2] = 1
    moments = count_arrays(PEOPLE.schema, dict(PEOPLE.X), codes, CountRequest(bins, "grid"))
    dense = replace(moments, tables={})
    with pytest.raises(EstimationError, match="by bins"):
        make_candidate(estimate(dense))


def test_a_lead_that_may_be_noise_keeps_the_default():
    variances = np.array([0.0, 100.0, 100.0])
    assert choose_candidate(np.array([0, 19, -50]), variances) == 0
    assert choose_candidate(np.array([0, 19, 40]), variances) == 2
    assert choose_candidate(np.array([0, 1, 0]), np.zeros(3)) == 1
    # twin: the largest noisy number alone follows the noise
    rng = np.random.default_rng(0)
    draws = np.hstack([np.zeros((2000, 1)), rng.normal(-5, 10, (2000, 7))])
    cautious = [choose_candidate(draw, np.array([0.0] + [100.0] * 7)) for draw in draws]
    eager = [choose_candidate(draw, np.zeros(8)) for draw in draws]
    assert np.mean(np.array(cautious) > 0) < 0.05
    assert np.mean(np.array(eager) > 0) > 0.5
