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
from discreet.central.budget import Budget, Noise, Settings, shares, weights_of
from discreet.encoding import Grid
from discreet.errors import PrivacyError
from discreet.randomness import Random
from discreet.schema import Categorical, Numeric, Schema
from discreet.scoring import Scoring
from discreet.statistics import Moments, Statistics, Table
from discreet.tables.source import Source

__all__ = [
    "Parts",
    "about_the_middle",
    "begin",
    "costs_of",
    "counted",
    "described",
    "exact",
    "finish",
    "present",
]

CLASSES = "class counts"


@dataclass(frozen=True, eq=False)
class Parts:
    """What is common to the methods: noisy class counts, noisy tables, and the exact rest."""

    exact: Statistics
    totals: Floats
    noise: Noise
    tables: dict[str, Table]
    costs: dict[str, Fraction]

    @property
    def schema(self) -> Schema:
        """The schema of the table."""
        return self.exact.schema

    @property
    def numeric(self) -> list[Numeric]:
        """Numeric features, in order."""
        return [feature for feature in self.schema.features if isinstance(feature, Numeric)]


def costs_of(schema: Schema, settings: Settings, budget: Budget) -> dict[str, Fraction]:
    """The share of every feature and, under the name of none, of the class counts."""
    return shares({"": 1, **weights_of(schema, settings.allocation, 2, 1)}, budget.whole)


def begin(
    source: Source, budget: Budget, settings: Settings, random: Random, *, order: bool = False
) -> Parts:
    """Count, split the budget, and release class counts and categorical tables."""
    if source.unit != 1:
        raise PrivacyError("only method='histogram' takes sample_weight")
    schema = source.schema
    costs = costs_of(schema, settings, budget)
    exact = source.count(moments="grid", order=order)
    noise = budget.noise(CLASSES, costs[""])
    totals = noise.add(exact.totals, random)
    tables = {}
    for feature in schema.features:
        if isinstance(feature, Categorical):
            own = budget.noise(f"table of {feature.name}", costs[feature.name])
            tables[feature.name] = counted(exact.tables[feature.name], own, random)
    return Parts(exact, totals.astype(np.float64), noise, tables, costs)


def counted(table: Table, noise: Noise, random: Random) -> Table:
    """Add noise to every cell of a table, empty cells included."""
    drawn = noise.add(table.counts, random)
    return Table(
        table.cells, drawn.astype(np.float64), np.full(drawn.shape, max(noise.variance, 1e-6))
    )


def present(
    parts: Parts, feature: Numeric, noise: Noise | None, random: Random
) -> tuple[Floats, Floats]:
    """Noisy counts of present and missing values; without noise all values count as present."""
    one = parts.exact.moments[feature.name]
    if noise is None:
        return parts.totals, np.zeros(len(parts.totals))
    here = noise.add(one.counts, random)
    gone = noise.add(one.missing, random)
    return here.astype(np.float64), gone.astype(np.float64)


def described(
    feature: Numeric,
    counts: Floats,
    missing: Floats,
    mean: Floats,
    variance: Floats,
    noise: Floats,
) -> Moments:
    """Moments with this mean and variance, in grid steps about the middle of the grid.

    Their noise depends on the data and is not released: it is marked as infinite. ``noise``
    is about how noisy each variance is, as far as that is public.
    """
    counts = np.maximum(counts, 1.0)
    unsaid = np.full((3, len(counts)), np.inf)
    sums = (counts, counts * mean, counts * (variance + mean * mean))
    step = Grid.of(feature).step
    return replace(about_the_middle(feature, sums, missing, unsaid), noise=step**2 * noise)


def about_the_middle(
    feature: Numeric, sums: tuple[Floats, Floats, Floats], missing: Floats, variances: Floats
) -> Moments:
    """Counts, sums and sums of squares in steps of the grid about its middle.

    There the noise of a sum and that of a count do the least to each other, and no digits are lost
    however far the bounds are from zero.
    """
    grid = Grid.of(feature)
    middle = np.full(len(missing), grid.lower + grid.step * grid.levels / 2)
    return Moments(feature, *sums, missing, middle, grid.step, variances)


def finish(
    parts: Parts, moments: dict[str, Moments], budget: Budget, settings: Settings
) -> Statistics:
    """Build the released statistics."""
    return Statistics(
        parts.schema,
        parts.totals,
        np.full(len(parts.totals), max(parts.noise.variance, 1e-6)),
        parts.tables,
        moments,
        guarantee=budget.guarantee(settings.assumptions),
        scoring=Scoring("none", likelihood=settings.likelihood),
    )


def exact(source: Source, settings: Settings) -> Statistics:
    """The limit of infinite epsilon: exact counts, means and variances."""
    if source.unit != 1:
        raise PrivacyError("only method='histogram' takes sample_weight")
    found = source.count(moments="grid")
    return replace(found, scoring=Scoring("none", likelihood=settings.likelihood))
