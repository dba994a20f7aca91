"""What the released numbers say about the cells of a factor, before anything is shrunk.

A factor is a table of probabilities that were shrunk, corrected and toned down. By itself it does
not show how many people a cell has, nor how far the known noise could have moved it. The support of
a factor has both. It is computed from released statistics alone, so it costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.errors import FormatError
from discreet.files.documents import Body

__all__ = [
    "CellSupport",
    "NoiseQuantiles",
    "SupportBody",
    "SupportedRatio",
    "ValueRange",
    "compute_noise_quantile",
]

ValueRange = tuple[float, float]

CONFIDENCE = 0.95
"""Probability with which statements hold, each or together as it says."""


def compute_noise_quantile(statements: int, trust: str) -> float:
    """Compute the standard errors of noise within which all of several estimates are right.

    Bonferroni: each fails with probability at most 0.05 / statements. Where answers are randomized
    one by one, the noise of a count is a sum over people and nearly normal. A curator's or a
    provider's noise may be a single Laplace number, P(|X| > z sd) = exp(-z sqrt 2); sums of such
    numbers have lighter tails.

    Parameters
    ----------
    statements : int
    trust : str
        Trust model of the guarantee.

    Examples
    --------
    >>> round(compute_noise_quantile(1, "local"), 2), round(compute_noise_quantile(1, "central"), 2)
    (1.96, 2.12)
    """
    tail_probability = (1 - CONFIDENCE) / max(statements, 1)
    if trust in ("local", "survey"):
        return NormalDist().inv_cdf(1 - tail_probability / 2)
    return -math.log(tail_probability) / math.sqrt(2)


@dataclass(frozen=True)
class NoiseQuantiles:
    """Standard errors of noise that statements about the cells of a model must keep.

    Parameters
    ----------
    single : float
        For one statement alone.
    all_cells : float
        For a statement about every cell together.
    all_ratios : float
        For all ratios together that are shown.
    """

    single: float
    all_cells: float
    all_ratios: float

    @classmethod
    def from_counts(cls, cells: int, ratios: int, trust: str) -> NoiseQuantiles:
        """Compute the quantiles for so much that is said.

        Parameters
        ----------
        cells, ratios : int
            How many cells the model has, and how many ratios may be shown.
        trust : str
            Trust model of the guarantee.
        """
        return cls(
            *(compute_noise_quantile(statements, trust) for statements in (1, cells, ratios))
        )


@dataclass(frozen=True)
class SupportedRatio:
    """How many people a cell has, and how much likelier it is in one class than in others.

    Parameters
    ----------
    share : float
        Share of all people in the cell; may be negative.
    share_interval : pair of float or None
        Its interval within 0 and 1, with 95 % confidence for all cells together; None if it is
        exact.
    single_range : pair of float
        The ratios P(cell | class) / P(cell | others) that the noise leaves open, with 95 %
        confidence for this ratio alone.
    joint_range : pair of float
        The same for all ratios together.
    has_people : bool
        Whether there are people in the cell, with 95 % confidence for all cells together.
    """

    share: float
    share_interval: ValueRange | None
    single_range: ValueRange
    joint_range: ValueRange
    has_people: bool

    def speaks_for_class(self) -> bool:
        """Whether the cell speaks for the class, and for people."""
        return self.has_people and self.single_range[0] > 1

    def speaks_against_class(self) -> bool:
        """Whether the cell speaks against the class, and for people."""
        return self.has_people and self.single_range[1] < 1


@dataclass(frozen=True, eq=False)
class CellSupport:
    """Unbiased estimates for the cells of a factor, with the standard errors of the known noise.

    Parameters
    ----------
    shares, share_errors : arrays of shape (cells,)
        Share of all people in each cell; of a pair, of those whose class is open, each counted as
        p (1 - p).
    rates, rate_errors : arrays of shape (classes, cells)
        P(cell | class); of a pair, the share plus what its features do not explain. Errors are for
        comparing classes.
    """

    shares: Floats
    share_errors: Floats
    rates: Floats
    rate_errors: Floats

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise unless all arrays fit a factor of that shape.

        Parameters
        ----------
        name : str
            Of the factor, for the message.
        shape : tuple of int
            Classes and cells.
        """
        for array, expected_shape in (
            (self.shares, shape[1:]),
            (self.share_errors, shape[1:]),
            (self.rates, shape),
            (self.rate_errors, shape),
        ):
            if array.shape != expected_shape or np.isnan(array).any():
                raise FormatError(f"{name}: the support of the factor does not fit its cells")
        if (self.share_errors < 0).any() or (self.rate_errors < 0).any():
            raise FormatError(f"{name}: a standard error of the support is negative")

    def compare_classes(
        self, cell_index: int, class_index: int, rival_weights: Floats, quantiles: NoiseQuantiles
    ) -> SupportedRatio:
        """Compare how likely a cell is in one class and in others.

        Parameters
        ----------
        cell_index, class_index : int
        rival_weights : array of shape (classes,)
            Weights of the classes to compare with; they are made to add up to 1.
        quantiles : NoiseQuantiles
        """
        weights = rival_weights / max(float(rival_weights.sum()), 1e-300)
        rivals = weights > 0
        rates, errors = self.rates[:, cell_index], self.rate_errors[:, cell_index]
        estimates = (
            float(rates[class_index]),
            float(errors[class_index]),
            float(weights[rivals] @ rates[rivals]),
            float(np.sqrt(weights[rivals] ** 2 @ errors[rivals] ** 2)),
        )
        share, share_error = float(self.shares[cell_index]), float(self.share_errors[cell_index])
        # lines are shown because of their estimates, so each statement must hold among all of them
        share_margin = quantiles.all_cells * share_error
        return SupportedRatio(
            share,
            (max(share - share_margin, 0.0), min(share + share_margin, 1.0))
            if share_error
            else None,
            _divide_by_fieller(*estimates, quantiles.single),
            _divide_by_fieller(*estimates, quantiles.all_ratios),
            share > quantiles.all_cells * share_error,
        )

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "shares": self.shares.tolist(),
            "share_errors": self.share_errors.tolist(),
            "rates": self.rates.tolist(),
            "rate_errors": self.rate_errors.tolist(),
        }


