"""What is counted of a row is, to the last bit, a function of that row alone.

The proof for corrections says that one more record adds its own residuals and leaves those of all
others as they are. In floating point that is a claim about how numbers are computed: in which
order they are added, by how many at a time, and where they lie in memory.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet import Categorical, Schema
from discreet.central import corrections as corrections_module
from discreet.central import rare_classes
from discreet.central import temperature as temperature_module
from discreet.central.budget import IntegerNoise
from discreet.central.corrections import (
    CorrectionState,
    compute_residuals,
    compute_truncated_log_likelihood,
)
from discreet.central.selection import RowSample, count_correct
from discreet.central.temperature import compute_temperature_gains
from discreet.estimation.corrections import AdditiveModel
from discreet.estimation.log_ratios import LogRatios
from discreet.randomness import SeededRandom
from discreet.schema.cells import Cells
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Statistics, Table

ROWS = 67
CLASSES = [2, 3, 5, 8, 9, 17, 40]
"""From eight on NumPy adds in another order where it can."""


def people(classes, seed=0):
    """Scores as they are, near and far apart, and the class of every row."""
    rng = np.random.default_rng([seed, classes])
    scores = rng.normal(0, 1, (ROWS, classes)) * rng.choice([0.01, 1.0, 8.0, 300.0], (ROWS, 1))
    return scores, rng.integers(0, classes, ROWS)


def selections():
    """Subsets and orders of rows: one alone, neighbours, every second, backwards, at random."""
    rng = np.random.default_rng(1)
    every = np.arange(ROWS)
    yield from ([row] for row in every)
    yield from (every[start:stop] for start in range(9) for stop in range(start + 2, ROWS, 7))
    yield from (every[::step] for step in (-1, 2, 3, 5))
    yield from (rng.permutation(ROWS)[:size] for size in (2, 7, 8, 9, 31, ROWS))


def placed(numbers, offset):
    """The same numbers somewhere else in memory, also where no float should be."""
    memory = np.empty(numbers.nbytes + offset, dtype=np.uint8)
    moved = np.ndarray(numbers.shape, np.float64, buffer=memory, offset=offset)
    moved[:] = numbers
    return moved


def placements(scores):
    """The same scores in every order of memory and at every alignment."""
    yield scores
    yield np.asfortranarray(scores)
    yield np.repeat(scores, 2, axis=1)[:, ::2]
    yield np.repeat(scores, 3, axis=0)[::3]
    yield from (placed(scores, offset) for offset in (1, 4, 8, 16, 24, 40, 56))


def is_local(function, classes, every=1):
    """Whether every row has the same bits in every subset, order and place."""
    scores, codes = people(classes)
    expected = function(scores, codes)
    return all(
        function(part, codes[rows]).tobytes() == expected[rows].tobytes()
        for rows in map(np.asarray, list(selections())[::every])
        for part in placements(scores[rows])
    )


def counted(scores, codes):
    """Residuals and curvature of every row."""
    left, curved = compute_residuals(scores, codes)
    return np.ascontiguousarray(np.column_stack([left, curved]))


def unrounded(scores, codes):
    """As they are before they are rounded: what differs in the last bit rarely survives that."""
    unit = corrections_module.RESIDUAL_STEPS
    corrections_module.RESIDUAL_STEPS = 2**60
    try:
        return counted(scores, codes)
    finally:
        corrections_module.RESIDUAL_STEPS = unit


def likely(scores, codes):
    """What every row adds to the quality of a start: of a sum of whole numbers."""
    unit = corrections_module.RESIDUAL_STEPS
    corrections_module.RESIDUAL_STEPS = 2**40  # what differs in the last bits may show
    try:
        whole = compute_truncated_log_likelihood(scores, codes)
        alone = [
            compute_truncated_log_likelihood(scores[i : i + 1], codes[i : i + 1])
            for i in range(len(codes))
        ]
    finally:
        corrections_module.RESIDUAL_STEPS = unit
    assert whole == sum(alone)
    return np.array(alone)


@pytest.mark.slow
@pytest.mark.parametrize("function", [counted, unrounded])
@pytest.mark.parametrize("classes", CLASSES)
def test_residuals_of_a_row_are_the_same_bits_among_any_others(function, classes):
    assert is_local(function, classes)


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_the_quality_of_a_start_is_a_sum_over_rows(classes):
    assert is_local(likely, classes, every=9)


def gained(scores, codes):
    """What every row adds to the quality of each temperature."""
    unit = corrections_module.RESIDUAL_STEPS
    temperature_module.RESIDUAL_STEPS = 2**40  # what differs in the last bits may show
    try:
        return compute_temperature_gains(scores, codes)
    finally:
        temperature_module.RESIDUAL_STEPS = unit


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_the_quality_of_a_temperature_is_a_sum_over_rows(classes):
    assert is_local(gained, classes, every=9)


def gained_by_class(scores, codes):
    """What every row adds to the quality of each weight of the evidence."""
    unit = rare_classes.RESIDUAL_STEPS
    rare_classes.RESIDUAL_STEPS = 2**40  # what differs in the last bits may show
    try:
        log_prior = np.log([0.9, 0.1])
        weighted = [log_prior + weight * scores for weight in rare_classes.EVIDENCE_WEIGHTS]
        return rare_classes.compute_class_gains(weighted, codes, log_prior)
    finally:
        rare_classes.RESIDUAL_STEPS = unit


def test_the_quality_of_a_weight_of_evidence_is_a_sum_over_rows():
    assert is_local(gained_by_class, 2, every=9)


def test_twin_scores_less_the_largest_of_the_table():
    """Close to the same numbers, but one far record moves the last bits of all others."""

    def shifted(scores, codes):
        return unrounded(scores - scores.max(), codes)

    assert not is_local(shifted, 3)


@pytest.mark.parametrize("classes", [9, 17])
def test_twin_sums_in_the_order_of_the_memory(monkeypatch, classes):
    monkeypatch.setattr(corrections_module, "sum_rows", lambda numbers: numbers.sum(axis=1))
    monkeypatch.setattr(corrections_module.np, "ascontiguousarray", lambda numbers: numbers)
    assert not is_local(unrounded, classes)


def trained(classes, seed=2):
    """A sample of rows on three features, and a model that scores them."""
    rng = np.random.default_rng([seed, classes])
    schema = Schema(
        [Categorical(name, list("uvwxyz"), optional=False) for name in ("a", "b", "c")],
        "class",
        list(range(classes)),
    )
    tables = {
        name: Table(
            Cells.from_schema(schema, name),
            rng.integers(5, 900, (classes, 6)),
            np.ones((classes, 6)),
        )
        for name in schema.names
    }
    totals = tables["a"].counts.sum(axis=1)
    statistics = Statistics(schema, totals, np.ones(classes), tables, scoring=Scoring("log-ratios"))
    cells = {name: rng.integers(0, 6, ROWS).astype(np.int16) for name in schema.names}
    return LogRatios(statistics), RowSample(cells, rng.integers(0, classes, ROWS))


def part_of(sample, rows):
    return RowSample(
        {name: own[rows] for name, own in sample.cell_indices.items()}, sample.class_codes[rows]
    )


def scores_after_corrections(ratios, sample):
    """Scores at first, and after a feature and a pair were corrected by given amounts."""
    model = ratios.build_model(ratios.statistics.scoring)
    making = CorrectionState(sample, ratios, model, sample.score_rows(model))
    first = making.row_scores.copy()
    for groups in ({"a": (0, 1, 2, 3, 4, -1)}, {"a": (0, 0, 1, 1, 2, 2), "b": (0, 1, 0, 1, 0, 1)}):
        making.add_correction(groups, Given(groups), SeededRandom(0))
    return np.concatenate([first, making.row_scores], axis=1)


class Given(IntegerNoise):
    """Releases numbers that were fixed beforehand, whatever it is given."""

    def __init__(self, groups):
        super().__init__(Fraction(9))
        object.__setattr__(self, "seed", len(groups))

    def add(self, numbers, random):
        return np.random.default_rng(self.seed).integers(-9000, 9000, numbers.shape)


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_scores_of_a_row_are_the_same_bits_among_any_others(classes):
    """At the start, and after corrections that were released are applied."""
    ratios, sample = trained(classes)
    expected = scores_after_corrections(ratios, sample)
    assert isinstance(ratios.build_model(ratios.statistics.scoring), AdditiveModel)
    assert not np.array_equal(expected[:, :classes], expected[:, classes:])
    for rows in map(np.asarray, selections()):
        part = part_of(sample, rows)
        found = scores_after_corrections(ratios, part)
        assert found.tobytes() == expected[rows].tobytes()
        assert count_correct(found[:, classes:], part.class_codes) == sum(
            count_correct(found[i : i + 1, classes:], part.class_codes[i : i + 1])
            for i in range(len(rows))
        )
