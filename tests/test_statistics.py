import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import (
    Categorical,
    EstimationError,
    FormatError,
    Guarantee,
    Numeric,
    Schema,
    SchemaError,
    Statistics,
)
from discreet.statistics.statistics import Table, compute_precision_weighted_mean
from discreet.tables.in_memory import CountRequest, count_arrays


def public(**options):
    return Schema(
        [Numeric("age", 0, 100), Categorical("colour", ["red", "blue", "green"])],
        "y",
        ["no", "yes"],
        **options,
    )


def rows(n, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "blue", None], n).astype(object)
    return {"age": np.clip(rng.normal(50 + shift, 9, n), 0, 100), "colour": colour}, rng.integers(
        0, 2, n
    ).astype(np.int32)


def same(one, two, **tolerance):
    np.testing.assert_array_equal(one.totals, two.totals)
    for name, table in one.tables.items():
        np.testing.assert_array_equal(table.counts, two.tables[name].counts)
    for name, moments in one.moments.items():
        other = two.moments[name]
        for part in ("counts", "mean", "variance", "missing"):
            np.testing.assert_allclose(getattr(moments, part), getattr(other, part), **tolerance)


def test_zero_cells_are_counted_too():
    columns, codes = rows(50)
    table = count_arrays(public(), columns, codes).tables["colour"]
    assert table.cells.labels == ("red", "blue", "green", "(missing)")
    assert table.counts[:, 2].tolist() == [0, 0]
    assert table.counts.sum() == 50


def test_two_halves_add_up_to_the_whole():
    columns, codes = rows(1001)
    half = 400
    parts = [
        count_arrays(
            public(),
            {n: c[s] for n, c in columns.items()},
            codes[s],
            CountRequest(bins=7, order=True, moments=m),
        )
        for m in ("float", "grid")
        for s in (slice(half), slice(half, None))
    ]
    for whole, one, two in (
        (count_arrays(public(), columns, codes, CountRequest(bins=7, order=True)), *parts[:2]),
        (
            count_arrays(
                public(), columns, codes, CountRequest(bins=7, moments="grid", order=True)
            ),
            *parts[2:],
        ),
    ):
        same(one + two, whole, rtol=1e-12)
        added, direct = (one + two).order_statistics["age"], whole.order_statistics["age"]
        np.testing.assert_array_equal(added.grid_indices, direct.grid_indices)
        np.testing.assert_array_equal(added.counts, direct.counts)


def test_sums_far_from_zero_keep_their_digits():
    schema = Schema([Numeric("x")], "y", [0, 1])
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, 2000).astype(np.int32)
    x = 1e9 * codes + rng.normal(0, 1e-2, 2000)
    whole = count_arrays(schema, {"x": x}, codes).moments["x"]
    halves = [count_arrays(schema, {"x": x[s]}, codes[s]) for s in (slice(900), slice(900, None))]
    merged = (halves[0] + halves[1]).moments["x"]
    for c in (0, 1):
        truth = x[codes == c]
        assert whole.mean[c] == pytest.approx(truth.mean(), rel=1e-15)
        assert whole.variance[c] == pytest.approx(truth.var(), rel=1e-6)
        assert merged.variance[c] == pytest.approx(truth.var(), rel=1e-3)


def test_grid_sums_are_integers_near_the_truth():
    columns, codes = rows(5000)
    moments = count_arrays(public(), columns, codes, CountRequest(moments="grid")).moments["age"]
    assert moments.totals.dtype == moments.squares.dtype == np.int64
    for c in (0, 1):
        truth = columns["age"][codes == c]
        assert moments.mean[c] == pytest.approx(truth.mean(), abs=moments.step / 2)
        assert moments.variance[c] == pytest.approx(truth.var(), rel=1e-3)


def test_weights_count_as_repetitions():
    columns, codes = rows(300)
    times = np.random.default_rng(2).integers(0, 4, 300)
    weighted = count_arrays(
        public(), columns, codes, CountRequest(bins=5), weights=times.astype(float)
    )
    repeated = count_arrays(
        public(),
        {n: np.repeat(c, times) for n, c in columns.items()},
        np.repeat(codes, times),
        CountRequest(bins=5),
    )
    same(weighted, repeated, rtol=1e-10)
    for wrong in ([1.0], -np.ones(300), np.full(300, np.nan)):
        with pytest.raises(SchemaError, match="weight"):
            count_arrays(public(), columns, codes, weights=wrong)
    with pytest.raises(SchemaError, match="moments='float'"):
        count_arrays(public(), columns, codes, CountRequest(moments="grid"), weights=np.ones(300))


def test_other_people_other_schemas():
    columns, codes = rows(10)
    one = count_arrays(public(), columns, codes)
    with pytest.raises(EstimationError, match="different schemas"):
        one + count_arrays(public(unseen="other"), columns, codes)
    with pytest.raises(EstimationError, match="different features"):
        one + count_arrays(public(), columns, codes, CountRequest(moments=None))
    with pytest.raises(EstimationError, match="other cells"):
        count_arrays(public(), columns, codes, CountRequest(bins=4)) + count_arrays(
            public(), columns, codes, CountRequest(bins=5)
        )
    with pytest.raises(TypeError):
        one + 1


