import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from discreet import Categorical, EstimationError, Numeric, Schema, Statistics, estimate
from discreet.estimation.from_statistics import _compute_expected_shares, norm_cut, norm_sub
from discreet.privacy.guarantee import Guarantee
from discreet.schema.cells import Cells
from discreet.statistics.statistics import Moments, Table
from discreet.tables.in_memory import count_arrays

numbers = arrays(float, st.integers(1, 12), elements=st.floats(-100, 100))


@pytest.mark.slow
@given(numbers, st.floats(0.1, 100))
def test_norm_sub_is_the_projection_on_the_simplex(x, total):
    result = norm_sub(x, total)
    assert (result >= 0).all()
    assert result.sum() == pytest.approx(total, rel=1e-9)
    # optimality (KKT): one constant separates the kept cells from the dropped ones
    kept = result > 0
    shift = (x - result)[kept]
    assert np.ptp(shift) < 1e-9
    assert (x[~kept] <= shift.mean() + 1e-9).all()


def test_norm_sub_against_a_general_optimiser():
    x = np.array([3.0, -1.0, 2.5, 0.2])
    best = minimize(
        lambda z: ((z - x) ** 2).sum(),
        np.ones(4),
        bounds=[(0, None)] * 4,
        constraints={"type": "eq", "fun": lambda z: z.sum() - 4.0},
    ).x
    np.testing.assert_allclose(norm_sub(x, 4.0), best, atol=1e-5)


@pytest.mark.slow
@given(numbers, st.floats(0.1, 100))
def test_norm_cut_keeps_the_largest_that_fit(x, total):
    result = norm_cut(x, total)
    assert (result >= 0).all()
    kept = result > 0
    assert (result[kept] == x[kept]).all()
    assert result.sum() <= total * (1 + 1e-9) or kept.sum() == 1
    if kept.any() and (~kept).any():
        assert x[kept].min() >= x[~kept].max()


SCHEMA = Schema([Categorical("a", ["x", "y", "z"], optional=False)], "c", ["no", "yes"])


def noisy(counts, variance, totals=(60.0, 40.0)):
    cells = Cells.from_schema(SCHEMA, "a")
    counts = np.array(counts, float)
    return Statistics(
        SCHEMA,
        np.array(totals),
        np.full(2, float(variance)),
        {"a": Table(cells, counts, np.full((2, 3), float(variance)))},
        guarantee=Guarantee(1.0),
    )


def conditional(statistics, postprocess, **options):
    model = estimate(statistics, postprocess, **options)
    return np.exp(model.factors[0].log_probability)


@pytest.mark.parametrize("postprocess", ["none", "paper", "norm-sub", "norm-cut", "bayes"])
def test_probabilities_are_valid_whatever_the_noise_did(postprocess):
    rng = np.random.default_rng(0)
    for _ in range(50):
        statistics = noisy(rng.normal(15, 40, (2, 3)), 1600, rng.normal(50, 60, 2))
        model = estimate(statistics, postprocess)
        probability = np.exp(model.factors[0].log_probability)
        assert (probability > 0).all()
        if postprocess == "bayes":  # toned-down evidence sums to at most one
            assert (probability.sum(axis=1) <= 1 + 1e-9).all()
        else:
            np.testing.assert_allclose(probability.sum(axis=1), 1)
        prior = np.exp(model.log_prior)
        assert (prior > 0).all()
        assert prior.sum() == pytest.approx(1)
        assert model.guarantee == statistics.guarantee


def test_what_each_choice_does_to_the_same_numbers():
    statistics = noisy([[50, 14, -4], [30, -6, 16]], 25)
    np.testing.assert_allclose(
        conditional(statistics, "none", smoothing=0.0)[0], [50 / 64, 14 / 64, 0], atol=1e-9
    )
    np.testing.assert_allclose(conditional(statistics, "paper")[0], np.array([50, 14, 1]) / 65)
    np.testing.assert_allclose(
        conditional(statistics, "norm-sub", smoothing=0.0)[0], np.array([48, 12, 0]) / 60, atol=1e-9
    )
    np.testing.assert_allclose(
        conditional(statistics, "norm-cut", smoothing=0.0)[0], [1, 0, 0], atol=1e-9
    )


def test_the_default_is_plain_for_exact_and_bayes_for_noisy_numbers():
    exact = noisy([[50, 10, 0], [30, 0, 10]], 0)
    np.testing.assert_array_equal(conditional(exact, None), conditional(exact, "none"))
    loud = noisy([[50, 14, -4], [30, -6, 16]], 25)
    np.testing.assert_array_equal(conditional(loud, None), conditional(loud, "bayes"))


def test_bayes_trusts_clear_numbers_and_ignores_pure_noise():
    clear = conditional(noisy([[5000, 900, 100], [300, 700, 3000]], 1, (6000, 4000)), "bayes")
    np.testing.assert_allclose(clear[0], np.array([5000, 900, 100]) / 6000, atol=0.02)
    np.testing.assert_allclose(clear[1], np.array([300, 700, 3000]) / 4000, atol=0.02)
    drowned = conditional(noisy([[50, 14, -4], [30, -6, 16]], 1e6), "bayes")
    log_ratio = np.log(drowned[0] / drowned[1])
    assert np.abs(log_ratio).max() < 0.05


