"""Sufficient statistics of Naive Bayes: unbiased estimates with variances, and their guarantee.

All trust models produce them. Exact statistics are integers with variance zero and no guarantee;
noisy ones are real numbers, possibly negative, whose expectation is the true value. They are not
post-processed here; that is done in :mod:`discreet.estimation`, as the user chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import Field

from discreet import conveniences
from discreet.arrays import Array, Floats, Integers
from discreet.errors import EstimationError, FormatError
from discreet.files.documents import Body, dump_document, load_document
from discreet.privacy.guarantee import Guarantee, GuaranteeBody
from discreet.schema.cells import Cells, Grid
from discreet.schema.projection import Projection, ProjectionBody
from discreet.schema.schema import Numeric, Schema, SchemaBody
from discreet.statistics.scoring import (
    Correction,
    CorrectionBody,
    Scoring,
    ScoringBody,
    WholeSheetFit,
    WholeSheetFitBody,
)

__all__ = [
    "Moments",
    "OrderStatistics",
    "Statistics",
    "Table",
    "compute_precision_weighted_mean",
]

VERSION = 6


def compute_precision_weighted_mean(
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
    >>> mean, variance = compute_precision_weighted_mean([[10.0, 20.0], [16.0, 26.0]], [1.0, 2.0])
    >>> mean.tolist(), variance.round(3).tolist()
    ([12.0, 22.0], [0.667, 0.667])
    """
    if not len(estimates) or len(estimates) != len(variances):
        raise EstimationError(f"{len(estimates)} estimates with {len(variances)} variances")
    stacked_estimates = np.array(estimates, dtype=np.float64)
    stacked_variances = np.array(
        [np.broadcast_to(variance, stacked_estimates.shape[1:]) for variance in variances],
        np.float64,
    )
    if np.isnan(stacked_variances).any() or (stacked_variances < 0).any():
        raise EstimationError("a variance is negative or not a number")
    weight_variances = (
        stacked_variances
        if elementwise
        else stacked_variances.reshape(len(stacked_variances), -1).mean(axis=1)
    )
    least_variance = weight_variances.min(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # equal doubts of 0 or infinity count alike
        weights = np.where(
            weight_variances == least_variance, 1.0, least_variance / weight_variances
        )
    weights = weights / weights.sum(axis=0)
    if not elementwise:
        weights = weights.reshape(-1, *[1] * (stacked_estimates.ndim - 1))
    variance_terms = weights**2 * np.where(weights > 0, stacked_variances, 0.0)
    return np.asarray((weights * stacked_estimates).sum(axis=0)), np.asarray(
        variance_terms.sum(axis=0)
    )


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
    cancelling_share : float
        Share of the noise variance that cancels in sums over the classes, because it moves people
        from class to class: 0 if all counts err independently, 1 if only the class is noisy.
    """

    cells: Cells
    counts: Array
    variances: Array = None  # type: ignore[assignment]
    cancelling_share: float = 0.0

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
        noise_totals = [float(np.sum(table.variances)) for table in (self, other)]
        cancelling_share = 0.0
        if sum(noise_totals) > 0:
            cancelling_share = (
                noise_totals[0] * self.cancelling_share + noise_totals[1] * other.cancelling_share
            ) / sum(noise_totals)
        return Table(
            self.cells,
            self.counts + other.counts,
            self.variances + other.variances,
            cancelling_share,
        )

    @property
    def between_class_variances(self) -> Array:
        """Variances for comparing classes: half the variance of the difference between two classes.

        Noise that cancels out in sums over K classes has a correlation of -1 / (K - 1) between
        two of them.
        """
        return self.variances * (1 + self.cancelling_share / max(len(self.counts) - 1, 1))


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
        has_values = self.counts > 0
        safe_counts = np.where(has_values, self.counts, 1.0)
        return np.asarray(
            self.origin + self.step * np.where(has_values, self.totals / safe_counts, 0.0)
        )

    @property
    def variance(self) -> Array:
        """Class variances (divided by n); may be negative when the sums are noisy."""
        safe_counts = np.where(self.counts > 0, self.counts, 1.0)
        mean_steps = self.totals / safe_counts
        return np.asarray(self.step**2 * (self.squares / safe_counts - mean_steps * mean_steps))

    def move_origin(self, origin: Array) -> Moments:
        """The same moments about another origin."""
        origin_shift = (self.origin - origin) / self.step
        totals = self.totals + self.counts * origin_shift
        squares = (
            self.squares
            + 2 * origin_shift * self.totals
            + self.counts * origin_shift * origin_shift
        )
        return replace(self, totals=totals, squares=squares, origin=origin)

    def __add__(self, other: Moments) -> Moments:
        if self.feature != other.feature or self.step != other.step:
            raise EstimationError(f"{self.feature.name}: the two moments have other grids")
        first = self
        if not np.array_equal(self.origin, other.origin):
            # Chan, Golub, LeVeque 1979: sums about the pooled mean lose no digits
            safe_counts = np.where(self.counts + other.counts > 0, self.counts + other.counts, 1.0)
            pooled_mean = (self.counts * self.mean + other.counts * other.mean) / safe_counts
            first, other = self.move_origin(pooled_mean), other.move_origin(pooled_mean)
        noise: Array | None = None
        if self.noise is not None and other.noise is not None:
            # that of the pooled variance (n v + m w) / (n + m)
            n, m = np.maximum(self.counts, 1.0), np.maximum(other.counts, 1.0)
            noise = np.asarray(np.hypot(n * self.noise, m * other.noise) / (n + m))
        return Moments(
            first.feature,
            first.counts + other.counts,
            first.totals + other.totals,
            first.squares + other.squares,
            first.missing + other.missing,
            first.origin,
            first.step,
            first.variances + other.variances,
            noise,
        )


@dataclass(frozen=True, eq=False)
class OrderStatistics:
    """Per-class order statistics on the grid: sorted distinct indices and how often each occurs.

    Exact, private, and never written to a file; central methods read quantiles from it.
    """

    feature: Numeric
    grid: Grid
    grid_indices: Integers
    counts: Integers

    def indices(self, index: int) -> Integers:
        """The grid indices of all values of one class, sorted."""
        return np.repeat(self.grid_indices, self.counts[index])

    def __add__(self, other: OrderStatistics) -> OrderStatistics:
        grid_indices = np.union1d(self.grid_indices, other.grid_indices)
        counts = np.zeros((len(self.counts), len(grid_indices)), dtype=np.int64)
        for order in (self, other):
            counts[:, np.searchsorted(grid_indices, order.grid_indices)] += order.counts
        return OrderStatistics(self.feature, self.grid, grid_indices, counts)


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
    order_statistics : mapping of feature name to OrderStatistics
        Only when asked for, only in exact statistics.
    guarantee : Guarantee
        Void where the schema was inferred.
    projection : Projection, optional
        The projection that computes the columns of ``schema`` from the original ones.
    scoring : Scoring
        Default settings of :func:`discreet.estimate` for these statistics.
    corrections : sequence of Correction
        Noisy residuals of the models during training, in order.
    likeliest : WholeSheetFit, optional
        Maximum-likelihood model of whole sheets; not additive.
    """

    schema: Schema
    totals: Array
    variances: Array = None  # type: ignore[assignment]
    tables: Mapping[str, Table] = field(default_factory=dict)
    moments: Mapping[str, Moments] = field(default_factory=dict)
    order_statistics: Mapping[str, OrderStatistics] = field(default_factory=dict)
    guarantee: Guarantee = field(default_factory=Guarantee.make_unprotected)
    projection: Projection | None = None
    scoring: Scoring = field(default_factory=Scoring)
    corrections: Sequence[Correction] = ()
    likeliest: WholeSheetFit | None = None

    def __post_init__(self) -> None:
        if self.variances is None:
            object.__setattr__(self, "variances", np.zeros(self.totals.shape))
        guarantee = self.guarantee.void_if(schema=self.schema).include_schema(self.schema)
        object.__setattr__(self, "guarantee", guarantee)
        missing_features = set(self.scoring.features or ()) - {*self.tables, *self.moments}
        if missing_features:
            raise EstimationError(
                f"the scoring names features without statistics: {missing_features}"
            )
        if len(self.scoring.prior or self.totals) != len(self.totals):
            raise EstimationError(f"the prior {self.scoring.prior} does not fit the classes")
        if self.projection is not None and self.projection.output_schema != self.schema:
            raise EstimationError("the projection makes other features than the schema has")
        for correction in self.corrections:
            correction.check_tables(self.schema, self.tables)
        if self.likeliest is not None:
            self.likeliest.check_tables(self.tables, len(self.totals))
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
        return conveniences.plot_statistics(self, feature, ax)

    def _repr_html_(self) -> str:
        return conveniences.render_html(self)

    @property
    def is_exact(self) -> bool:
        """Whether all numbers are exact (all variances are zero)."""
        variance_arrays = [table.variances for table in self.tables.values()]
        variance_arrays += [moments.variances for moments in self.moments.values()]
        return not any(np.any(variances) for variances in [self.variances, *variance_arrays])

    def select_used_cells(self) -> dict[str, tuple[Floats, Floats]]:
        """Counts, and variances for comparing classes, of the cells that a model looks at."""
        used_tables = {}
        for name, table in self.tables.items():
            skips_missing = self.schema.missing == "skip" and table.cells.missing_index is not None
            cell_count = table.cells.missing_index if skips_missing else table.cells.size
            variances = table.between_class_variances[:, :cell_count]
            used_tables[name] = (
                np.asarray(table.counts[:, :cell_count], float),
                np.asarray(variances, float),
            )
        return used_tables

    def __add__(self, other: Statistics) -> Statistics:
        """Statistics of disjoint groups of people; the larger epsilon is everyone's.

        If their scoring differs or has corrections, which belong to one model and are not additive,
        the sum has the default scoring.
        """
        if not isinstance(other, Statistics):
            return NotImplemented
        if self.schema.digest != other.schema.digest:
            raise EstimationError("these statistics follow different schemas; they cannot be added")
        if _encode_projection(self.projection) != _encode_projection(other.projection):
            raise EstimationError("these statistics follow different projections")
        for own_parts, other_parts in ((self.tables, other.tables), (self.moments, other.moments)):
            if own_parts.keys() != other_parts.keys():
                raise EstimationError("these statistics cover different features")
        has_corrections = self.scoring.corrections or other.scoring.corrections
        return Statistics(
            self.schema,
            self.totals + other.totals,
            self.variances + other.variances,
            {name: table + other.tables[name] for name, table in self.tables.items()},
            {name: moments + other.moments[name] for name, moments in self.moments.items()},
            {
                name: order + other.order_statistics[name]
                for name, order in self.order_statistics.items()
                if name in other.order_statistics
            },
            self.guarantee.compose_parallel(other.guarantee),
            self.projection,
            self.scoring if self.scoring == other.scoring and not has_corrections else Scoring(),
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
                    "opposed": table.cancelling_share,
                }
                for name, table in self.tables.items()
            },
            "moments": {
                name: {
                    **{key: getattr(moments, key).tolist() for key in _MOMENT_ARRAY_NAMES},
                    "step": moments.step,
                    "noise": None if moments.noise is None else moments.noise.tolist(),
                }
                for name, moments in self.moments.items()
            },
            "guarantee": self.guarantee.to_body(),
            "projection": _encode_projection(self.projection),
            "scoring": asdict(self.scoring),
            "corrections": [correction.to_body() for correction in self.corrections],
            "likeliest": None if self.likeliest is None else self.likeliest.to_body(),
        }
        return dump_document("statistics", VERSION, body, indent=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Statistics:
        """Read what :meth:`to_json` wrote."""
        body = load_document(text, "statistics", VERSION, StatisticsBody)
        schema = body.public.to_schema()
        try:
            tables = {
                name: table_body.to_table(schema, name) for name, table_body in body.tables.items()
            }
            moments = {
                name: moments_body.to_moments(schema, name)
                for name, moments_body in body.moments.items()
            }
            totals, variances = np.array(body.totals), np.array(body.variances)
            guarantee = body.guarantee.to_guarantee()
            projection = None if body.projection is None else body.projection.to_projection(schema)
            return cls(
                schema,
                totals,
                variances,
                tables,
                moments,
                guarantee=guarantee,
                projection=projection,
                scoring=Scoring(**body.scoring.model_dump()),
                corrections=tuple(
                    correction_body.to_correction() for correction_body in body.corrections
                ),
                likeliest=None if body.likeliest is None else body.likeliest.to_whole_sheet_fit(),
            )
        except ValueError as error:
            raise FormatError(f"these statistics do not fit their own schema: {error}") from None


def _encode_projection(projection: Projection | None) -> dict[str, Any] | None:
    return None if projection is None else projection.to_body()


_MOMENT_ARRAY_NAMES = ("counts", "totals", "squares", "missing", "origin", "variances")

Number = int | float


class TableBody(Body):
    edges: list[float]
    counts: list[list[Number]]
    variances: list[list[Number]]
    opposed: float = Field(ge=0, le=1)

    def to_table(self, schema: Schema, name: str) -> Table:
        cells = Cells.from_edges(schema, name, self.edges)
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

    def to_moments(self, schema: Schema, name: str) -> Moments:
        feature = schema[name]
        if not isinstance(feature, Numeric):
            raise FormatError(f"{name} is not numeric, so it has no moments")
        arrays = {
            array_name: np.array(getattr(self, array_name)) for array_name in _MOMENT_ARRAY_NAMES
        }
        if any(
            arrays[array_name].shape != (len(schema.classes),)
            for array_name in _MOMENT_ARRAY_NAMES[:5]
        ):
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
    likeliest: WholeSheetFitBody | None