def _divide_by_fieller(
    x: float, x_error: float, y: float, y_error: float, quantile: float
) -> ValueRange:
    """Compute all r >= 0 for which |x - r y| <= quantile * sqrt(x_error^2 + r^2 y_error^2).

    Fieller's confidence set of the ratio x / y: it excludes 1 exactly where x - y is more than
    ``quantile`` of its standard errors from zero. (0, infinity) where nothing is known.

    >>> _divide_by_fieller(0.6, 0.0, 0.3, 0.0, 2.0), _divide_by_fieller(0.1, 0.1, 0.0, 0.1, 2.0)
    ((2.0, 2.0), (0.0, inf))
    """
    if not (math.isfinite(x_error) and math.isfinite(y_error)):
        return 0.0, math.inf
    # a r^2 - 2 x y r + c <= 0
    a, c = y * y - (quantile * y_error) ** 2, x * x - (quantile * x_error) ** 2
    root = math.sqrt(max((x * y) ** 2 - a * c, 0.0))
    if a > 0 and y > 0:
        return max((x * y - root) / a, 0.0), max((x * y + root) / a, 0.0)
    if c > 0 and x > 0:  # the rivals may have nobody in the cell, so there is no upper end
        return (c / (x * y + root) if x * y + root > 0 else math.inf), math.inf
    return 0.0, math.inf


class SupportBody(Body):
    """The shape of a support on disk."""

    shares: list[float]
    share_errors: list[float]
    rates: list[list[float]]
    rate_errors: list[list[float]]

    def to_support(self) -> CellSupport:
        """The value this shape stands for."""
        return CellSupport(
            np.array(self.shares, dtype=float),
            np.array(self.share_errors, dtype=float),
            np.array(self.rates, dtype=float),
            np.array(self.rate_errors, dtype=float),
        )
