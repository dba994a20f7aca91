"""What makes two results of the package the same, for all tests that compare some."""

from __future__ import annotations

import numpy as np

from discreet import Statistics
from discreet.collection.tally import Tally


def assert_same_tally(one: Tally, two: Tally, by_id: bool = True) -> None:
    """The same counts and refusals; and of the same reports, if ``by_id``."""
    assert one.collection.digest == two.collection.digest
    assert one.counted.tolist() == two.counted.tolist()
    assert [part.tolist() for part in one.sums] == [part.tolist() for part in two.sums]
    assert +one.rejected == +two.rejected
    assert one.repeated == two.repeated
    assert one.batches == two.batches
    if by_id:
        assert one.seen == two.seen
        assert one.simulated == two.simulated


def assert_same_statistics(one: Statistics, two: Statistics) -> None:
    """Integers identical, floats to twelve digits."""
    digits = {"rtol": 1e-12, "atol": 1e-12}
    assert list(one.tables) == list(two.tables)
    assert list(one.moments) == list(two.moments)
    assert list(one.order_statistics) == list(two.order_statistics)
    assert one.totals.dtype == two.totals.dtype
    np.testing.assert_array_equal(one.totals, two.totals)
    for name, table in one.tables.items():
        assert table.cells == two.tables[name].cells
        assert table.counts.dtype == two.tables[name].counts.dtype
        np.testing.assert_array_equal(table.counts, two.tables[name].counts, err_msg=name)
    for name, moments in one.moments.items():
        other = two.moments[name]
        assert moments.step == other.step
        np.testing.assert_array_equal(moments.counts, other.counts, err_msg=name)
        np.testing.assert_array_equal(moments.missing, other.missing, err_msg=name)
        if moments.totals.dtype == np.int64:
            for key in ("totals", "squares", "origin"):
                np.testing.assert_array_equal(getattr(moments, key), getattr(other, key))
            assert moments.squares.dtype == other.squares.dtype == np.int64
        np.testing.assert_allclose(moments.mean, other.mean, **digits)
        np.testing.assert_allclose(moments.variance, other.variance, **digits)
    for name, order in one.order_statistics.items():
        np.testing.assert_array_equal(order.grid_indices, two.order_statistics[name].grid_indices)
        np.testing.assert_array_equal(order.counts, two.order_statistics[name].counts)
