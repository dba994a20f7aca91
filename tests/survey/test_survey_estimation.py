"""The estimator is unbiased and its stated variance right: exactly by enumeration, then in bulk."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import Categorical, EstimationError, Numeric, Schema, SchemaError
from discreet.collection.simulation import simulate_tally
from discreet.collection.tally import Tally
from discreet.estimation import estimate
from discreet.randomness import SeededRandom
from discreet.survey.inversion import (
    _map_axes,
    apply_channel,
    estimate_share,
    estimate_statistics,
    invert_channel,
)
from discreet.survey.predicate import Predicate
from discreet.survey.questionnaire import Group, PersonalLaw, Questionnaire
from schemas import BITS
from schemas import THREE_AND_TWO as THREE

SURVEYS = {
    "one group": Questionnaire.from_schema(THREE, 0.3),
    "two groups": Questionnaire.from_schema(THREE, [0.3, 0.8], [["a", "c"], ["b"]]),
    "three groups": Questionnaire.from_schema(THREE, [0.3, 0.8, 0.5], [["a"], ["b"], ["c"]]),
    "skewed law": Questionnaire(
        THREE, [Group(tuple("abc"), theta=0.4)], [PersonalLaw(("a", "c"), (1, 2, 3, 4, 5, 6))]
    ),
    "related": Questionnaire.from_schema(BITS, 0.8, model="related"),
    "related below half": Questionnaire.from_schema(
        BITS, [0.2, 0.9], [["a"], ["b", "c"]], "related"
    ),
    "both models": Questionnaire(
        BITS, [Group(("a", "c"), theta=0.7, model="related"), Group(("b",), theta=0.5)]
    ),
    "dependent personal answers": Questionnaire(
        THREE,
        [Group(("a",), theta=0.4), Group(("b",), theta=0.6), Group(("c",), theta=0.5)],
        [PersonalLaw(("a", "b"), (1, 0, 2, 3, 5, 1))],
        personal="own",
    ),
    "all dependent": Questionnaire(
        BITS,
        [Group(("a",), theta=0.4), Group(("b",), theta=0.6), Group(("c",), theta=0.5)],
        [PersonalLaw(("a", "b", "c"), (5, 1, 2, 3, 1, 1, 2, 9))],
        personal="own",
    ),
}
PREDICATES = ["a = {0} and c = y", "not (b = {1} or a = {0})", "a = {0} or (b != {1} and c = n)"]


def words(survey, text):
    return text.format(survey.cells["a"].labels[-1], survey.cells["b"].labels[0])


@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
@pytest.mark.parametrize("text", PREDICATES)
def test_the_score_of_a_sheet_is_unbiased_for_every_person(survey, text, sheet_law):
    predicate = Predicate.parse(survey, words(survey, text))
    scores = invert_channel(survey, predicate.names, predicate.table.astype(float))
    for truth in np.ndindex(*survey.sizes):
        law = sheet_law(survey, truth)
        assert law.sum() == pytest.approx(1)
        axes = [survey.place[name] for name in predicate.names]
        lost = tuple(k for k in range(law.ndim) if k not in axes)
        margin = np.moveaxis(law, axes, range(len(axes))).sum(
            axis=tuple(range(len(axes), law.ndim))
        )
        assert margin.shape == scores.shape
        meant = predicate.table[tuple(truth[k] for k in axes)]
        assert (margin * scores).sum() == pytest.approx(float(meant), abs=1e-9), lost
        # and sum(h^2) - sum(h) is unbiased for the variance
        variance = (margin * scores**2).sum() - float(meant) ** 2
        assert (margin * (scores**2 - scores)).sum() == pytest.approx(variance, abs=1e-9)


def test_the_sampler_follows_that_law(sheet_law):
    """Frequencies of 200 000 sheets of one person; chi-square, false alarm 1e-6."""
    from scipy.stats import chi2

    for survey in SURVEYS.values():
        truth = [0, 1, 1]
        law = sheet_law(survey, truth)
        if survey.personal == "own":
            continue
        people = np.tile(truth, (200_000, 1))
        tally = Tally(survey)
        tally.add_values(0, survey.randomize_records(0, people, SeededRandom(3)))
        sent, expected = tally.count_margin(survey.names), 200_000 * law
        assert not sent[expected == 0].any()
        ok = expected > 0
        statistic = (((sent - expected) ** 2)[ok] / expected[ok]).sum()
        assert statistic < chi2.isf(1e-6, ok.sum() - 1)


@pytest.mark.slow
@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
def test_the_channel_is_what_a_sheet_does_and_its_inversion_undoes_it(survey, sheet_law):
    function = np.random.default_rng(0).normal(size=survey.sizes)
    expected = [(sheet_law(survey, truth) * function).sum() for truth in np.ndindex(*survey.sizes)]
    sent = apply_channel(survey, survey.names, function)
    assert sent.ravel() == pytest.approx(np.array(expected))
    assert invert_channel(survey, survey.names, sent) == pytest.approx(function)


def test_groups_are_inverted_together_where_a_law_spans_two_that_are_asked_about():
    dependent, apart = SURVEYS["dependent personal answers"], SURVEYS["three groups"]
    function = np.zeros((7, 2, 3))
    assert _map_axes(dependent, ("b", "a"), function) == ({1: {0: 1}, 0: {0: 2}}, {})
    assert _map_axes(dependent, ("b",), function[0]) == ({}, {1: {0: 1}})
    assert _map_axes(apart, ("b", "a"), function) == ({}, {1: {0: 1}, 0: {0: 2}})


@pytest.mark.slow
@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
def test_estimates_and_stated_variances_agree_with_repetitions(survey, invented):
    """500 repetitions; the mean by 5 standard errors, the variance ratio by 5 (1e-6 a check)."""
    truth = invented(survey, 400)
    predicate = Predicate.parse(survey, words(survey, PREDICATES[0]))
    axes = [survey.place[name] for name in predicate.names]
    right = predicate.table[tuple(truth[:, axes].T)].sum()
    own = None
    if survey.personal == "own":
        law = survey.compute_personal_law(survey.names)
        rng = np.random.default_rng(0)
    found, stated = [], []
    for repeat in range(500):
        if survey.personal == "own":
            flat = rng.choice(law.size, len(truth), p=law.ravel())
            own = np.column_stack(np.unravel_index(flat, law.shape))
        tally = simulate_tally(
            survey, truth if own is None else np.hstack([truth, own]), SeededRandom(repeat)
        )
        estimate = estimate_share(tally, predicate)
        found.append(estimate.count)
        stated.append(estimate.noise_variance)
    spread = np.std(found, ddof=1)
    assert abs(np.mean(found) - right) < 5 * spread / np.sqrt(500)
    assert spread**2 / np.mean(stated) == pytest.approx(1, abs=5 * np.sqrt(2 / 499))


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("apart", [True, False])
def test_differences_between_classes_have_the_stated_variance(classes, apart):
    """400 repetitions of 6 to 9 differences; the twin takes counts of classes for independent.

    Differences of one repetition share two thirds of their errors at most, so that 400 times two
    is the least number of independent ones: 6 standard errors of the ratio are .3 (1e-8).
    """
    feature = Categorical("a", ["p", "q", "r"], optional=False)
    schema = Schema([feature], "c", [str(k) for k in range(classes)])
    groups = [["a"], ["c"]] if apart else None
    survey = Questionnaire.from_schema(schema, [0.2, 0.2] if apart else 0.2, groups)
    rng = np.random.default_rng(1)
    truth = np.column_stack([rng.integers(0, 3, 500), rng.integers(0, classes, 500)])
    exact = np.array([[(truth == (v, c)).all(1).sum() for v in range(3)] for c in range(classes)])
    pairs = [(c, d) for c in range(classes) for d in range(c)]
    squares, stated, alone = [], [], []
    for repeat in range(400):
        table = estimate_statistics(simulate_tally(survey, truth, SeededRandom(repeat))).tables["a"]
        error = table.counts - exact
        squares.append(np.mean([(error[c] - error[d]) ** 2 for c, d in pairs]))
        stated.append(
            np.mean(
                [
                    table.between_class_variances[c] + table.between_class_variances[d]
                    for c, d in pairs
                ]
            )
        )
        alone.append(np.mean([table.variances[c] + table.variances[d] for c, d in pairs]))
    assert np.mean(squares) / np.mean(stated) == pytest.approx(1, abs=0.3)
    assert (np.mean(squares) / np.mean(alone) > 1.3) == apart


@pytest.mark.slow
@pytest.mark.parametrize("numeric", [False, True])
def test_noise_between_classes_does_not_pass_for_evidence(numeric):
    """Nothing depends on the class; the twin takes the noise of classes for independent."""
    names = [f"f{i}" for i in range(6)]
    features = [
        Numeric(name, 0, 1, optional=False)
        if numeric
        else Categorical(name, list("pqr"), optional=False)
        for name in names
    ]
    groups = [[name] for name in (*names, "c")]
    survey = Questionnaire.from_schema(Schema(features, "c", ["n", "y"]), [0.3] * 7, groups, bins=3)

    def strength(statistics):
        factors = estimate(statistics).factors
        return np.mean([np.abs(np.diff(one.log_probability, axis=0)).mean() for one in factors])

    ours, twin = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = np.column_stack([rng.integers(0, 3, (2000, 6)), rng.random(2000) < 0.3])
        found = estimate_statistics(
            simulate_tally(survey, truth.astype(np.int64), SeededRandom(seed))
        )
        ours.append(strength(found))
        tables = {name: replace(one, cancelling_share=0.0) for name, one in found.tables.items()}
        twin.append(strength(replace(found, tables=tables)))
    assert np.mean(ours) < 0.7 * np.mean(twin)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, [["a"], ["b", "c"]]])
def test_twenty_values_are_estimated_without_bias(groups, invented):
    """Tables of a question with 20 answers; every cell within 5.5 deviations (1e-5 in all)."""
    schema = Schema(
        [Categorical("a", range(20), optional=False), Categorical("b", range(7), optional=False)],
        "c",
        range(4),
    )
    survey = Questionnaire.from_schema(schema, 0.5, groups)
    truth = invented(survey, 3000)
    total, noise, repeats = 0.0, 0.0, 60
    for repeat in range(repeats):
        table = estimate_statistics(simulate_tally(survey, truth, SeededRandom(repeat))).tables["a"]
        total, noise = total + table.counts, noise + table.variances
    exact = np.zeros((4, 20))
    np.add.at(exact, (truth[:, 2], truth[:, 0]), 1)
    z = (total / repeats - exact) / np.sqrt(noise) * repeats
    assert np.abs(z).max() < 5.5
    assert z.std() == pytest.approx(1, abs=0.35)  # 80 cells, 4.4 deviations


def test_tables_add_up_to_the_class_totals(survey, invented):
    tally = simulate_tally(survey, invented(survey, 500), SeededRandom(0))
    found = estimate_statistics(tally)
    for table in found.tables.values():
        np.testing.assert_allclose(table.counts.sum(axis=1), found.totals)
    assert found.totals.sum() == pytest.approx(500)
    assert found.guarantee.simulated
    assert not found.is_exact


def test_at_theta_one_everything_is_counted_exactly(schema, invented):
    survey = Questionnaire.from_schema(schema, 1, bins=3)
    truth = invented(survey, 500)
    found = estimate_statistics(simulate_tally(survey, truth, SeededRandom(0)))
    assert found.is_exact
    np.testing.assert_array_equal(found.totals, np.bincount(truth[:, -1]))
    estimate = estimate_share(simulate_tally(survey, truth, SeededRandom(0)), "smokes = yes")
    assert (estimate.count, estimate.noise_variance) == ((truth[:, 0] == 1).sum(), 0)
    low, high = estimate.interval()
    assert low < estimate.share < high  # people are still a sample
    assert estimate.interval(population=False) == (estimate.share, estimate.share)


def test_predicates_can_be_written_in_many_ways(survey):
    text = Predicate.parse(survey, 'smokes = yes and "region" in (north, east)')
    made = Predicate.from_function(
        survey, ["smokes", "region"], lambda s, r: s == "yes" and r in ("north", "east")
    )
    np.testing.assert_array_equal(text.table, made.table)
    parsed = Predicate.parse(survey, "smokes == yes and region = south and sick != yes")
    one = Predicate.from_answers(survey, {"smokes": "yes", "region": "south", "sick": "no"})
    np.testing.assert_array_equal(parsed.table, one.table)
    others = Predicate.parse(survey, "not region not in (south) or age = '(missing)'")
    assert others.table.sum() == 1 * 3 + 1 * 3 - 1
    assert Predicate.parse(survey, "age = '18 to 49'").table.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected"),
        ("smokes", "expected"),
        ("smokes = maybe", "not one of its answers; write one of: no, yes"),
        ("weight = 3", "no question 'weight'"),
        ("smokes = yes or", "expected"),
        ("(smokes = yes", "expected"),
        ("smokes = yes) and", "expected"),
        ("smokes = yes; drop", "not one of its answers"),
        ("smokes not yes", r"=, !=, in \(…\) or not in \(…\)"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(survey, text, words):
    with pytest.raises(SchemaError, match=words):
        Predicate.parse(survey, text)


def test_deeply_nested_predicates_are_read_or_refused(survey):
    """Any number of ``not``; parentheses up to a limit that lies far below Python's own."""
    often = Predicate.parse(survey, "not " * 3001 + "smokes = yes")
    np.testing.assert_array_equal(often.table, [True, False])
    inside = "(" * 100 + "smokes = yes" + ")" * 100
    np.testing.assert_array_equal(Predicate.parse(survey, inside).table, [False, True])
    side_by_side = " or ".join(["(smokes = yes)"] * 300)
    np.testing.assert_array_equal(Predicate.parse(survey, side_by_side).table, [False, True])
    for text in ("(" * 3000, "not (" * 3000 + "smokes = yes" + ")" * 3000, f"({inside})"):
        with pytest.raises(SchemaError, match="more than 100 parentheses"):
            Predicate.parse(survey, text)


def test_nothing_is_estimated_from_nobody(survey):
    with pytest.raises(EstimationError, match="empty"):
        estimate_statistics(Tally(survey))
    with pytest.raises(EstimationError, match="empty"):
        estimate_share(Tally(survey), "smokes = yes")
