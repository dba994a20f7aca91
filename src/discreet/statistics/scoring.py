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
from discreet.errors import EstimationError
from discreet.files.documents import Body

if TYPE_CHECKING:
    from discreet.schema.schema import Schema
    from discreet.statistics.statistics import Table

__all__ = [
    "Correction",
    "CorrectionBody",
    "Likelihood",
    "Postprocess",
    "Scoring",
    "ScoringBody",
    "WholeSheetFit",
    "WholeSheetFitBody",
]

Postprocess = Literal["none", "paper", "norm-sub", "norm-cut", "bayes", "log-ratios"]
Likelihood = Literal["gaussian", "truncated"]
BinRatios = Literal["average", "fitted"]
CategoryRatios = Literal["average", "learnt"]


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
    bins, categories
        For "log-ratios": which estimates of numeric and of categorical features.
    beta : float, default 1
        Weight of the evidence of tables against the prior: log-odds are multiplied by it.
    corrections : int, default 0
        For "log-ratios": how many of the corrections are applied, from the first on.
    """

    postprocess: Postprocess | None = None
    smoothing: float = 1.0
    likelihood: Likelihood = "gaussian"
    variance_smoothing: float = 1e-9
    prior: tuple[float, ...] | None = None
    features: tuple[str, ...] | None = None
    bins: BinRatios = "average"
    categories: CategoryRatios = "average"
    beta: float = 1.0
    corrections: int = 0

    def __post_init__(self) -> None:
        for option_name, option_value, allowed_values in (
            ("postprocess", self.postprocess, (None, *get_args(Postprocess))),
            ("likelihood", self.likelihood, get_args(Likelihood)),
            ("bins", self.bins, get_args(BinRatios)),
            ("categories", self.categories, get_args(CategoryRatios)),
        ):
            if option_value not in allowed_values:
                allowed_text = ", ".join(map(repr, allowed_values))
                raise EstimationError(
                    f"{option_name}={option_value!r}; write one of {allowed_text}"
                )
        for option_name, number in (
            ("smoothing", self.smoothing),
            ("variance_smoothing", self.variance_smoothing),
            ("beta", self.beta),
        ):
            if not np.isfinite(number) or number < 0:
                raise EstimationError(
                    f"{option_name} is {number!r}; it must be a number of at least 0"
                )


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
            "groups": [[name, list(cell_groups)] for name, cell_groups in self.groups.items()],
            "residuals": self.residuals.tolist(),
            "curvatures": self.curvatures.tolist(),
            "variance": self.variance,
        }

    def check_tables(self, schema: Schema, tables: Mapping[str, Table]) -> None:
        """Raise if the correction does not fit the tables that it corrects."""
        feature_names, class_count = " and ".join(self.groups), len(schema.classes)
        if not 1 <= len(self.groups) <= 2 or not set(self.groups) <= set(tables):
            raise EstimationError(f"a correction names features without tables: {feature_names}")
        joint_cells = 1
        for name, cell_groups in self.groups.items():
            if len(cell_groups) != tables[name].cells.size or {*cell_groups} - {-1} != {
                *range(max(cell_groups) + 1)
            }:
                raise EstimationError(f"{name}: the groups of a correction do not fit its cells")
            joint_cells *= max(cell_groups) + 1
        residual_shape = (1 if class_count == 2 else class_count, joint_cells)
        if (
            self.residuals.shape != residual_shape
            or self.curvatures.shape != (joint_cells,)
            or not joint_cells
        ):
            raise EstimationError(
                f"{feature_names}: a correction does not fit its cells and classes"
            )
        number_arrays = [self.residuals, self.curvatures, np.array(self.variance)]
        if not all(np.isfinite(array).all() for array in number_arrays) or self.variance < 0:
            raise EstimationError(f"{feature_names}: a correction has a NaN or infinite number")


@dataclass(frozen=True, eq=False)
class WholeSheetFit:
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
            "tables": {name: table.tolist() for name, table in self.tables.items()},
        }

    def check_tables(self, tables: Mapping[str, Table], class_count: int) -> None:
        """Raise if it does not fit the tables of the statistics."""
        if not 0 <= self.weight <= 1 or self.tables.keys() != tables.keys():
            raise EstimationError("the likeliest classifier is about other features")
        array_shapes = [(self.shares, (class_count,))]
        array_shapes += [(table, tables[name].counts.shape) for name, table in self.tables.items()]
        for array, expected_shape in array_shapes:
            if array.shape != expected_shape or not (
                np.isfinite(array).all() and (array > 0).all()
            ):
                raise EstimationError("the likeliest classifier does not fit cells and classes")
            if not np.allclose(array.sum(axis=-1), 1.0):
                raise EstimationError("the likeliest classifier has shares that do not add to 1")


class ScoringBody(Body):
    """Shape of a Scoring inside other documents."""

    postprocess: Postprocess | None
    smoothing: float
    likelihood: Likelihood
    variance_smoothing: float
    prior: tuple[float, ...] | None
    features: tuple[str, ...] | None
    bins: BinRatios
    categories: CategoryRatios
    beta: float
    corrections: int


class CorrectionBody(Body):
    """Shape of a Correction inside other documents."""

    groups: list[tuple[str, list[int]]]
    residuals: list[list[int | float]]
    curvatures: list[int | float]
    variance: int | float

    def to_correction(self) -> Correction:
        """The value this shape stands for."""
        cell_groups = {name: tuple(group_list) for name, group_list in self.groups}
        residuals, curvatures = np.array(self.residuals), np.array(self.curvatures)
        return Correction(cell_groups, residuals, curvatures, float(self.variance))


class WholeSheetFitBody(Body):
    """Shape of a Likeliest inside other documents."""

    weight: float
    shares: list[float]
    tables: dict[str, list[list[float]]]

    def to_whole_sheet_fit(self) -> WholeSheetFit:
        """The value this shape stands for."""
        tables = {name: np.array(table) for name, table in self.tables.items()}
        return WholeSheetFit(self.weight, np.array(self.shares), tables)
