"""Central methods keep their promise, exactly.

Every number that leaves passes through ``IntegerNoise.add``, ``AdditiveNoise.release`` or
``sample_exponential_mechanism``. Here those are replaced: what they return is fixed beforehand, the
same for two neighbouring tables, and what they were given is written down. Then

1. whatever is released afterwards (model, statistics, promise) must be the same to the last byte
   for both tables: nothing but the fixed numbers may have an influence;
2. the cost of the fixed outcome, summed over everything that was released, is at most epsilon.
   For discrete Laplace noise that is |v - v'| / scale in fractions, whatever the outcome; for
   Cauchy noise the hyperbolic distance of (value, scale); for a choice the worst log-ratio.

All tables of up to two records over a small domain are tried, with every record added to each.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from central_transcripts import (
    EPSILON,
    METHODS,
    RECORDS,
    SCHEMA,
    Transcript,
    cost,
    crowd,
    train,
    transcript_of,
    worst,
)
from scipy.special import log_softmax, logsumexp

from discreet import CentralNB, CryptoRandom, Numeric, PrivacyWarning, Schema
from discreet.central import budget as budget_module
from discreet.central import histogram as histogram_module
from discreet.central import moments as moments_module
from discreet.central import selection as selection_module
from discreet.central import smooth_sensitivity
from discreet.central import training as training_module
from discreet.central.budget import Budget
from discreet.central.corrections import CorrectionBudget
from discreet.central.smooth import compute_trim
from discreet.errors import PrivacyError
from discreet.mechanisms.additive import Cauchy, Gaussian, Laplace, LaplaceLogNormal
from discreet.privacy.accountant import (
    ChoiceStep,
    NoiseStep,
    compute_gaussian_rho,
    compute_release_delta,
)
from discreet.privacy.rounding import convert_rho_to_epsilon


def tables(largest=1, many=4):
    """All small tables, and some larger ones."""
    rng = np.random.default_rng(0)
    yield from ([list(one) for size in range(largest + 1) for one in _sets(size)])
    for size in range(3, 3 + many):
        yield [RECORDS[i] for i in rng.integers(0, len(RECORDS), size)]


def _sets(size):
    return itertools.combinations_with_replacement(RECORDS, size)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_record_costs_at_most_epsilon(monkeypatch, method):
    found = worst(monkeypatch, method, tables())
    slack = Fraction(1, 10**9) if method in ("smooth", "trimmed") else 0
    assert found <= Fraction(EPSILON) + slack
    assert found > Fraction(EPSILON) / 3  # the test does measure something


@pytest.mark.slow
def test_the_choice_of_scoring_is_paid_for(monkeypatch):
    first = (40_000, 40_000)
    plain = {"first": first, "corrections": False}
    given, _, trained = transcript_of(monkeypatch, RECORDS, "histogram", **plain)
    assert [step[0] for step in given[-2:]] == ["choice", "choice"]
    assert len(given[-2][2]) >= 4
    charges = {charge.name: charge.epsilon for charge in trained.model.guarantee.charges}
    assert charges["choice of scoring"] == pytest.approx(0.05 * EPSILON)
    assert charges["choice of temperature"] == pytest.approx(0.03 * EPSILON)
    # which rows are scored is decided by coins of their own: the same for both tables
    for coins in (lambda _, share, size: np.ones(size, bool), lambda *a: np.arange(a[2]) % 3 > 0):
        monkeypatch.setattr(CryptoRandom, "bernoulli", coins)
        assert worst(monkeypatch, "histogram", tables(0, 5), **plain) <= Fraction(EPSILON)


FEW = (4, 3)
"""Class counts so small that one of the two features is chosen."""


@pytest.mark.slow
def test_the_choice_of_features_is_paid_for(monkeypatch):
    given, _, trained = transcript_of(monkeypatch, RECORDS, "histogram", FEW)
    assert [step[0] for step in given] == ["laplace", "choice", "laplace"]
    assert len(trained.statistics.tables) == 1
    names = [charge.name for charge in trained.model.guarantee.charges]
    assert names[:2] == ["class counts", "choice of feature 1 of 1"]
    found = worst(monkeypatch, "histogram", tables(), first=FEW)
    assert Fraction(EPSILON) / 3 < found <= Fraction(EPSILON)


@pytest.mark.slow
def test_twin_features_chosen_by_a_quality_that_one_record_moves_by_four(monkeypatch):
    true = selection_module.compute_table_quality
    monkeypatch.setattr(selection_module, "compute_table_quality", lambda *given: 4 * true(*given))
    assert worst(monkeypatch, "histogram", tables(), first=FEW) > Fraction(EPSILON)


def test_twin_features_chosen_for_free(monkeypatch):
    """The best feature on exact counts, taken without a draw."""

    def best(self, quality, epsilon, random):
        return max(range(len(quality)), key=quality.__getitem__)

    monkeypatch.setattr(Transcript, "choose", best)
    with pytest.raises(AssertionError):
        worst(monkeypatch, "histogram", tables(), first=FEW)


@pytest.mark.parametrize("method", METHODS)
def test_the_charges_add_up_to_epsilon_and_never_more(monkeypatch, method):
    for first in (FEW, (20, 30), (40_000, 40_000)):
        for epsilon in (0.1, 1.0, 1 / 3):
            *_, trained = transcript_of(monkeypatch, RECORDS, method, first, epsilon)
            spent = sum(Fraction(charge.epsilon) for charge in trained.model.guarantee.charges)
            assert spent <= Fraction(epsilon)
            assert float(spent) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.slow
def test_unequal_allocation_keeps_the_promise(monkeypatch):
    found = worst(monkeypatch, "histogram", tables(0), allocation={"a": 5.0})
    assert Fraction(EPSILON) / 3 < found <= Fraction(EPSILON)


# What a published or popular implementation does, and how it is caught.


@pytest.mark.slow
def test_twin_sum_with_the_wrong_sensitivity_far_from_zero(monkeypatch):
    """diffprivlib: noise for U - L = 1 on a sum of values near 100."""
    true = moments_module.compute_centred_sums

    def uncentred(one, levels):
        _, second = true(one, levels)
        far = round(one.feature.lower / one.step)
        return one.counts * far + one.totals, second

    assert worst(monkeypatch, "moments", tables(0)) <= Fraction(EPSILON)
    monkeypatch.setattr(moments_module, "compute_centred_sums", uncentred)
    assert worst(monkeypatch, "moments", tables(0)) > 5 * Fraction(EPSILON)


def test_twin_exact_number_of_records(monkeypatch):
    """diffprivlib: noisy class counts that add up to the exact n."""
    true = histogram_module.compute_precision_weighted_mean

    def exact_n(estimates, variances):
        totals, spread = true(estimates, variances)
        return totals * (histogram_module.number / totals.sum()), spread

    real = histogram_module.release_histogram

    def leaking(source, *rest):
        monkeypatch.setattr(
            histogram_module, "number", 1 + source.count_classes().sum(), raising=False
        )
        return real(source, *rest)

    monkeypatch.setattr(histogram_module, "compute_precision_weighted_mean", exact_n)
    monkeypatch.setattr(histogram_module, "release_histogram", leaking)
    with pytest.raises(AssertionError, match="something other"):
        worst(monkeypatch, "histogram", tables(0))


def test_twin_counts_without_noise(monkeypatch):
    real = budget_module.Budget.spend_on_noise

    def quiet(budget, name, share, *change):
        noise = real(budget, name, share, *change)
        return budget_module.IntegerNoise(Fraction(0)) if name == "class counts" else noise

    monkeypatch.setattr(budget_module.Budget, "spend_on_noise", quiet)
    with pytest.raises(AssertionError, match="without noise"):
        worst(monkeypatch, "histogram", tables(0))


def test_twin_the_published_noise_scale_gives_class_sizes_away(monkeypatch):
    """Vaidya et al.: the scale R / (n + 1) is a function of the private n."""
    base = [(100.3, "x", "no")] * 4
    one, *_ = transcript_of(monkeypatch, base, "global-published")
    two, *_, trained = transcript_of(monkeypatch, [*base, (100.3, "x", "no")], "global-published")
    scales = [[step[2][1] for step in given if step[0] == "cauchy"] for given in (one, two)]
    assert scales[0] != scales[1]
    assert not trained.model.guarantee.is_private
    assert "NOT KEPT: as published" in str(trained.model.guarantee)


def test_the_smooth_noise_scale_is_not_released(monkeypatch):
    for method in ("smooth", "trimmed"):
        *_, trained = transcript_of(monkeypatch, RECORDS, method)
        assert np.isinf(trained.statistics.moments["a"].variances).all()


@pytest.mark.slow
def test_twin_dropped_features_chosen_on_exact_counts(monkeypatch):
    """A choice made on the data itself, for free."""
    monkeypatch.setattr(histogram_module, "count_correct", _exactly)
    plain = {"first": (40_000, 40_000), "corrections": False}
    assert worst(monkeypatch, "histogram", tables(0), **plain) > Fraction(EPSILON)


def _exactly(scores, *_):
    """A record moves every candidate, each by a number of its own, and by far more than one."""
    return round(1000 * float(np.abs(scores).sum()))


def test_classes_and_categories_never_come_from_the_data():
    X = np.array([[100.2, "x"]] * 30, dtype=object)
    nb = CentralNB(1.0, schema=SCHEMA, selection=False).fit(X, ["no"] * 30)
    assert nb.classes_.tolist() == ["no", "yes"]
    table = nb.statistics_.tables["b"]
    assert table.counts.shape == (2, 3)  # y and missing are there, though nobody has them
    assert (table.variances > 0).all()


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
def test_twin_without_a_schema_the_classes_leak_and_that_is_said():
    X = np.array([[100.2], [100.4], [100.6]] * 10)
    with pytest.warns(PrivacyWarning, match="classes were taken from the data"):
        one = CentralNB(1.0).fit(X, ["no"] * 29 + ["yes"])
    with pytest.warns(PrivacyWarning, match="classes were taken from the data"):
        two = CentralNB(1.0).fit(X[:29], ["no"] * 29)
    assert one.classes_.tolist() != two.classes_.tolist()
    assert str(one.guarantee_).startswith("NOT KEPT: bounds, categories and classes")
    assert not one.guarantee_.is_private
    assert not one.statistics_.guarantee.is_private


def spied(monkeypatch):
    """What was released: noises with the budget that paid for them, and all steps as they are."""
    noises, steps = [], []
    real, paid = budget_module.Budget.spend_on_noise, budget_module.Budget.spend_on_selection

    def noise(budget, name, share, sensitivity=1, coordinates=1):
        made = real(budget, name, share, sensitivity, coordinates)
        noises.append((made, sensitivity, budget))
        if made.gaussian:
            moved = 2 if name.startswith("residuals") else 1  # a residual and a curvature
            most = Fraction(sensitivity, made.rounding_step)
            most = int(most if made.rounding_step == 1 else math.ceil(most) + 1)
            steps.append(NoiseStep(Fraction(most) ** 2 / (2 * made.parameter), most, moved))
        return made

    def selection(budget, name, cost):
        epsilon = Fraction(paid(budget, name, cost))
        steps.append(ChoiceStep(epsilon**2 / 8))
        return epsilon

    monkeypatch.setattr(budget_module.Budget, "spend_on_noise", noise)
    monkeypatch.setattr(budget_module.Budget, "spend_on_selection", selection)
    monkeypatch.setattr(training_module, "_is_laplace_noise_smaller", lambda *given: False)
    use_gaussian(monkeypatch, True)
    return noises, steps


def use_gaussian(monkeypatch, whether):
    """Let the histogram take the budget with delta, or the pure one."""
    mean_share = Fraction(1, 100) if whether else Fraction(1)
    monkeypatch.setattr(
        histogram_module.ReleasePlan, "compute_mean_share", lambda plan, **_: mean_share
    )


MANY = [(100.2, "x", "no"), (100.9, "y", "yes")] * 4000


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("histogram", {}),
        ("histogram", {"corrections": False}),
        ("moments", {}),
        ("global", {}),
    ],
)
def test_with_delta_all_that_was_released_keeps_the_promise(monkeypatch, method, options):
    """The accountant on the noise and the choices as they were, and zCDP on the stated rho.

    The histogram's class counts carry Laplace noise, and decide what follows.
    """
    noises, steps = spied(monkeypatch)
    promise = train(MANY, method, 1.0, SCHEMA, delta=1e-6, **options).model.guarantee
    pure = Fraction(0)
    if method == "histogram":
        pure = 1 / noises.pop(0)[0].parameter
        assert pure == Fraction(4, 100)
        choices = [step for step in steps if isinstance(step, ChoiceStep)]
        assert len(choices) == (2 if options else 3)
        # of a start, if any, of a scoring and of a temperature
    assert all(noise.gaussian for noise, *_ in noises)
    chance = 1 / (1 + math.exp(-pure))  # of a loss of pure, and else of -pure
    deltas = [compute_release_delta(steps, 1.0 + sign * float(pure), 1e-6) for sign in (-1, 1)]
    assert 0.9e-6 < chance * deltas[0] + (1 - chance) * deltas[1] <= 1e-6
    rho = sum(step.rho for step in steps)
    assert 0 < rho <= noises[0][2].total
    assert Fraction(promise.rho) >= rho + pure**2 / 2
    assert sum(charge.epsilon for charge in promise.charges) <= 1.0
    assert (promise.epsilon, promise.delta) == (1.0, 1e-6)


def _use_all(steps, promises):
    return Fraction(1)


@pytest.mark.parametrize("mistake", ["all of the shares", "rho", "choice", "plan"])
def test_twin_shares_used_in_full_or_steps_that_were_forgotten(monkeypatch, mistake):
    """Noise as if all of it were one continuous Gaussian; a choice that costs ten times as much."""
    options, reason = {}, "AssertionError"
    if mistake == "all of the shares":
        monkeypatch.setattr(budget_module, "find_usable_share", _use_all)
    elif mistake == "rho":
        monkeypatch.setattr(budget_module.Budget, "rho", Fraction(0))
    elif mistake == "choice":
        monkeypatch.setattr(
            budget_module.Budget,
            "spend_on_selection",
            lambda self, name, cost: _overspent(self, name, cost),
        )
    else:
        monkeypatch.setattr(CorrectionBudget, "list_steps", lambda *given: [])
        reason = "PrivacyError"
    with pytest.raises((AssertionError, PrivacyError)) as refused:
        test_with_delta_all_that_was_released_keeps_the_promise(monkeypatch, "histogram", options)
    assert refused.typename == reason


def _overspent(budget, name, cost):
    budget.spend(name, cost)
    return Fraction(math.sqrt(80 * float(cost)))


def renyi(p, q, order):
    """Divergence of two laws, given by the logarithms of their probabilities."""
    return float(logsumexp(order * p + (1 - order) * q)) / (order - 1)


@pytest.mark.parametrize("selection", [budget_module.Budget.spend_on_selection, _overspent])
def test_a_choice_keeps_the_rho_that_it_was_given(selection):
    """All pairs of neighbouring qualities of three candidates, many orders, worked out exactly."""
    worst_rho, rho = 0.0, Fraction(1, 20)
    budget = Budget(3.0, 1e-2)
    budget.usable_share = Fraction(1)
    epsilon = float(selection(budget, "choice", rho))
    for base in itertools.product(range(0, 40, 8), repeat=2):
        for move in itertools.product((0, 1), repeat=3):
            p, q = (
                log_softmax(epsilon * (np.array([0, *base]) + add)) for add in (0, np.array(move))
            )
            for order in (1.01, 2.0, 5.0, 30.0):
                worst_rho = max(worst_rho, *(renyi(*x, order) / order for x in ((p, q), (q, p))))
    kept = worst_rho <= rho
    assert kept is (selection is not _overspent)
    assert worst_rho > float(rho) / 4  # the test does measure something


def test_with_delta_both_ways_that_class_counts_may_choose_are_promised(monkeypatch):
    """What is promised holds for the mechanism, so that it is the same whatever came out of it.

    With few people the histogram takes few features under pure noise, with many all of them under
    Gaussian noise.
    """
    noises, _ = spied(monkeypatch)
    many = train(MANY, "histogram", 1.0, SCHEMA, delta=1e-6).model.guarantee
    gaussian = noises[-1][2]
    noises.clear()
    monkeypatch.setattr(histogram_module, "count_affordable_features", lambda *given: 1)
    use_gaussian(monkeypatch, False)
    few = train(MANY, "histogram", 1.0, SCHEMA, delta=1e-6).model.guarantee
    assert not any(noise.gaussian for noise, *_ in noises)  # it was the other way
    assert (few.epsilon, few.delta, few.rho) == (many.epsilon, many.delta, many.rho)
    # the divergence of the pure way alone: a record in one cell of the chosen table
    scale, x = float(noises[-1][0].parameter), np.arange(-1000, 1001)
    p, q = (log_softmax(-np.abs(x - moved) / scale) for moved in (0, 1))
    found = max(renyi(p, q, order) / order for order in (1.01, 1.5, 2.0, 5.0))
    assert found <= few.rho
    assert found > 4 * gaussian.rho  # known bad: to state the rho of the Gaussian way for both


def test_without_a_choice_of_features_the_rho_is_that_of_the_gaussian_way(monkeypatch):
    spied(monkeypatch)
    promise = train(MANY, "histogram", 1.0, SCHEMA, delta=1e-6, selection=False).model.guarantee
    assert promise.rho == pytest.approx(compute_gaussian_rho(1.0, 1e-6), rel=0.01)


# Weights: one record counts up to max_weight, and the noise is for that much.


WEIGHTED = [(*record, weight) for record in RECORDS[::3] for weight in (0.3, 2.5)]
LARGEST = 2.5
UNIT = 1024
"""Steps of the largest weight, in which weights are counted."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [(20 * UNIT, 30 * UNIT), (4 * UNIT, 3 * UNIT)], ids=["all features", "few features"]
)
def test_a_weighted_record_costs_at_most_epsilon(monkeypatch, first):
    bases = [[], WEIGHTED[:1], WEIGHTED[3:12]]
    options = {"added": WEIGHTED, "first": first, "max_weight": LARGEST}
    found = worst(monkeypatch, "histogram", bases, **options)
    assert Fraction(EPSILON) / 3 < found <= Fraction(EPSILON)


