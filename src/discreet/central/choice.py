"""The choice of features, of their cells and of how they are scored.

**Features.** Of d tables each carries d times the noise of one, and a prediction adds d of them up.
So its noise grows like d^(3/2), and below a certain number of people all features together say
nothing, where the best one alone may say nearly all. Candidates are features, numeric ones cut in
several ways. The quality of a candidate is the number of rows that the best rule on its cells gets
right: the sum over cells of the largest class count, less a public price for every cell.

**Cells.** Bins are of equal width and, where there is data enough, ever finer towards zero. A
quantity with the public bounds 0 and 1000 often has nearly all of its values near 0, where bins of
equal width would see one lump; the extra cells near zero cost a little noise and keep such
features. They follow from public bounds and from what is already private.

**Scoring.** Every candidate is a model made of the released tables. Its quality is the number of
training rows that it classifies right.

Features and scorings are chosen by the exponential mechanism, drawn exactly. One more record
changes every quality by 0 or +1, all in the same direction, so choosing i with probability
proportional to exp(epsilon q_i) costs epsilon (the usual factor of two is for qualities that may
move in both directions). Nothing that this module counts may leave without noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.arrays import Array, Floats, Indices, Integers
from discreet.central.budget import Budget
from discreet.encoding import Cells, cells_of, equal_width, towards_zero
from discreet.estimation.corrections import Additive
from discreet.randomness import Random
from discreet.schema import Numeric
from discreet.statistics import Table
from discreet.tables.source import Source

__all__ = [
    "FINER_FROM",
    "Few",
    "Sample",
    "affordable",
    "best_few",
    "bins_for",
    "choose",
    "cut_points",
    "cuttings",
    "enough",
    "merged",
    "quality",
    "right",
]

CLEAR = 4.0
"""All d features are used when people / noise scale is at least this times sqrt(K d)."""
EACH = 60.0
"""People / noise scale that the table of each chosen feature must keep."""
PRICE = 0.15
"""Penalty per cell, in multiples of the noise scale; .15 to .8 compared: benchmarks/RESULTS.md."""
FEWEST_BINS, MOST_BINS = 8, 64
FINER_FROM = 2.0
"""Bins near zero are split finer when people / (classes * noise scale) is at least this."""
PLENTY = 1000
"""Rows times epsilon of a subsample that is large enough to choose between candidates."""
FEWEST_ROWS = 10_000
"""Least number of rows of that subsample, where there are as many."""


@dataclass(frozen=True)
class Few:
    """How many features to select, and what the selection costs.

    Parameters
    ----------
    number : int
        Of features.
    cost : Fraction
        Share of the budget for all choices together.
    price : float
        Of a cell, in people.
    """

    number: int
    cost: Fraction
    price: float


@dataclass(frozen=True, eq=False)
class Sample:
    """Cell indices and classes of the rows that candidate models are scored on.

    Parameters
    ----------
    cells : mapping of feature name to array of int
    codes : array of int
        Class indices.
    rows : array of int, optional
        Where these rows are in the sample that they were taken from.
    """

    cells: Mapping[str, Array]
    codes: Indices
    rows: Indices | slice = field(default_factory=lambda: slice(None))

    def some(self, share: Fraction, random: Random) -> Sample:
        """Draw a random share of the rows, each row independently."""
        if share == 1:
            return Sample(self.cells, self.codes)
        rows = np.flatnonzero(random.bernoulli(share, len(self.codes)))
        cells = {name: own[rows] for name, own in self.cells.items()}
        return Sample(cells, self.codes[rows], rows)

    def scores(self, model: Additive) -> Floats:
        """Scores of every row: log-prior plus the score tables of its cells."""
        found = np.tile(np.log(model.prior), (len(self.codes), 1))
        for name, table in model.tables.items():
            found += np.ascontiguousarray(table.T)[self.cells[name]]
        return found

    def index(self, groups: Mapping[str, tuple[int, ...]]) -> tuple[Integers, int]:
        """Where every row is among the groups of cells of some features, and how many there are.

        Rows of which a cell is in no group (-1) come after the last.
        """
        found, size, ignored = np.zeros(len(self.codes), dtype=np.int64), 1, None
        for name, of_cells in groups.items():
            own, number = np.array(of_cells)[self.cells[name]], max(of_cells) + 1
            found *= number
            found += own
            size *= number
            if min(of_cells) < 0:
                ignored = own < 0 if ignored is None else ignored | (own < 0)
        if ignored is not None:
            found[ignored] = size
        return found, size


def affordable(people: float, classes: int, scales: Sequence[float]) -> int:
    """How many features can be released with enough people per noise scale.

    Parameters
    ----------
    people : float
        A private estimate.
    classes : int
    scales : sequence of float
        Laplace scale of the noise of each table if there are one, two, … all of them.

    >>> scales = [k / 0.5 for k in range(1, 17)]
    >>> [affordable(n, 2, scales) for n in (20, 150, 300, 800)]
    [1, 1, 2, 16]
    """
    features = len(scales)
    if people >= CLEAR * math.sqrt(classes * features) * scales[-1]:
        return features
    few = 1
    while few + 1 < features and people >= EACH * scales[few]:
        few += 1
    return few


def best_few(
    source: Source, bins: Any, few: Few, budget: Budget, random: Random
) -> dict[str, Cells]:
    """Select features and their cells, one at a time, by the exponential mechanism.

    Parameters
    ----------
    source : Source
    bins : "auto", int or mapping
        How the user wants numeric features cut; "auto" leaves it to the choice.
    few : Few
        How many features, and what they may cost.
    budget : Budget
    random : Random
    """
    candidates = _candidates(source, bins)
    found: dict[str, Cells] = {}
    for index in range(few.number):
        name = f"choice of feature {index + 1} of {few.number}"
        epsilon = budget.selection(name, few.cost / few.number)
        values = [quality(table, few.price * source.unit) for table in candidates]
        best = candidates[choose(values, epsilon / source.unit, random)].cells
        name = best.feature.name
        found[name] = best
        candidates = [table for table in candidates if table.cells.feature.name != name]
    return {name: found[name] for name in source.schema.names if name in found}


def quality(table: Table, price: float) -> int:
    """Rows that the majority class of each cell classifies correctly, less a penalty per cell."""
    return int(table.counts.max(axis=0).sum()) - round(price * table.cells.size)


def _candidates(source: Source, bins: Any) -> list[Table]:
    """Tables of all features in all candidate binnings, from one count on the finest cells."""
    schema = source.schema
    ways: dict[str, list[Any]] = {}
    for feature in schema.features:
        if isinstance(feature, Numeric):
            own = bins.get(feature.name) if isinstance(bins, Mapping) else bins
            ways[feature.name] = cuttings(feature) if own is None or own == "auto" else [own]
    cells = {n: [Cells.of(schema, n, {n: way}) for way in some] for n, some in ways.items()}
    finest = {
        name: sorted({point for one in some for point in one.edges[1:-1]})
        for name, some in cells.items()
    }
    counted = source.tables(cells_of(schema, finest))
    return [
        merged(table, one)
        for name, table in counted.items()
        for one in cells.get(name, [table.cells])
    ]


def merged(table: Table, cells: Cells) -> Table:
    """The same counts on coarser cells."""
    if cells == table.cells:
        return table
    starts = np.searchsorted(table.cells.edges[:-1], cells.edges[:-1])
    proper = np.add.reduceat(table.counts[:, : table.cells.values], starts, axis=1)
    return Table(cells, np.concatenate([proper, table.counts[:, table.cells.values :]], axis=1))


def bins_for(u: float) -> int:
    """Number of equal-width bins: 4 signal_to_noise^0.3 as a power of two, 8 to 64.

    Parameters
    ----------
    u : float
        People / (classes * Laplace scale), from a private estimate of the people.

    >>> [bins_for(u) for u in (0, 1, 10, 100, 10_000, 1_000_000)]
    [8, 8, 8, 16, 64, 64]
    """
    if u <= 1:
        return FEWEST_BINS
    return int(min(max(2 ** round(math.log2(4 * u**0.3)), FEWEST_BINS), MOST_BINS))


def cut_points(feature: Numeric, bins: int, finer: bool = False) -> list[float]:
    """Inner edges of equal-width bins; with ``fine_near_zero`` the bin at zero is split further.

    >>> cut_points(Numeric("age", 20, 100), 8)
    [30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    """
    edges = equal_width(feature, bins)
    near = towards_zero(feature, edges[1] - edges[0]) if finer else []
    return sorted({*edges[1:-1], *near})


def cuttings(feature: Numeric) -> list[list[float]]:
    """Candidate binnings of a feature: 4 bins, 8 bins, and 16 bins that are finer near zero.

    >>> [len(points) + 1 for points in cuttings(Numeric("age", 20, 100))]
    [4, 8, 16]
    """
    ways = [cut_points(feature, 4), cut_points(feature, 8), cut_points(feature, 16, finer=True)]
    return [way for i, way in enumerate(ways) if way not in ways[:i]]


def choose(quality: Sequence[int], epsilon: Fraction, random: Random) -> int:
    """Index i with probability proportional to exp(epsilon * quality[i]), exactly.

    A uniform candidate is kept with probability exp(-epsilon * shortfall), the chance that a
    geometric draw of scale 1 / (epsilon * shortfall) is not zero.
    """
    best = max(quality)
    while True:
        index = int(random.integers(len(quality), 1)[0])
        cost = epsilon * (best - int(quality[index]))
        if cost == 0 or random.geometric(1 / cost, 1)[0] >= 1:
            return index


def enough(epsilon: float, people: float) -> Fraction:
    """Share of the rows to score so that the choice between candidates is reliable."""
    return Fraction(min(1.0, max(FEWEST_ROWS, PLENTY / epsilon) / max(people, 1.0)))


def right(scores: Floats, codes: Integers) -> int:
    """Count the rows of a sample that a candidate classifies correctly.

    Every row is in the sample by a coin of its own, so that a record still changes the number
    by 0 or 1 only; the coin's bias comes from private estimates and from the budget.
    """
    return int(np.count_nonzero(scores.argmax(axis=1) == codes))