def test_bayes_beats_plain_clipping_under_noise():
    rng = np.random.default_rng(5)
    truth = np.array([[0.5, 0.3, 0.2], [0.45, 0.3, 0.25]])
    loss = {"none": 0.0, "bayes": 0.0}
    for _ in range(300):
        counts = truth * np.array([[60], [40]]) + rng.laplace(0, 8, (2, 3))
        for choice in loss:
            guess = conditional(noisy(counts, 128), choice)
            loss[choice] += (truth * np.log(truth / guess)).sum()
    assert loss["bayes"] < 0.5 * loss["none"]


def test_class_shares_under_noise_are_posterior_means():
    """Two classes: a normal law cut off at nothing and at everyone."""
    from scipy.stats import truncnorm

    for share, noise in ((0.7, 0.01), (1.3, 0.38), (0.2, 0.5), (-0.4, 0.1)):
        found = _compute_expected_shares(np.array([share, 1 - share]), np.array([noise, noise]))
        wanted = truncnorm(-share / noise, (1 - share) / noise, share, noise).mean()
        np.testing.assert_allclose(found, [wanted, 1 - wanted], atol=2e-4)
    nothing_known = _compute_expected_shares(np.array([2.0, -3.0, 2.0]), np.full(3, 1e3))
    np.testing.assert_allclose(nothing_known, 1 / 3, atol=1e-3)
    exact = _compute_expected_shares(np.array([0.6, 0.3, 0.1]), np.zeros(3))
    np.testing.assert_allclose(exact, [0.6, 0.3, 0.1], atol=1e-6)


def test_features_that_repeat_each_other_are_toned_down():
    names = [f"copy{i}" for i in range(30)]
    schema = Schema([Categorical(n, ["x", "y"], optional=False) for n in names], "c", ["no", "yes"])
    counts = np.array([[450.0, 150.0], [120.0, 280.0]])
    tables = {n: Table(Cells.from_schema(schema, n), counts, np.full((2, 2), 4.0)) for n in names}
    totals, noise = np.array([600.0, 400.0]), np.full(2, 4.0)

    def log_odds(chosen):
        some = Statistics(schema, totals, noise, {n: tables[n] for n in chosen})
        factor = estimate(some, "bayes").factors[0].log_probability
        return factor[0, 0] - factor[1, 0]

    assert log_odds(names[:1]) == pytest.approx(np.log(450 / 600 / (120 / 400)), abs=0.1)
    # by as much as they may be, and no more
    assert 0.65 < log_odds(names) / log_odds(names[:1]) < 0.75


def test_a_missing_cell_is_ignored_or_a_value_as_the_schema_says():
    column = np.array(["x", "x", None, "y"], dtype=object)
    codes = np.array([0, 0, 0, 1], dtype=np.int32)
    for missing, expected in (("skip", [3 / 4, 1 / 4, 1]), ("category", [3 / 6, 1 / 6, 2 / 6])):
        schema = Schema([Categorical("a", ["x", "y"])], "c", [0, 1], missing=missing)
        model = estimate(count_arrays(schema, {"a": column}, codes))
        np.testing.assert_allclose(np.exp(model.factors[0].log_probability[0]), expected)


def test_noisy_moments_become_a_proper_density():
    schema = Schema([Numeric("x", 0, 10)], "c", [0, 1])
    moments = Moments(
        schema["x"],
        np.array([50.0, 40.0]),
        np.array([900.0, 200.0]),
        np.array([-50.0, 1500.0]),
        np.zeros(2),
        np.zeros(2),
        variances=np.ones((3, 2)),
    )
    statistics = Statistics(schema, np.array([50.0, 40.0]), np.ones(2), moments={"x": moments})
    factor = estimate(statistics).factors[0]
    assert ((factor.mean >= 0) & (factor.mean <= 10)).all()
    assert factor.mean[0] > 9 > 6 > factor.mean[1] > 4
    # a variance below zero becomes its own noise: that of the squares, and of the mean squared
    assert factor.variance[0] == pytest.approx(np.sqrt(1 + 4 * 10**2) / 50, rel=1e-3)
    assert factor.variance[0] < factor.variance[1] < 25


def test_clear_errors():
    statistics = noisy([[1, 1, 1], [1, 1, 1]], 0)
    with pytest.raises(EstimationError, match="write one of"):
        estimate(statistics, "magic")
    with pytest.raises(EstimationError, match="at least 0"):
        estimate(statistics, smoothing=-1)
    with pytest.raises(EstimationError, match="there are no records"):
        estimate(noisy([[0, 0, 0], [0, 0, 0]], 0, (0, 0)))
    schema = Schema([Numeric("x")], "c", [0, 1])
    free = count_arrays(schema, {"x": np.arange(4.0)}, np.array([0, 0, 1, 1], dtype=np.int32))
    with pytest.raises(EstimationError, match="no public bounds"):
        estimate(free, likelihood="truncated")
    with pytest.raises(EstimationError, match="likelihood"):
        estimate(free, likelihood="cauchy")