@pytest.mark.parametrize("released", ["class counts", "table of a", "choice"])
def test_twin_noise_for_one_step_of_a_weight(monkeypatch, released):
    """Noise for a change of one in what a record changes by 1024."""
    real = budget_module.Budget.spend_on_noise

    def noise(budget, name, share, sensitivity=1, coordinates=1):
        return real(budget, name, share, 1 if name == released else sensitivity, coordinates)

    monkeypatch.setattr(budget_module.Budget, "spend_on_noise", noise)
    if released == "choice":
        true = Transcript.choose
        monkeypatch.setattr(
            Transcript,
            "choose",
            lambda self, quality, epsilon, random: true(self, quality, epsilon * UNIT, random),
        )
    first = (4 * UNIT, 3 * UNIT) if released == "choice" else (20 * UNIT, 30 * UNIT)
    options = {"added": WEIGHTED, "first": first, "max_weight": LARGEST}
    assert worst(monkeypatch, "histogram", [WEIGHTED[3:12]], **options) > 2 * Fraction(EPSILON)


# Smooth sensitivity, at sizes where trimming leaves something over.


SLACK = Fraction(1, 10**9)
"""Of float arithmetic in the smooth bounds and in this test."""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["smooth", "trimmed"])
@pytest.mark.parametrize("missing", ["skip", "category"])
@pytest.mark.parametrize(("size", "epsilon"), [(60, 0.7), (60, 20.0), (400, 5.0)])
def test_a_record_costs_at_most_epsilon_in_a_crowd(monkeypatch, method, missing, size, epsilon):
    schema = replace(SCHEMA, missing=missing)
    options = {"first": (size // 3, 2 * size // 3), "epsilon": epsilon, "schema": schema}
    base = crowd(size)
    given, _, trained = transcript_of(monkeypatch, base, method, **options)
    names = [charge.name for charge in trained.model.guarantee.charges]
    assert ("presence of a" in names) is (missing == "category")
    laplace = [step for step in given if step[0] == "laplace"]
    assert len(laplace) == (4 if missing == "category" else 2)
    found = worst(monkeypatch, method, [base], **options)
    assert Fraction(epsilon) / 4 < found <= Fraction(epsilon) + SLACK


def test_twin_a_trimmed_bound_that_is_too_small(monkeypatch):
    """A bound a thousand times too small."""
    true = smooth_sensitivity.bound_trimmed_mean_sensitivity
    monkeypatch.setattr(
        smooth_sensitivity, "bound_trimmed_mean_sensitivity", lambda *given: true(*given) / 1000
    )
    options = {"first": (20, 40), "epsilon": 5.0}
    assert worst(monkeypatch, "trimmed", [crowd(60)], **options) > 10


@pytest.mark.parametrize("twin", ["noiseless", "unpaid"])
def test_twin_presence_that_is_nearly_noiseless_or_unpaid(monkeypatch, twin):
    """How many values are missing is a release like any other."""
    real = budget_module.Budget.spend_on_noise

    def noise(budget, name, share, sensitivity=1):
        if "presence" not in name:
            return real(budget, name, share, sensitivity)
        if twin == "noiseless":
            return budget_module.IntegerNoise(Fraction(1, 1000))
        return budget_module.IntegerNoise(1 / share)

    monkeypatch.setattr(budget_module.Budget, "spend_on_noise", noise)
    schema = replace(SCHEMA, missing="category")
    *_, trained = transcript_of(monkeypatch, crowd(60), "smooth", schema=schema)
    if twin == "noiseless":
        found = worst(monkeypatch, "smooth", [crowd(60)], schema=schema)
        assert found > Fraction(EPSILON) + SLACK
    else:
        spent = sum(charge.epsilon for charge in trained.model.guarantee.charges)
        assert spent < 0.9 * EPSILON  # what test_the_charges_add_up_... refuses


FAR = Schema([Numeric("a", 1.7e9, 1.7e9 + 1, optional=False)], "class", ["no"], outliers="clip")


def far_cost(monkeypatch, method, ones=10_000):
    """One record beside 20,000 that lie a grid step apart, in seconds since 1970."""
    base = [(1.7e9 + 0.5, "x", "no")] * (20_000 - ones)
    base += [(1.7e9 + 0.5 + 2**-16, "x", "no")] * ones
    more = [[*base, (1.7e9 + a, "x", "no")] for a in (0.0, 0.3, 0.5 + 2**-16, 1.0)]
    given, *others = (
        transcript_of(monkeypatch, records, method, (20_000,), 1.0, FAR)[0]
        for records in (base, *more)
    )
    return max(cost(given, other) for other in others)


@pytest.mark.parametrize("method", ["smooth", "trimmed", "moments", "global"])
def test_bounds_far_from_zero_cost_no_privacy(monkeypatch, method):
    assert Fraction(1, 4) < far_cost(monkeypatch, method) <= 1 + SLACK


def next_to_a_rounding():
    """How many values one step up make a trimmed mean that one more moves over a rounding."""
    share = Fraction(1, 3)  # of epsilon 1: class counts, mean and variance
    trim = compute_trim(20_000.0, Cauchy().calibrate(float(share))[1])
    kept = 20_000 - 2 * trim
    # half way between floats as large as the bound
    middles = (Fraction(1, 2) + Fraction(odd, 128) for odd in range(1, 64, 2))
    return next(
        trim + below
        for middle in middles
        if (below := math.floor(middle * kept)) + 1 > middle * (kept + 1)
    )


def test_next_to_a_rounding_trimming_costs_no_privacy(monkeypatch):
    assert far_cost(monkeypatch, "trimmed", next_to_a_rounding()) <= 1 + SLACK


def test_twin_a_trimmed_mean_rounded_to_a_float_near_the_lower_bound(monkeypatch):
    """Its sensitivity lies far below the rounding of numbers as large as the bound."""
    true, low = smooth_sensitivity.compute_trimmed_mean, 1.7e9 * 2**16

    def rounded(k, trim, lower, upper):
        return Fraction(float(low + float(true(k, trim, lower, upper)))) - Fraction(low)

    monkeypatch.setattr(smooth_sensitivity, "compute_trimmed_mean", rounded)
    assert far_cost(monkeypatch, "trimmed", next_to_a_rounding()) > 3


@pytest.mark.parametrize("law", [Gaussian(), Laplace(), Cauchy(), LaplaceLogNormal()])
def test_shares_of_epsilon_and_delta_add_up_to_the_whole(monkeypatch, law):
    """The laws are calibrated with shares that together are never more than what is promised."""
    asked, real = [], type(law).calibrate

    def calibrate(self, epsilon, delta=0.0):
        asked.append((Fraction(epsilon), Fraction(delta)))
        return real(self, epsilon, delta)

    monkeypatch.setattr(type(law), "calibrate", calibrate)
    noises = []
    noise = budget_module.Budget.spend_on_noise
    monkeypatch.setattr(
        budget_module.Budget,
        "spend_on_noise",
        lambda budget, *given: noises.append(noise(budget, *given)) or noises[-1],
    )
    schema = replace(SCHEMA, missing="category")
    train([], "smooth", 2.0, schema, delta=1e-5)  # finds scales twice: to check, and to draw
    asked.clear()
    noises.clear()
    promise = train(crowd(60), "smooth", 2.0, schema, delta=1e-5, noise=law).model.guarantee
    drawn = asked[len(asked) // 3 :]  # of three, the first is the check beforehand
    assert len(drawn) == 2
    if law.promise == "concentrated":
        rho = sum(epsilon**2 / 2 for epsilon, _ in drawn)
        rho += sum(1 / (2 * one.parameter) for one in noises)
        assert rho <= Fraction(promise.rho)
        assert convert_rho_to_epsilon(float(rho), 1e-5) <= 2.0
        return
    pure = sum(1 / one.parameter for one in noises)
    assert pure + sum(epsilon for epsilon, _ in drawn) <= 2
    assert sum(delta for _, delta in drawn) <= Fraction(1e-5)
    assert (sum(delta for _, delta in drawn) > 0) is (law.promise == "approximate")


def test_twin_every_share_with_the_whole_delta(monkeypatch):
    monkeypatch.setattr(
        budget_module.Budget, "compute_delta_share", lambda budget, cost: budget.delta
    )
    with pytest.raises(AssertionError):
        test_shares_of_epsilon_and_delta_add_up_to_the_whole(monkeypatch, Gaussian())
