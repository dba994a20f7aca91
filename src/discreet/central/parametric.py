"""What the methods with a density for numeric features share: everything but the densities.

The budget goes in shares to the class counts (1), to each categorical feature (1) and to each
numeric one (2, for mean and variance), as in the paper, or as the user says. A record changes one
class count, one cell of each categorical table, and one class's values of each numeric feature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.arrays import Floats
from discreet.central.budget import (
    Budget,
    CentralSettings,
    IntegerNoise,
    resolve_feature_weights,
    split_budget,
)
from discreet.errors import PrivacyError
from discreet.randomness import Random
from discreet.schema.cells import Grid
from discreet.schema.schema import Categorical, Numeric, Schema
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Moments, Statistics, Table
from discreet.tables.source import Source

__all__ = [
    "ReleaseContext",
    "add_table_noise",
    "build_centred_moments",
    "build_statistics",
    "compute_exact_statistics",
    "count_present",
    "make_moments",
    "split_feature_costs",
    "start_release",
]

CLASS_COUNT_CHARGE = "class counts"


@dataclass(frozen=True, eq=False)
class ReleaseContext:
    """What is common to the methods: noisy class counts, noisy tables, and the exact rest."""

    exact_statistics: Statistics
    noisy_totals: Floats
    class_count_noise: IntegerNoise
    noisy_tables: dict[str, Table]
    feature_costs: dict[str, Fraction]

    @property
    def schema(self) -> Schema:
        """The schema of the table."""
        return self.exact_statistics.schema

    @property
    def numeric_features(self) -> list[Numeric]:
        """Numeric features, in order."""
        return [feature for feature in self.schema.features if isinstance(feature, Numeric)]


def split_feature_costs(
    schema: Schema, settings: CentralSettings, budget: Budget
) -> dict[str, Fraction]:
    """The share of every feature and, under the name of none, of the class counts."""
    return split_budget(
        {"": 1, **resolve_feature_weights(schema, settings.allocation, 2, 1)}, budget.total
    )


def start_release(
    source: Source,
    budget: Budget,
    settings: CentralSettings,
    random: Random,
    *,
    order: bool = False,
) -> ReleaseContext:
    """Count, split the budget, and release class counts and categorical tables."""
    if source.count_sensitivity != 1:
        raise PrivacyError("only method='histogram' takes sample_weight")
    schema = source.schema
    feature_costs = split_feature_costs(schema, settings, budget)
    exact_statistics = source.count_statistics(moments="grid", order=order)
    class_count_noise = budget.spend_on_noise(CLASS_COUNT_CHARGE, feature_costs[""])
    noisy_totals = class_count_noise.add(exact_statistics.totals, random)
    noisy_tables = {}
    for feature in schema.features:
        if isinstance(feature, Categorical):
            table_noise = budget.spend_on_noise(
                f"table of {feature.name}", feature_costs[feature.name]
            )
            noisy_tables[feature.name] = add_table_noise(
                exact_statistics.tables[feature.name], table_noise, random
            )
    return ReleaseContext(
        exact_statistics,
        noisy_totals.astype(np.float64),
        class_count_noise,
        noisy_tables,
        feature_costs,
    )


def add_table_noise(table: Table, noise: IntegerNoise, random: Random) -> Table:
    """Add noise to every cell of a table, empty cells included."""
    noisy_counts = noise.add(table.counts, random)
    return Table(
        table.cells,
        noisy_counts.astype(np.float64),
        np.full(noisy_counts.shape, max(noise.variance, 1e-6)),
    )


def count_present(
    context: ReleaseContext, feature: Numeric, noise: IntegerNoise | None, random: Random
) -> tuple[Floats, Floats]:
    """Noisy counts of present and missing values; without noise all values count as present."""
    exact_moments = context.exact_statistics.moments[feature.name]
    if noise is None:
        return context.noisy_totals, np.zeros(len(context.noisy_totals))
    noisy_present = noise.add(exact_moments.counts, random)
    noisy_missing = noise.add(exact_moments.missing, random)
    return noisy_present.astype(np.float64), noisy_missing.astype(np.float64)


def make_moments(
    feature: Numeric,
    counts: Floats,
    missing: Floats,
    mean: Floats,
    variance: Floats,
    variance_noise: Floats,
) -> Moments:
    """Moments with this mean and variance, in grid steps about the middle of the grid.

    Their noise depends on the data and is not released: it is marked as infinite.
    ``variance_noise`` is about how noisy each variance is, as far as that is public.
    """
    counts = np.maximum(counts, 1.0)
    unknown_variances = np.full((3, len(counts)), np.inf)
    moment_sums = (counts, counts * mean, counts * (variance + mean * mean))
    grid_step = Grid.from_feature(feature).step
    return replace(
        build_centred_moments(feature, moment_sums, missing, unknown_variances),
        noise=grid_step**2 * variance_noise,
    )


def build_centred_moments(
    feature: Numeric,
    moment_sums: tuple[Floats, Floats, Floats],
    missing_counts: Floats,
    variances: Floats,
) -> Moments:
    """Counts, sums and sums of squares in steps of the grid about its middle.

    There the noise of a sum and that of a count do the least to each other, and no digits are lost
    however far the bounds are from zero.
    """
    grid = Grid.from_feature(feature)
    grid_middle = np.full(len(missing_counts), grid.lower + grid.step * grid.levels / 2)
    return Moments(feature, *moment_sums, missing_counts, grid_middle, grid.step, variances)


def build_statistics(
    context: ReleaseContext, moments: dict[str, Moments], budget: Budget, settings: CentralSettings
) -> Statistics:
    """Build the released statistics."""
    return Statistics(
        context.schema,
        context.noisy_totals,
        np.full(len(context.noisy_totals), max(context.class_count_noise.variance, 1e-6)),
        context.noisy_tables,
        moments,
        guarantee=budget.make_guarantee(settings.assumptions),
        scoring=Scoring("none", likelihood=settings.likelihood),
    )


def compute_exact_statistics(source: Source, settings: CentralSettings) -> Statistics:
    """The limit of infinite epsilon: exact counts, means and variances."""
    if source.count_sensitivity != 1:
        raise PrivacyError("only method='histogram' takes sample_weight")
    exact_statistics = source.count_statistics(moments="grid")
    return replace(exact_statistics, scoring=Scoring("none", likelihood=settings.likelihood))
