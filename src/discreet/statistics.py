"""Sufficient statistics of Naive Bayes: unbiased estimates with variances, and their guarantee.

All trust models produce them. Exact statistics are integers with variance zero and no guarantee;
noisy ones are real numbers, possibly negative, whose expectation is the true value. They are not
post-processed here; that is done in :mod:`discreet.estimation`, as the user chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import Field

from discreet.arrays import Array, Floats, Integers
from discreet.documents import Body, dump, load
from discreet.encoding import Cells, Grid
from discreet.errors import EstimationError, FormatError
from discreet.privacy import Guarantee, GuaranteeBody
from discreet.projection import Projection, ProjectionBody
from discreet.schema import Categorical, Numeric, Schema, SchemaBody
from discreet.scoring import (
    Correction,
    CorrectionBody,
    Likeliest,
    LikeliestBody,
    Scoring,
    ScoringBody,
)

__all__ = [
    "Moments",
    "Order",
    "Statistics",
    "Table",
    "precision_weighted",
]

VERSION = 5


def precision_weighted(
    estimates: Sequence[Any], variances: Sequence[Any], *, elementwise: bool = False
) -> tuple[Floats, Floats]:
    """Compute the precision-weighted mean of independent estimates of the same numbers.

    Weights are proportional to 1 / variance, which gives the mean of smallest variance. An exact
    estimate (variance 0) is taken as it is, an unknown one (infinite variance) is left out, unless
    all are unknown.

    Parameters
    ----------
    estimates : sequence of arrays of one shape
    variances : sequence of arrays or numbers, one for each estimate
    elementwise : bool, default False
        Whether every number has weights of its own. Otherwise an estimate has one weight, by its
        mean variance, so that sums that hold in every estimate hold in the mean.

    Returns
    -------
    mean : array
    variance : array of the same shape

    Examples
    --------
    >>> mean, variance = precision_weighted([[10.0, 20.0], [16.0, 26.0]], [1.0, 2.0])
    >>> mean.tolist(), variance.round(3).tolist()
    ([12.0, 22.0], [0.667, 0.667])
    """
    if not len(estimates) or len(estimates) != len(variances):
        raise EstimationError(f"{len(estimates)} estimates with {len(variances)} variances")
    values = np.array(estimates, dtype=np.float64)
    spread = np.array([np.broadcast_to(one, values.shape[1:]) for one in variances], np.float64)
    if np.isnan(spread).any() or (spread < 0).any():
        raise EstimationError("a variance is negative or not a number")
    doubt = spread if elementwise else spread.reshape(len(spread), -1).mean(axis=1)
    least = doubt.min(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # equal doubts of 0 or infinity count alike
        weight = np.where(doubt == least, 1.0, least / doubt)
    weight = weight / weight.sum(axis=0)
    if not elementwise:
        weight = weight.reshape(-1, *[1] * (values.ndim - 1))
    noise = weight**2 * np.where(weight > 0, spread, 0.0)
    return np.asarray((weight * values).sum(axis=0)), np.asarray(noise.sum(axis=0))


@dataclass(frozen=True, eq=False)
class Table:
    """Class-by-cell counts of one feature, ``counts[c, v]``, with the variance of each.

    Parameters
    ----------
    cells : Cells
    counts : array of shape (classes, cells)
    variances : array of the same shape, optional
        Of each count as an estimate of the number of people in that cell, out of the people that
        the statistics are of. Zero where the counts are exact.
    opposed : float
        Share of the noise variance that cancels in sums over the classes, because it moves people
        from class to class: 0 if all counts err independently, 1 if only the class is noisy.
    """

    cells: Cells
    counts: Array
    variances: Array = None  # type: ignore[assignment]
    opposed: float = 0.0

    def __post_init__(self) -> None:
        if self.variances is None:
            object.__setattr__(self, "variances", np.zeros(self.counts.shape))
        if self.counts.shape != self.variances.shape or self.counts.shape[1:] != (self.cells.size,):
            raise EstimationError(
                f"{self.cells.feature.name}: counts of shape {self.counts.shape} do not fit "
                f"{self.cells.size} cells"
            )

    def __add__(self, other: Table) -> Table:
        if self.cells != other.cells:
            raise EstimationError(f"{self.cells.feature.name}: the two tables have other cells")
        noise = [float(np.sum(one.variances)) for one in (self, other)]
        opposed = 0.0
        if sum(noise) > 0:
            opposed = (noise[0] * self.opposed + noise[1] * other.opposed) / sum(noise)
        return Table(
            self.cells, self.counts + other.counts, self.variances + other.variances, opposed
        )

    @property
    def between(self) -> Array:
        """Variances for comparing classes: half the variance of the difference between two classes.

        Noise that cancels out in sums over K classes has a correlation of -1 / (K - 1) between
        two of them.
        """
        return self.variances * (1 + self.opposed / max(len(self.counts) - 1, 1))


@dataclass(frozen=True, eq=False)
class Moments:
    """Per-class count, sum and sum of squares of k, where x = origin + step * k.

    On a public grid k is a whole number and the sums are exact integers on every engine. For
    floats the step is 1 and the origin near the class means, which keeps the sums accurate.

    Parameters
    ----------
    feature : Numeric
    counts, totals, squares : arrays of shape (classes,)
        Over the records whose value is present.
    missing : array of shape (classes,)
        How many values are missing.
    origin : array of shape (classes,)
    step : float
    variances : array of shape (3, classes), optional
        Of counts, totals and squares.
    noise : array of shape (classes,), optional
        Standard deviation of the noise of each class's variance, as far as it is public; variances
        are then made positive by it, and everything is confined to what the bounds allow.
    """

    feature: Numeric
    counts: Array
    totals: Array
    squares: Array
    missing: Array
    origin: Array
    step: float = 1.0
    variances: Array = None  # type: ignore[assignment]
    noise: Array | None = None

    def __post_init__(self) -> None:
        if self.variances is None:
            object.__setattr__(self, "variances", np.zeros((3, len(self.counts))))

    @property
    def mean(self) -> Array:
        """Class means; the origin where a class has no values."""
        some = self.counts > 0
        counts = np.where(some, self.counts, 1.0)
        return np.asarray(self.origin + self.step * np.where(some, self.totals / counts, 0.0))

    @property
    def variance(self) -> Array:
        """Class variances (divided by n); may be negative when the sums are noisy."""
        counts = np.where(self.counts > 0, self.counts, 1.0)
        shift = self.totals / counts
        return np.asarray(self.step**2 * (self.squares / counts - shift * shift))

    def recentred(self, origin: Array) -> Moments:
        """The same moments about another origin."""
        move = (self.origin - origin) / self.step
        totals = self.totals + self.counts * move
        squares = self.squares + 2 * move * self.totals + self.counts * move * move
        return replace(self, totals=totals, squares=squares, origin=origin)

    def __add__(self, other: Moments) -> Moments:
        if self.feature != other.feature or self.step != other.step:
            raise EstimationError(f"{self.feature.name}: the two moments have other grids")
        one = self
        if not np.array_equal(self.origin, other.origin):
            # Chan, Golub, LeVeque 1979: sums about the pooled mean lose no digits
            weight = np.where(self.counts + other.counts > 0, self.counts + other.counts, 1.0)
            pooled = (self.counts * self.mean + other.counts * other.mean) / weight
            one, other = self.recentred(pooled), other.recentred(pooled)
        return Moments(
            one.feature,
            one.counts + other.counts,
            one.totals + other.totals,
            one.squares + other.squares,
            one.missing + other.missing,
            one.origin,
            one.step,
            one.variances + other.variances,
            self._noise_beside(other),
        )

    def _noise_beside(self, other: Moments) -> Array | None:
        """Noise of the pooled variance (n v + m w) / (n + m) of two groups of people."""
        if self.noise is None or other.noise is None:
            return None
        n, m = np.maximum(self.counts, 1.0), np.maximum(other.counts, 1.0)
        return np.asarray(np.hypot(n * self.noise, m * other.noise) / (n + m))


@dataclass(frozen=True, eq=False)
class Order:
    """Per-class order statistics on the grid: sorted distinct indices and how often each occurs.

    Exact, private, and never written to a file; central methods read quantiles from it.
    """

    feature: Numeric
    grid: Grid
    levels: Integers
    counts: Integers

    def indices(self, index: int) -> Integers:
        """The grid indices of all values of one class, sorted."""
        return np.repeat(self.levels, self.counts[index])

    def __add__(self, other: Order) -> Order:
        levels = np.union1d(self.levels, other.levels)
        counts = np.zeros((len(self.counts), len(levels)), dtype=np.int64)
        for one in (self, other):
            counts[:, np.searchsorted(levels, one.levels)] += one.counts
        return Order(self.feature, self.grid, levels, counts)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics of a Naive Bayes model.

    Parameters
    ----------
    schema : Schema
    totals : array of shape (classes,)
        Estimated number of people in each class.
    variances : array of shape (classes,), optional
        Of the totals.
    tables : mapping of feature name to Table
    moments : mapping of feature name to Moments
    orders : mapping of feature name to Order
        Only when asked for, only in exact statistics.
    guarantee : Guarantee
        Void where the schema was inferred.
    projection : Projection, optional
        The projection that computes the columns of ``schema`` from the original ones.
    scoring : Scoring
        Default settings of :func:`discreet.estimate` for these statistics.
    corrections : sequence of Correction
        Noisy residuals of the models during training, in order.
    likeliest : Likeliest, optional
        Maximum-likelihood model of whole sheets; not additive.
    """

    schema: Schema
    totals: Array
    variances: Array = None  # type: ignore[assignment]
    tables: Mapping[str, Table] = field(default_factory=dict)
    moments: Mapping[str, Moments] = field(default_factory=dict)
    orders: Mapping[str, Order] = field(default_factory=dict)
    guarantee: Guarantee = field(default_factory=Guarantee.nothing)
    projection: Projection | None = None
    scoring: Scoring = field(default_factory=Scoring)
    corrections: Sequence[Correction] = ()
    likeliest: Likeliest | None = None

    def __post_init__(self) -> None:
        if self.variances is None:
            object.__setattr__(self, "variances", np.zeros(self.totals.shape))
        object.__setattr__(self, "guarantee", self.guarantee.under(schema=self.schema))
        lacking = set(self.scoring.features or ()) - {*self.tables, *self.moments}
        if lacking:
            raise EstimationError(f"the scoring names features without statistics: {lacking}")
        if len(self.scoring.prior or self.totals) != len(self.totals):
            raise EstimationError(f"the prior {self.scoring.prior} does not fit the classes")
        if self.projection is not None and self.projection.after != self.schema:
            raise EstimationError("the projection makes other features than the schema has")
        for one in self.corrections:
            one.check(self.schema, self.tables)
        if self.likeliest is not None:
            self.likeliest.check(self.tables, len(self.totals))
        if not 0 <= self.scoring.corrections <= len(self.corrections):
            raise EstimationError(
                f"the scoring applies {self.scoring.corrections} corrections, and there are "
                f"{len(self.corrections)}"
            )
        if self.totals.shape != (len(self.schema.classes),):
            raise EstimationError(
                f"totals of shape {self.totals.shape} do not fit {len(self.schema.classes)} classes"
            )

    def plot(self, feature: str, ax: Any = None) -> Any:
        """The share of each cell within each class, with intervals (needs ``discreet[plot]``).

        Parameters
        ----------
        feature : str
        ax : matplotlib axes, optional
        """
        from discreet.report.plots import plot_statistics

        return plot_statistics(self, feature, ax)

    def _repr_html_(self) -> str:
        from discreet.report.notebook import statistics_html

        return statistics_html(self)

    @property
    def exact(self) -> bool:
        """Whether all numbers are exact (all variances are zero)."""
        parts = [table.variances for table in self.tables.values()]
        parts += [moments.variances for moments in self.moments.values()]
        return not any(np.any(part) for part in [self.variances, *parts])

    def __add__(self, other: Statistics) -> Statistics:
        """Statistics of disjoint groups of people; the larger epsilon is everyone's.

        If their scoring differs or has corrections, which belong to one model and are not additive,
        the sum has the default scoring.
        """
        if not isinstance(other, Statistics):
            return NotImplemented
        if self.schema.digest != other.schema.digest:
            raise EstimationError("these statistics follow different schemas; they cannot be added")
        if _body(self.projection) != _body(other.projection):
            raise EstimationError("these statistics follow different projections")
        for one, two in ((self.tables, other.tables), (self.moments, other.moments)):
            if one.keys() != two.keys():
                raise EstimationError("these statistics cover different features")
        corrected = self.scoring.corrections or other.scoring.corrections
        return Statistics(
            self.schema,
            self.totals + other.totals,
            self.variances + other.variances,
            {name: table + other.tables[name] for name, table in self.tables.items()},
            {name: one + other.moments[name] for name, one in self.moments.items()},
            {n: o + other.orders[n] for n, o in self.orders.items() if n in other.orders},
            self.guarantee.beside(other.guarantee),
            self.projection,
            self.scoring if self.scoring == other.scoring and not corrected else Scoring(),
        )

    def to_json(self) -> str:
        """Write as versioned JSON. Exact statistics are not protected: keep such a file private."""
        body = {
            "schema": self.schema.to_body(),
            "totals": self.totals.tolist(),
            "variances": self.variances.tolist(),
            "tables": {
                name: {
                    "edges": list(table.cells.edges),
                    "counts": table.counts.tolist(),
                    "variances": table.variances.tolist(),
                    "opposed": table.opposed,
                }
                for name, table in self.tables.items()
            },
            "moments": {
                name: {
                    **{key: getattr(one, key).tolist() for key in _MOMENT_ARRAYS},
                    "step": one.step,
                    "noise": None if one.noise is None else one.noise.tolist(),
                }
                for name, one in self.moments.items()
            },
            "guarantee": self.guarantee.to_body(),
            "projection": _body(self.projection),
            "scoring": asdict(self.scoring),
            "corrections": [one.to_body() for one in self.corrections],
            "likeliest": None if self.likeliest is None else self.likeliest.to_body(),
        }
        return dump("statistics", VERSION, body, indent=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Statistics:
        """Read what :meth:`to_json` wrote."""
        body = load(text, "statistics", VERSION, StatisticsBody)
        schema = body.public.value()
        try:
            tables = {name: one.table(schema, name) for name, one in body.tables.items()}
            moments = {name: one.moments(schema, name) for name, one in body.moments.items()}
            totals, variances = np.array(body.totals), np.array(body.variances)
            guarantee = body.guarantee.guarantee()
            projection = None if body.projection is None else body.projection.projection(schema)
            return cls(
                schema,
                totals,
                variances,
                tables,
                moments,
                guarantee=guarantee,
                projection=projection,
                scoring=Scoring(**body.scoring.model_dump()),
                corrections=tuple(one.correction() for one in body.corrections),
                likeliest=None if body.likeliest is None else body.likeliest.likeliest(),
            )
        except ValueError as error:
            raise FormatError(f"these statistics do not fit their own schema: {error}") from None


def _body(projection: Projection | None) -> dict[str, Any] | None:
    return None if projection is None else projection.to_body()


_MOMENT_ARRAYS = ("counts", "totals", "squares", "missing", "origin", "variances")

Number = int | float


class TableBody(Body):
    edges: list[float]
    counts: list[list[Number]]
    variances: list[list[Number]]
    opposed: float = Field(ge=0, le=1)

    def table(self, schema: Schema, name: str) -> Table:
        cells = cells_from(schema, name, self.edges)
        return Table(cells, np.array(self.counts), np.array(self.variances), self.opposed)


class MomentsBody(Body):
    counts: list[Number]
    totals: list[Number]
    squares: list[Number]
    missing: list[Number]
    origin: list[float]
    variances: list[list[Number]]
    step: float
    noise: list[Number] | None

    def moments(self, schema: Schema, name: str) -> Moments:
        feature = schema[name]
        if not isinstance(feature, Numeric):
            raise FormatError(f"{name} is not numeric, so it has no moments")
        arrays = {key: np.array(getattr(self, key)) for key in _MOMENT_ARRAYS}
        if any(arrays[key].shape != (len(schema.classes),) for key in _MOMENT_ARRAYS[:5]):
            raise FormatError(f"{name}: the moments do not fit the classes")
        noise = None if self.noise is None else np.array(self.noise)
        if noise is not None and noise.shape != (len(schema.classes),):
            raise FormatError(f"{name}: the noise does not fit the classes")
        return Moments(feature, step=self.step, noise=noise, **arrays)


class StatisticsBody(Body):
    public: SchemaBody = Field(alias="schema")
    totals: list[Number]
    variances: list[Number]
    tables: dict[str, TableBody]
    moments: dict[str, MomentsBody]
    guarantee: GuaranteeBody
    projection: ProjectionBody | None
    scoring: ScoringBody
    corrections: list[CorrectionBody]
    likeliest: LikeliestBody | None


def cells_from(schema: Schema, name: str, edges: list[float]) -> Cells:
    """Load the cells of a feature from the edges in a file."""
    feature = schema[name]
    if isinstance(feature, Categorical):
        return Cells.of(schema, name)
    if len(edges) < 2 or not all(a < b for a, b in pairwise(edges)):
        raise FormatError(f"{name}: the edges of its bins do not increase")
    return Cells(feature, tuple(edges), schema.missing_tokens, schema.unseen, schema.outliers)
