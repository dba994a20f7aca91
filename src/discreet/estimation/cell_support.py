"""The support of a model's factors: shares and rates of cells from statistics, with their noise.

Nothing is shrunk here. The numbers are rounded to SUPPORT_DIGITS digits, as nobody reads more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from discreet.arrays import Floats
from discreet.model import CellFactor, Factor, PairFactor
from discreet.model.support import CellSupport
from discreet.statistics.scoring import Correction
from discreet.statistics.statistics import Statistics, Table

__all__ = ["add_pair_support", "add_support"]

SUPPORT_DIGITS = 6
"""Significant digits of the numbers that a model carries for its support."""
MAX_DECIMALS = 20
"""Digits after the point at most: smaller numbers are zero."""


def add_support(statistics: Statistics, factor: Factor) -> Factor:
    """Add to a table of a model what its statistics say about the cells.

    Parameters
    ----------
    statistics : Statistics
    factor : CellFactor or GaussianFactor
        A density is left as it is.
    """
    if not isinstance(factor, CellFactor):
        return factor
    return replace(factor, support=_compute_support(statistics, statistics.tables[factor.name]))


def _compute_support(statistics: Statistics, table: Table) -> CellSupport:
    """Shares n_v / N and rates n_cv / N_c with errors to first order in the noise.

    Noise of a total moves a rate r = n / N by r dN / N. Where missing values are skipped, the
    people who have a value are the whole.
    """
    counts = np.array(table.counts, dtype=float)
    variances = np.array(table.between_class_variances, dtype=float)
    totals = np.array(statistics.totals, dtype=float)
    total_variances = np.array(statistics.variances, dtype=float)
    if statistics.schema.missing == "skip" and table.cells.missing_index is not None:
        missing_cell = table.cells.missing_index
        totals = totals - counts[:, missing_cell]
        total_variances = total_variances + np.asarray(table.variances)[:, missing_cell]
        counts[:, missing_cell], variances[:, missing_cell] = 0.0, 0.0
    # a class that the noise hides has at least as many people as its standard error
    class_sizes = np.maximum(totals, np.maximum(np.sqrt(total_variances), 1.0))[:, None]
    rates = counts / class_sizes
    rate_variances = variances + rates**2 * total_variances[:, None]
    people = max(float(totals.sum()), float(np.sqrt(total_variances.sum())), 1.0)
    shares = counts.sum(axis=0) / people
    sum_variances = (1 - table.cancelling_share) * np.asarray(table.variances).sum(axis=0)
    # divided twice, because squares of very large numbers are infinite
    share_variances = (
        sum_variances / people + shares**2 * (total_variances.sum() / people)
    ) / people
    return _round_support(
        shares, np.sqrt(share_variances), rates, np.sqrt(rate_variances) / class_sizes
    )


def add_pair_support(
    statistics: Statistics, pairs: Sequence[PairFactor], class_shares: Floats
) -> list[PairFactor]:
    """Add to each pair of features what the corrections that it was made of say.

    Parameters
    ----------
    statistics : Statistics
    pairs : sequence of PairFactor
    class_shares : array of shape (classes,)
    """
    applied_corrections = statistics.corrections[: statistics.scoring.corrections]
    return [
        replace(
            pair,
            support=_compute_pair_support(
                [
                    correction
                    for correction in applied_corrections
                    if tuple(correction.groups.items())
                    == tuple(zip(pair.names, pair.groups, strict=True))
                ],
                max(float(np.sum(statistics.totals)), 1.0),
                class_shares,
            ),
        )
        for pair in pairs
    ]


def _compute_pair_support(
    corrections: Sequence[Correction], people: float, class_shares: Floats
) -> CellSupport:
    """Shares s_v in proportion to the curvatures, rates s_v + G_cv / (p_c N) by the residuals G.

    Without residuals no class is more frequent in a cell than its features explain.
    """
    residuals = np.sum([correction.residuals for correction in corrections], axis=0)
    residual_error = float(np.sqrt(sum(correction.variance for correction in corrections)))
    if len(class_shares) == 2:
        # G of the second class is -G of the first: errors are opposed, not independent
        residuals = np.concatenate([-residuals, residuals])
        residual_error *= np.sqrt(2)
    curvatures = np.asarray(corrections[-1].curvatures, dtype=float)
    curvature_total = max(float(curvatures.sum()), 1.0)
    curvature_error = float(np.sqrt(corrections[-1].variance)) / curvature_total
    class_sizes = people * class_shares[:, None]
    return _round_support(
        curvatures / curvature_total,
        np.full(curvatures.shape, curvature_error),
        curvatures / curvature_total + residuals / class_sizes,
        np.full(residuals.shape, residual_error) / class_sizes,
    )


def _round_support(*arrays: Floats) -> CellSupport:
    """Round to significant digits."""
    rounded_arrays = []
    for array in arrays:
        with np.errstate(divide="ignore", invalid="ignore"):
            exponents = np.floor(np.log10(np.abs(array)))
        decimals = np.where(np.isfinite(exponents), SUPPORT_DIGITS - 1 - exponents, 0.0)
        # both powers are whole numbers, so that a quotient is the double nearest to its digits
        upper_power = 10.0 ** np.clip(decimals, 0, MAX_DECIMALS)
        lower_power = 10.0 ** np.clip(-decimals, 0, MAX_DECIMALS)
        digits = np.round(array * upper_power / lower_power)
        rounded_arrays.append(digits * lower_power / upper_power)
    return CellSupport(*rounded_arrays)