def test_the_promise_of_a_sum_is_the_weaker_one():
    totals = np.array([10.0, 20.0])
    one = Statistics(public(), totals, np.ones(2), guarantee=Guarantee(1.0))
    two = Statistics(public(), totals, np.ones(2), guarantee=Guarantee(2.0).void_if(simulated=True))
    both = one + two
    assert both.guarantee.epsilon == 2.0
    assert both.guarantee.simulated
    assert both.variances.tolist() == [2, 2]
    assert not both.is_exact


def test_json_round_trip_and_damage():
    columns, codes = rows(200)
    for moments in ("grid", "float"):
        before = count_arrays(public(), columns, codes, CountRequest(bins=6, moments=moments))
        after = Statistics.from_json(before.to_json())
        same(before, after, rtol=0)
        assert after.tables["age"].cells == before.tables["age"].cells
        assert after.moments["age"].totals.dtype == before.moments["age"].totals.dtype
        assert after.is_exact
    text = before.to_json()
    for damaged in (text[:-20], text.replace('"no"', '"No"'), text.replace("[", "[9, ", 1)):
        with pytest.raises(FormatError):
            Statistics.from_json(damaged)


def test_noise_that_is_opposed_between_classes_travels_and_adds_up():
    columns, codes = rows(200)
    exact = count_arrays(public(), columns, codes)
    noise = np.full(exact.tables["colour"].counts.shape, 9.0)
    cells, counts = exact.tables["colour"].cells, exact.tables["colour"].counts
    one, other = Table(cells, counts, noise, 0.9), Table(cells, counts, 2 * noise, 0.3)
    read = Statistics.from_json(replace(exact, tables={"colour": one}).to_json()).tables["colour"]
    assert read.cancelling_share == 0.9
    np.testing.assert_allclose(read.between_class_variances, 9 * 1.9)  # of two classes
    assert (one + other).cancelling_share == pytest.approx((0.9 + 2 * 0.3) / 3)
    assert (Table(cells, counts) + Table(cells, counts)).cancelling_share == 0.0
    text = replace(exact, tables={"colour": replace(one, cancelling_share=1.5)}).to_json()
    with pytest.raises(FormatError, match="opposed"):
        Statistics.from_json(text)


def test_shapes_must_fit():
    with pytest.raises(EstimationError, match="do not fit 2 classes"):
        Statistics(public(), np.zeros(3))
    columns, codes = rows(5)
    cells = count_arrays(public(), columns, codes).tables["colour"].cells
    with pytest.raises(EstimationError, match="do not fit 4 cells"):
        Table(cells, np.zeros((2, 3)))


def test_no_rows_are_all_zeros():
    empty = count_arrays(
        public(),
        {"age": np.array([]), "colour": np.array([], dtype=object)},
        np.array([], dtype=np.int32),
        CountRequest(bins=3, order=True),
    )
    assert empty.totals.sum() == 0
    assert empty.tables["colour"].counts.shape == (2, 4)


def test_the_precision_weighted_mean_has_the_smallest_variance():
    rng = np.random.default_rng(0)
    deviations = np.array([0.5, 1.0, 4.0])
    draws = 1e6 + rng.normal(0, 1, (3, 20_000)) * deviations[:, None]
    mean, variance = compute_precision_weighted_mean(list(draws), list(deviations**2))
    assert np.var(mean) == pytest.approx(variance[0], rel=0.05)
    for weights in ([1 / 3] * 3, [1, 0, 0], [0.5, 0.5, 0]):
        assert variance[0] < np.dot(np.square(weights), deviations**2)


def test_exact_estimates_outweigh_noisy_ones_and_unknown_ones_do_not_count():
    exact, noisy, unknown = [5.0, 5.0], [9.0, 1.0], [1e9, -1e9]
    mean, variance = compute_precision_weighted_mean([noisy, exact], [4.0, 0.0])
    assert mean.tolist() == exact
    assert variance.tolist() == [0, 0]
    mean, variance = compute_precision_weighted_mean([noisy, unknown], [4.0, math.inf])
    assert mean.tolist() == noisy
    assert variance.tolist() == [4, 4]
    mean, variance = compute_precision_weighted_mean([noisy, exact], [math.inf, math.inf])
    assert mean.tolist() == [7, 3]
    assert np.isinf(variance).all()


def test_one_weight_an_estimate_keeps_sums_and_one_a_number_follows_each_variance():
    estimates = np.array([[[1.0, 2.0], [3.0, 4.0]], [[4.0, 3.0], [2.0, 1.0]]])
    variances = np.array([[[1.0, 9.0], [1.0, 9.0]], [[2.0, 2.0], [2.0, 2.0]]])
    mean, noise = compute_precision_weighted_mean(list(estimates), list(variances))
    assert mean.sum() == pytest.approx(10)  # as in both estimates
    weight = 2 / 7
    np.testing.assert_allclose(noise, weight**2 * variances[0] + (1 - weight) ** 2 * variances[1])
    mean, noise = compute_precision_weighted_mean(
        list(estimates), list(variances), elementwise=True
    )
    assert mean[0].tolist() == pytest.approx([(2 * 1 + 4) / 3, (2 * 2 + 9 * 3) / 11])
    np.testing.assert_allclose(noise, 1 / (1 / variances).sum(axis=0))


@pytest.mark.parametrize("variances", [[1.0], [1.0, -1.0], [1.0, math.nan]])
def test_invalid_variances_are_refused(variances):
    with pytest.raises(EstimationError):
        compute_precision_weighted_mean([[1.0], [2.0]], variances)
