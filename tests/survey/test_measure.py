"""The privacy measure: as published where it is, from the definition, and soundly beside it."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import Categorical, Schema, SchemaError, SurveyNB, estimate
from discreet.collection.simulation import simulate_tally
from discreet.model import PairFactor
from discreet.randomness import SeededRandom
from discreet.survey.beliefs import Attacker, Beliefs
from discreet.survey.inversion import estimate_statistics
from discreet.survey.measure import (
    compute_posterior,
    compute_pse,
    compute_question_channel,
    compute_rec_known,
    compute_rec_unknown,
    make_unrelated_channel,
    measure_privacy,
)
from discreet.survey.questionnaire import Group, PersonalLaw, Questionnaire
from schemas import BITS


def published_pse(wa, wy, theta):
    """The last formula of MRR, section 4.1, with its W_y as printed; right at W_y = 1/2."""
    kept, decoy = theta + (1 - theta) * wy, (1 - theta) * wy
    kept0, decoy0 = theta + (1 - theta) * (1 - wy), (1 - theta) * (1 - wy)
    both = wa * (1 - wa)
    first = both * kept * decoy0 / (kept * wa + decoy0 * (1 - wa))
    second = 2 * both * decoy0 * kept0 / (kept0 * (1 - wa) + decoy0 * wa)
    third = both * decoy * kept / (kept * wa + decoy * (1 - wa))
    return first + second + third


@pytest.mark.parametrize("wa", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("theta", [0.0, 0.25, 0.5, 0.9])
def test_pse_is_the_published_formula_at_one_half_and_the_definition_elsewhere(wa, theta):
    prior = np.array([1 - wa, wa])
    even = compute_pse(prior, make_unrelated_channel(theta, [0.5, 0.5]))
    assert even == pytest.approx(published_pse(wa, 0.5, theta))
    law = [0.8, 0.2]
    channel = make_unrelated_channel(theta, law)
    by_hand = 0.0
    for o, r in itertools.product((0, 1), repeat=2):
        sent = (theta if r == o else 0) + (1 - theta) * law[r]
        other = (1 - theta) * law[r] + (theta if r == 1 - o else 0)
        whole = prior[o] * sent + prior[1 - o] * other
        by_hand += prior[o] * sent * (prior[1 - o] * other / whole)
    assert compute_pse(prior, channel) == pytest.approx(by_hand)
    if theta:
        assert compute_pse(prior, channel) != pytest.approx(published_pse(wa, 0.2, theta))


def test_privacy_falls_from_the_prior_to_nothing():
    prior = np.array([0.7, 0.3])
    row = [compute_pse(prior, make_unrelated_channel(t, [0.5, 0.5])) for t in np.linspace(0, 1, 21)]
    assert row[0] == pytest.approx(2 * 0.7 * 0.3)  # theta = 0: the prior alone
    assert row[-1] == pytest.approx(0)
    assert all(a > b for a, b in itertools.pairwise(row))


def test_the_published_example_of_recoverability():
    """MRR, 4.2: confidences 80, 60, 40 and 30 %; they do not add up to one, so REC is not 1."""
    assert compute_rec_known([0.5, 0.5], [[0.6, 0.8], [0.3, 0.4]]) == pytest.approx(1.05)
    sent = np.array([[0.3, 0.2], [0.1, 0.4]])
    expected = 0.6 * 0.7 + 0.4 * 0.8 + 0.2 * 0.7 + 0.8 * 0.8
    assert compute_rec_unknown(sent, np.array([0.7, 0.8])) == pytest.approx(expected)


def test_rec_of_proper_rules_is_one_so_the_published_difference_is_never_positive(survey):
    found = measure_privacy(survey)
    for one in (*found.questions, *found.groups):
        assert one.rec_known == pytest.approx(1)
        assert one.published_known <= 1e-12
        assert one.published_known == pytest.approx(one.before - one.rec_known)


SURVEYS = {
    "one group": Questionnaire.from_schema(BITS, 0.5),
    "two groups": Questionnaire(
        BITS,
        [Group(("a",), theta=0.3), Group(("b", "c"), theta=0.6)],
        [PersonalLaw(("b",), (1, 3))],
    ),
    "related": Questionnaire.from_schema(BITS, 0.7, model="related"),
    "mixed": Questionnaire(
        BITS, [Group(("a", "c"), theta=0.7, model="related"), Group(("b",), theta=0.5)]
    ),
    "personal answers across groups": Questionnaire(
        BITS,
        [Group(("a",), theta=0.4), Group(("b",), theta=0.6), Group(("c",), theta=0.5)],
        [PersonalLaw(("a", "b", "c"), (5, 1, 2, 3, 1, 1, 2, 9))],
        personal="own",
    ),
    "across two of three groups, one related": Questionnaire(
        BITS,
        [
            Group(("a",), theta=0.4),
            Group(("b",), theta=0.7, model="related"),
            Group(("c",), theta=0.5),
        ],
        [PersonalLaw(("a", "c"), (8, 1, 1, 8))],
        personal="own",
    ),
}


def beliefs_of(survey):
    law = {"a": np.array([[0.8, 0.2], [0.3, 0.7]]), "b": np.array([[0.6, 0.4], [0.1, 0.9]])}
    return Beliefs(survey, np.array([0.7, 0.3]), law)


def joint_of(survey, beliefs, sheet_law):
    """P(truth, sheet) of all, from the definition of the channel."""
    joint = np.zeros((*survey.sizes, *survey.sizes))
    for truth in np.ndindex(*survey.sizes):
        prior = beliefs.prior[truth[2]]
        prior *= beliefs.conditional["a"][truth[2], truth[0]]
        prior *= beliefs.conditional["b"][truth[2], truth[1]]
        joint[truth] = prior * sheet_law(survey, truth)
    return joint


def independent_law(survey, truth):
    """The known-bad twin of the law of sheets: every group drawn by itself."""
    law = np.ones(survey.sizes)
    for channel, places in zip(survey.channels, survey.places, strict=True):
        for sheet in np.ndindex(*survey.sizes):
            law[sheet] *= channel.likelihood([truth[p] for p in places], [sheet[p] for p in places])
    return law


def test_personal_answers_that_depend_on_each_other_change_the_sound_figures(sheet_law):
    """Where the law spans groups, taking groups as independent is off by more than rounding."""
    survey = SURVEYS["across two of three groups, one related"]
    beliefs = beliefs_of(survey)
    figures = []
    for law in (sheet_law, independent_law):
        seen = joint_of(survey, beliefs, law).sum(axis=(1, 2))
        figures.append(1 - (seen**2 / seen.sum(axis=0)).sum())
    found = next(one for one in measure_privacy(survey, beliefs).questions if one.name == "a")
    assert found.sound_unknown == pytest.approx(figures[0], abs=1e-12)
    assert abs(figures[1] - figures[0]) > 1e-3


@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
def test_every_printed_figure_is_what_its_definition_says(survey, sheet_law):
    """PSE, REC I and II and epsilon from the enumerated law of truths and sheets."""
    beliefs = beliefs_of(survey)
    joint, found = joint_of(survey, beliefs, sheet_law), measure_privacy(survey, beliefs)
    for j, name in enumerate(survey.names):
        entry = next(one for one in found.questions if one.name == name)
        others = [k for k in range(3) if k != j]
        both = joint.sum(axis=(*others, *(k + 3 for k in others)))  # (true, sent)
        recovered = both / both.sum(axis=0)
        assert entry.before == pytest.approx((both * (1 - recovered)).sum())
        first, second = [], []
        for i in others:
            true = joint.sum(axis=(3, 4, 5)).sum(axis=3 - i - j)
            sent = joint.sum(axis=(0, 1, 2)).sum(axis=3 - i - j)
            true, sent = (true, sent) if i < j else (true.T, sent.T)  # (other, this)
            rules = true / true.sum(axis=1, keepdims=True)
            first.append((true.sum(axis=1)[:, None] * rules).sum())
            second.append((sent / sent.sum(axis=1, keepdims=True) * np.diag(recovered)).sum())
        assert entry.rec_known == pytest.approx(max(first))
        assert entry.rec_unknown == pytest.approx(max(second))
    for number, group in enumerate(survey.groups):
        entries = [one for one in found.questions if one.name in group.questions]
        least, most = found.groups[number], max(one.rec_unknown for one in entries)
        assert least.sound_unknown == min(one.sound_unknown for one in entries)
        assert least.sound_known == min(one.sound_known for one in entries)
        assert (least.before, least.rec_unknown) == (min(one.before for one in entries), most)
    every = [sheet_law(survey, truth).ravel() for truth in np.ndindex(*survey.sizes)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nanmax(np.array(every)[:, None] / np.array(every)[None])
    if survey.personal == "own":  # whoever knows the personal answers knows more than this channel
        assert math.isinf(found.epsilon)
    else:
        assert found.epsilon == pytest.approx(math.log(ratio))
    if math.isfinite(found.epsilon):
        assert not found.epsilon * 0.99 >= math.log(ratio)  # a smaller promise would be broken


@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
def test_the_sound_figures_are_those_of_brute_force(survey, sheet_law):
    beliefs = beliefs_of(survey)
    joint, found = joint_of(survey, beliefs, sheet_law), measure_privacy(survey, beliefs)
    assert found.exact
    for j, name in enumerate(survey.names):
        entry = next(one for one in found.questions if one.name == name)
        others = tuple(k for k in range(3) if k != j)
        seen = joint.sum(axis=others)  # (answer, sheet)
        right = (seen**2 / np.maximum(seen.sum(axis=0), 1e-300)).sum()
        assert entry.sound_unknown == pytest.approx(1 - right)
        worst = 0.0
        for i in others:
            (k,) = set(range(3)) - {i, j}
            pair = joint.sum(axis=k)
            pair = pair if i < j else pair.swapaxes(0, 1)  # (known, answer, sheet)
            worst = max(worst, (pair**2 / np.maximum(pair.sum(axis=1), 1e-300)[:, None]).sum())
        assert entry.sound_known == pytest.approx(1 - worst)
        assert entry.sound_known <= entry.sound_unknown + 1e-12 <= entry.before + 2e-12
        prior = beliefs.compute_margin(name)
        np.testing.assert_allclose(found.priors[name], prior)
        sent = joint.sum(axis=(0, 1, 2)).sum(axis=others)
        both = joint.sum(axis=others).sum(axis=tuple(k + 1 for k in others))
        np.testing.assert_allclose(found.posteriors[name], (both / sent).T)
        np.testing.assert_allclose(
            compute_posterior(prior, compute_question_channel(survey, name)), (both / sent).T
        )


def test_a_report_never_lifts_a_belief_beyond_what_epsilon_allows():
    """For any knowledge of the shape of a model; the known-bad twin is a smaller epsilon."""
    survey = SURVEYS["two groups"]
    sheets = np.array(list(np.ndindex(*survey.sizes)))
    rng = np.random.default_rng(0)
    factor = math.exp(survey.guarantee.epsilon)
    largest = 0.0
    for _ in range(300):
        p = rng.dirichlet([0.2, 0.2])
        law = {n: rng.dirichlet([0.2, 0.2], 2) for n in "ab"}
        beliefs = Beliefs(survey, p, law)
        attacker = Attacker(beliefs, sheets)
        for name in survey.names:
            after = attacker.compute_answer_joint(name) / attacker.sheet_probabilities[:, None]
            before = beliefs.compute_margin(name)
            with np.errstate(divide="ignore", invalid="ignore"):
                odds = (after / (1 - after)) / (before / (1 - before))
            largest = max(largest, np.nanmax(odds[np.isfinite(odds)]))
    assert largest <= factor * (1 + 1e-9)
    assert largest > 0.2 * factor


@pytest.mark.parametrize("spanning", [False, True])
def test_large_questionnaires_are_averaged_over_invented_sheets(spanning, monkeypatch):
    schema = Schema([Categorical(f"q{k}", [0, 1], optional=False) for k in range(3)], "c", [0, 1])
    from discreet.survey import measure

    survey = Questionnaire.from_schema(schema, 0.5)
    if spanning:
        groups = [Group(("q0", "q1"), theta=0.5), Group(("q2", "c"), theta=0.5)]
        law = [PersonalLaw(("q0", "q2"), (20, 1, 1, 20))]
        survey = Questionnaire(schema, groups, law, personal="own")
    exact = measure_privacy(survey, Beliefs.from_margins(survey, {"q0": [0.9, 0.1]}))
    monkeypatch.setattr(measure, "MAX_ENUMERATED_SHEETS", 1)
    drawn = measure_privacy(survey, Beliefs.from_margins(survey, {"q0": [0.9, 0.1]}))
    assert exact.exact
    assert not drawn.exact
    for one, two in zip(exact.questions, drawn.questions, strict=True):
        assert one.sound_unknown == pytest.approx(two.sound_unknown, abs=0.02)  # 5 deviations
        assert one.sound_known == pytest.approx(two.sound_known, abs=0.02)


def test_beliefs_can_be_stated_or_come_from_a_model(survey, invented):
    tally = simulate_tally(survey, invented(survey, 3000), SeededRandom(0))
    model = estimate(estimate_statistics(tally))
    found = measure_privacy(survey, Beliefs.from_model(survey, model))
    np.testing.assert_allclose(found.priors["sick"], np.exp(model.log_prior))
    assert found.epsilon == survey.guarantee.epsilon
    other = SurveyNB(0.5, schema=BITS, random_state=0).fit([["n", "n"], ["y", "y"]], ["n", "y"])
    with pytest.raises(SchemaError, match="other questions"):
        Beliefs.from_model(survey, other.model_)
    cells = tuple(factor.cells for factor in model.factors[:2])
    groups = tuple(tuple(range(one.size)) for one in cells)
    scores = np.zeros((len(model.log_prior), cells[0].size * cells[1].size))
    with pytest.raises(SchemaError, match="pairs of features"):
        Beliefs.from_model(survey, replace(model, pairs=[PairFactor(cells, groups, scores)]))
    wrong = (
        [0.5, 0.6], ["yes", "no"], [None, 1], [True, False], [[0.5, 0.5], [0.5, 0.5]], [1.0],
        [float("nan"), 1.0], [10**400, 0], [-0.5, 1.5], "ab", {"no": 1.0}, 1.0,
    )  # fmt: skip
    for law in wrong:
        with pytest.raises(SchemaError, match=r"smokes: its prior is .* add up to 1, for no, yes"):
            Beliefs.from_margins(survey, {"smokes": law})
    with pytest.raises(SchemaError, match="'weight'"):
        Beliefs.from_margins(survey, {"weight": [1.0]})
