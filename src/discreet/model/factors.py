"""What is added to the score of each class: a feature's table over cells or normal density.

Where a model was corrected, pairs of features add something together, beyond what each adds alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Literal, overload

import numpy as np

from discreet.arrays import Array, Floats
from discreet.errors import FormatError
from discreet.files.documents import Body
from discreet.model.support import CellSupport, SupportBody
from discreet.schema.cells import Cells, parse_numbers
from discreet.schema.schema import Numeric, Schema

__all__ = [
    "CellBody",
    "CellFactor",
    "Factor",
    "GaussianBody",
    "GaussianFactor",
    "PairBody",
    "PairFactor",
    "decode_factor",
    "encode_factor",
]


@dataclass(frozen=True, eq=False)
class CellFactor:
    """log P(cell | class), of shape (classes, cells); zero for a cell that is to be ignored.

    Parameters
    ----------
    cells : Cells
        The feature's values or bins.
    log_probability : array of float, (classes, cells)
    support : CellSupport, optional
        What the released numbers say about the cells; None where a model comes without them.
    """

    cells: Cells
    log_probability: Floats
    support: CellSupport | None = None

    @property
    def name(self) -> str:
        """Name of the feature."""
        return self.cells.feature.name

    def check_classes(self, class_count: int) -> None:
        """Refuse what does not fit the cells or is not a probability."""
        if self.log_probability.shape != (class_count, self.cells.size):
            raise FormatError(f"{self.name}: the factor does not fit its cells")
        if not (self.log_probability <= 1e-9).all():
            raise FormatError(f"{self.name}: a probability is above one or not a number")
        if self.support is not None:
            self.support.check_shape(self.name, self.log_probability.shape)

    def describe_value(self, value: Any, schema: Schema) -> str:
        """The cell of a value, in words."""
        return self.cells.rounded_labels[self.cells.encode_value(value)]


@dataclass(frozen=True, eq=False)
class GaussianFactor:
    """A normal density for each class.

    Parameters
    ----------
    feature : Numeric
    mean, variance : arrays of shape (classes,)
    truncated : bool
        Whether the density is confined to the public bounds: divided by Phi(b) - Phi(a), the
        distribution function at the standardised bounds.
    missing : array of shape (classes,) or None
        P(missing | class) where missing is a value of its own; None where it is skipped.
    """

    feature: Numeric
    mean: Floats
    variance: Floats
    truncated: bool = False
    missing: Floats | None = None

    @property
    def name(self) -> str:
        """Name of the feature."""
        return self.feature.name

    def check_classes(self, class_count: int) -> None:
        """Refuse what does not fit the classes or is not a density."""
        arrays = [self.mean, self.variance]
        arrays += [] if self.missing is None else [self.missing]
        if any(array.shape != (class_count,) or not np.isfinite(array).all() for array in arrays):
            raise FormatError(f"{self.name}: the density does not fit {class_count} classes")
        if not (self.variance > 0).all():
            raise FormatError(f"{self.name}: a variance is not positive")

    @cached_property
    def log_constant(self) -> Floats:
        """All of the log-density but the square, for each class."""
        log_constant = -0.5 * np.log(2 * np.pi * self.variance)
        if self.truncated:
            standard_deviation = np.sqrt(self.variance)
            lower_z = (self.feature.lower - self.mean) / standard_deviation
            upper_z = (self.feature.upper - self.mean) / standard_deviation
            log_constant = log_constant - _log_ndtr_between(lower_z, upper_z)
        if self.missing is not None:
            log_constant = log_constant + _log_probability(1 - self.missing)
        return np.asarray(log_constant)

    @cached_property
    def log_missing(self) -> Floats:
        """What a missing value adds to each class."""
        if self.missing is None:
            return np.zeros(len(self.mean))
        return _log_probability(self.missing)

    def describe_value(self, value: Any, schema: Schema) -> str:
        """The value, in words."""
        value_column = np.array([value], dtype=object)
        missing_tokens, outliers = schema.missing_tokens, schema.outliers
        number = float(parse_numbers(self.feature, value_column, missing_tokens, outliers)[0])
        return "(missing)" if np.isnan(number) else self.feature.format_bound(number)


Factor = CellFactor | GaussianFactor


@dataclass(frozen=True, eq=False)
class PairFactor:
    """What two features add together: a table over groups of cells of one and of the other.

    Parameters
    ----------
    cells : pair of Cells
    groups : pair of tuple of int
        The group of each cell; -1 for a cell that is to be ignored.
    scores : array of shape (classes, groups of the first times groups of the second)
    support : CellSupport, optional
        What the corrections say that the pair was made of.
    """

    cells: tuple[Cells, Cells]
    groups: tuple[tuple[int, ...], tuple[int, ...]]
    scores: Floats
    support: CellSupport | None = None

    @property
    def names(self) -> tuple[str, str]:
        """Names of the two features."""
        return self.cells[0].feature.name, self.cells[1].feature.name

    def check_classes(self, class_count: int) -> None:
        """Refuse what does not fit the cells or is not a number."""
        pair_name = " and ".join(self.names)
        if len(set(self.names)) < 2:
            raise FormatError(f"{pair_name}: a pair is of two features")
        group_counts = []
        for feature_cells, cell_groups in zip(self.cells, self.groups, strict=True):
            if (
                len(cell_groups) != feature_cells.size
                or min(cell_groups) < -1
                or max(cell_groups) < 0
            ):
                raise FormatError(f"{pair_name}: the groups do not fit the cells")
            group_counts.append(max(cell_groups) + 1)
        if self.scores.shape != (class_count, group_counts[0] * group_counts[1]):
            raise FormatError(f"{pair_name}: the factor does not fit its groups")
        if not np.isfinite(self.scores).all():
            raise FormatError(f"{pair_name}: a score is not a number")
        if self.support is not None:
            self.support.check_shape(pair_name, self.scores.shape)

    @property
    def scores_by_cells(self) -> Floats:
        """What each two cells add, of shape (cells of one, cells of the other, classes)."""
        table_shape = (self.cells[0].size, self.cells[1].size)
        first_cells, second_cells = np.indices(table_shape).reshape(2, -1)
        return self.score_cells(first_cells, second_cells).reshape(*table_shape, -1)

    def score_cells(self, first_cells: Array, second_cells: Array) -> Floats:
        """What cells of one and of the other add, row by row, of shape (rows, classes).

        Parameters
        ----------
        first_cells, second_cells : array of int
            Indices of cells.
        """
        first_groups, second_groups = (np.array(cell_groups) for cell_groups in self.groups)
        group_counts = first_groups.max() + 1, second_groups.max() + 1
        # a last group of each, which adds nothing, for the cells that are ignored
        padded_scores = np.zeros((group_counts[0] + 1, group_counts[1] + 1, len(self.scores)))
        padded_scores[:-1, :-1] = self.scores.T.reshape(*group_counts, -1)
        first_groups[first_groups < 0] = group_counts[0]
        second_groups[second_groups < 0] = group_counts[1]
        pair_indices = np.take(first_groups * (group_counts[1] + 1), first_cells)
        pair_indices += np.take(second_groups, second_cells)
        return np.take(padded_scores.reshape(-1, len(self.scores)), pair_indices, axis=0)

    def find_group(self, first_cell: int, second_cell: int) -> int | None:
        """The column of ``scores`` of two cells; None where one of them is ignored.

        Parameters
        ----------
        first_cell, second_cell : int
            Indices of cells.
        """
        first_group, second_group = self.groups[0][first_cell], self.groups[1][second_cell]
        if min(first_group, second_group) < 0:
            return None
        return first_group * (max(self.groups[1]) + 1) + second_group

    def describe_groups(self) -> list[str]:
        """The columns of ``scores``, in words."""
        group_labels = []
        for feature_cells, cell_groups in zip(self.cells, self.groups, strict=True):
            cell_labels: list[list[str]] = [[] for _ in range(max(cell_groups) + 1)]
            for label, group_index in zip(feature_cells.rounded_labels, cell_groups, strict=True):
                if group_index >= 0:
                    cell_labels[group_index].append(label)
            group_labels.append(
                [
                    " | ".join(labels) if len(labels) <= 3 else f"{labels[0]} … {labels[-1]}"
                    for labels in cell_labels
                ]
            )
        return [
            f"{first_label} & {second_label}"
            for first_label, second_label in product(*group_labels)
        ]


def _log_probability(probability: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probability))


def _log_ndtr_between(low: Floats, high: Floats) -> Floats:
    """log(Phi(high) - Phi(low)), also far in a tail, where both round to the same number."""
    from scipy.special import log_ndtr

    in_right_tail = low > 0  # work in the left tail, where log_ndtr is accurate
    low, high = np.where(in_right_tail, -high, low), np.where(in_right_tail, -low, high)
    log_lower, log_upper = log_ndtr(low), log_ndtr(high)
    return np.asarray(log_upper + np.log1p(-np.exp(np.minimum(log_lower - log_upper, -1e-300))))


def encode_factor(factor: Factor | PairFactor) -> dict[str, Any]:
    """Plain values for JSON."""
    if isinstance(factor, PairFactor):
        return {
            "features": list(factor.names),
            "edges": [list(feature_cells.edges) for feature_cells in factor.cells],
            "groups": [list(cell_groups) for cell_groups in factor.groups],
            "scores": factor.scores.tolist(),
            "support": None if factor.support is None else factor.support.to_body(),
        }
    if isinstance(factor, CellFactor):
        return {
            "kind": "cells",
            "feature": factor.name,
            "edges": list(factor.cells.edges),
            "log_probability": factor.log_probability.tolist(),
            "support": None if factor.support is None else factor.support.to_body(),
        }
    return {
        "kind": "gaussian",
        "feature": factor.name,
        "mean": factor.mean.tolist(),
        "variance": factor.variance.tolist(),
        "truncated": factor.truncated,
        "missing": None if factor.missing is None else factor.missing.tolist(),
    }


class CellBody(Body):
    """The shape of a table on disk."""

    kind: Literal["cells"]
    feature: str
    edges: list[float]
    log_probability: list[list[float]]
    support: SupportBody | None


class PairBody(Body):
    """The shape of a table of two features on disk."""

    features: tuple[str, str]
    edges: tuple[list[float], list[float]]
    groups: tuple[list[int], list[int]]
    scores: list[list[float]]
    support: SupportBody | None


class GaussianBody(Body):
    """The shape of a density on disk."""

    kind: Literal["gaussian"]
    feature: str
    mean: list[float]
    variance: list[float]
    truncated: bool
    missing: list[float] | None


@overload
def decode_factor(body: PairBody, schema: Schema) -> PairFactor: ...
@overload
def decode_factor(body: CellBody | GaussianBody, schema: Schema) -> Factor: ...
def decode_factor(body: PairBody | CellBody | GaussianBody, schema: Schema) -> Factor | PairFactor:
    """What :func:`encode_factor` wrote, if it fits the schema."""
    if isinstance(body, PairBody):
        first_cells, second_cells = (
            Cells.from_edges(schema, *name_and_edges)
            for name_and_edges in zip(body.features, body.edges, strict=True)
        )
        pair_groups = (tuple(body.groups[0]), tuple(body.groups[1]))
        return PairFactor(
            (first_cells, second_cells),
            pair_groups,
            np.array(body.scores, dtype=float),
            None if body.support is None else body.support.to_support(),
        )
    if isinstance(body, CellBody):
        cells = Cells.from_edges(schema, body.feature, body.edges)
        support = None if body.support is None else body.support.to_support()
        return CellFactor(cells, np.array(body.log_probability, dtype=float), support)
    feature = schema[body.feature]
    if not isinstance(feature, Numeric):
        raise FormatError(f"{body.feature} is not numeric, so it has no density")
    missing = None if body.missing is None else np.array(body.missing)
    mean, variance = np.array(body.mean), np.array(body.variance)
    return GaussianFactor(feature, mean, variance, body.truncated, missing)
