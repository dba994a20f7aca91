"""Scoring settings, corrections and whole-sheet fits, which are stored with statistics.

They hold what was chosen privately when the statistics were released, so that anyone who has the
statistics can compute the same model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from discreet.arrays import Array
from discreet.documents import Body
from discreet.errors import EstimationError

if TYPE_CHECKING:
    from discreet.schema import Schema
    from discreet.statistics import Table

__all__ = [
    "Correction",
    "CorrectionBody",
    "Likeliest",
    "LikeliestBody",
    "Likelihood",
    "Postprocess",
    "Scoring",
    "ScoringBody",
]

Postprocess = Literal["none", "paper", "norm-sub", "norm-cut", "bayes", "log-ratios"]
Likelihood = Literal["gaussian", "truncated"]
RatiosOfBins = Literal["average", "fitted"]
RatiosOfCategories = Literal["average", "learnt"]


@dataclass(frozen=True)
class Scoring:
    """Settings for computing a model from statistics.

    Parameters
    ----------
    postprocess : {"none", "paper", "norm-sub", "norm-cut", "bayes", "log-ratios"}, optional
        Post-processing of noisy tables; by default chosen from their noise.
    smoothing : float, default 1
        Pseudo-count added to every cell; not used by "paper", "bayes" and "log-ratios".
    likelihood : {"gaussian", "truncated"}
        The density of numeric features that come as moments.
    variance_smoothing : float, default 1e-9
        Share of the largest variance that is added to all, as in scikit-learn.
    prior : tuple of float, optional
        Class prior to use instead of the estimated one.
    features : tuple of str, optional
        The features that the model uses; all if not given.
    bins, categories, beta
        For "log-ratios": which estimates of numeric and of categorical features, and the weight of
        the evidence against the prior.
    corrections : int, default 0
        For "log-ratios": how many of the corrections are applied, from the first on.
    """

    postprocess: Postprocess | None = None
    smoothing: float = 1.0
    likelihood: Likelihood = "gaussian"
    variance_smoothing: float = 1e-9
    prior: tuple[float, ...] | None = None
    features: tuple[str, ...] | None = None
    bins: RatiosOfBins = "average"
    categories: RatiosOfCategories = "average"
    beta: float = 1.0
    corrections: int = 0

    def __post_init__(self) -> None:
        for name, value, known in (
            ("postprocess", self.postprocess, (None, *get_args(Postprocess))),
            ("likelihood", self.likelihood, get_args(Likelihood)),
            ("bins", self.bins, get_args(RatiosOfBins)),
            ("categories", self.categories, get_args(RatiosOfCategories)),
        ):
            if value not in known:
                listed = ", ".join(map(repr, known))
                raise EstimationError(f"{name}={value!r}; write one of {listed}")
        for name, number in (
            ("smoothing", self.smoothing),
            ("variance_smoothing", self.variance_smoothing),
            ("beta", self.beta),
        ):
            if not np.isfinite(number) or number < 0:
                raise EstimationError(f"{name} is {number!r}; it must be a number of at least 0")


@dataclass(frozen=True, eq=False)
class Correction:
    """Noisy residuals of a model in the cells of one feature or of a pair of features.

    Parameters
    ----------
    groups : mapping of feature name to tuple of int
        The features, and the group of each of their cells; -1 for a cell that the model ignores.
        The cells of a pair are all (group of the first, group of the second), row by row.
    residuals : array of shape (1 or classes, cells)
        How many more people of a class there are than the model expects; of two classes, the
        second.
    curvatures : array of shape (cells,)
        How fast that changes with the scores.
    variance : float
        Noise variance of each of these numbers.
    """

    groups: Mapping[str, tuple[int, ...]]
    residuals: Array
    curvatures: Array
    variance: float

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {
            "groups": [[name, list(groups)] for name, groups in self.groups.items()],
            "residuals": self.residuals.tolist(),
            "curvatures": self.curvatures.tolist(),
            "variance": self.variance,
        }

    def check(self, schema: Schema, tables: Mapping[str, Table]) -> None:
        """Raise if the correction does not fit the tables that it corrects."""
        named, columns = " and ".join(self.groups), len(schema.classes)
        if not 1 <= len(self.groups) <= 2 or not set(self.groups) <= set(tables):
            raise EstimationError(f"a correction names features without tables: {named}")
        cells = 1
        for name, groups in self.groups.items():
            if len(groups) != tables[name].cells.size or {*groups} - {-1} != {
                *range(max(groups) + 1)
            }:
                raise EstimationError(f"{name}: the groups of a correction do not fit its cells")
            cells *= max(groups) + 1
        shape = (1 if columns == 2 else columns, cells)
        if self.residuals.shape != shape or self.curvatures.shape != (cells,) or not cells:
            raise EstimationError(f"{named}: a correction does not fit its cells and classes")
        numbers = [self.residuals, self.curvatures, np.array(self.variance)]
        if not all(np.isfinite(one).all() for one in numbers) or self.variance < 0:
            raise EstimationError(f"{named}: a correction has a NaN or infinite number")


@dataclass(frozen=True, eq=False)
class Likeliest:
    """Maximum-likelihood Naive Bayes classifier of whole answer sheets.

    Parameters
    ----------
    weight : float
        From 0 to 1: its weight in "bayes" relative to the tables.
    shares : array of shape (classes,)
        Class shares.
    tables : mapping of feature name to array of shape (classes, cells)
        P(cell | class).
    """

    weight: float
    shares: Array
    tables: Mapping[str, Array]

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {
            "weight": self.weight,
            "shares": self.shares.tolist(),
            "tables": {name: one.tolist() for name, one in self.tables.items()},
        }

    def check(self, tables: Mapping[str, Table], classes: int) -> None:
        """Raise if it does not fit the tables of the statistics."""
        if not 0 <= self.weight <= 1 or self.tables.keys() != tables.keys():
            raise EstimationError("the likeliest classifier is about other features")
        parts = [(self.shares, (classes,))]
        parts += [(one, tables[name].counts.shape) for name, one in self.tables.items()]
        for one, shape in parts:
            if one.shape != shape or not (np.isfinite(one).all() and (one > 0).all()):
                raise EstimationError("the likeliest classifier does not fit cells and classes")
            if not np.allclose(one.sum(axis=-1), 1.0):
                raise EstimationError("the likeliest classifier has shares that do not add to 1")


class ScoringBody(Body):
    """Shape of a Scoring inside other documents."""

    postprocess: Postprocess | None
    smoothing: float
    likelihood: Likelihood
    variance_smoothing: float
    prior: tuple[float, ...] | None
    features: tuple[str, ...] | None
    bins: RatiosOfBins
    categories: RatiosOfCategories
    beta: float
    corrections: int


class CorrectionBody(Body):
    """Shape of a Correction inside other documents."""

    groups: list[tuple[str, list[int]]]
    residuals: list[list[int | float]]
    curvatures: list[int | float]
    variance: int | float

    def correction(self) -> Correction:
        """The value this shape stands for."""
        groups = {name: tuple(some) for name, some in self.groups}
        residuals, curvatures = np.array(self.residuals), np.array(self.curvatures)
        return Correction(groups, residuals, curvatures, float(self.variance))


class LikeliestBody(Body):
    """Shape of a Likeliest inside other documents."""

    weight: float
    shares: list[float]
    tables: dict[str, list[list[float]]]

    def likeliest(self) -> Likeliest:
        """The value this shape stands for."""
        tables = {name: np.array(one) for name, one in self.tables.items()}
        return Likeliest(self.weight, np.array(self.shares), tables)
