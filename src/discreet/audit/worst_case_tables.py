"""Worst-case tables for smooth-sensitivity noise.

A smooth bound S is made for the worst table within reach, so on most tables a record moves the
statistic by less than S, and a training with half of its noise still keeps its promise there. On
the tables made here it moves by nearly all of S, in both numbers of every feature at once:
all values are in the middle, as many as will be trimmed (``smooth`` trims nobody) at the upper
bound, and the record that is added at the upper bound, too.

- The mean of n values moves by (R/2) / (n + 1), their variance by (R/2)^2 n / (n + 1)^2. S is
  (R/2) / (n - 1) and (R/2)^2 / (n - 1), as soon as exp(-beta n) n is small.
- Of the trimmed means of the values and of their squares about the middle, the added record, or
  one that it pushes down, is the first beyond the gap that is kept. The gap is all of S.

Everything follows from what is public: the schema, epsilon, delta, the shares and the noise law.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.audit.neighbours import make_corner_record
from discreet.audit.subject import Pair
from discreet.central.budget import Budget, CentralSettings
from discreet.central.parametric import split_feature_costs
from discreet.central.smooth import (
    STATISTIC_PAIRS,
    SmoothNoiseBudget,
    compute_noise_parameters,
    compute_trim,
)
from discreet.schema.schema import Numeric, Schema

__all__ = ["compute_relative_shift", "make_worst_case_pairs"]

CANDIDATE_SIZES = [int(n) for n in np.geomspace(8, 2000, 80)]
"""Records of the tables that are tried, the smallest that suffices first."""
SUFFICIENT_SHIFT = 0.97
"""Relative shift (of S) that is sufficient; larger tables gain little."""


def make_worst_case_pairs(params: Mapping[str, Any]) -> list[Pair]:
    """Make the worst-case pair for a CentralNB; empty if its noise does not depend on the table.

    Parameters
    ----------
    params : mapping
        ``get_params()`` of the estimator.
    """
    schema, method = params["schema"], params.get("method")
    if method not in STATISTIC_PAIRS:
        return []
    central_settings = CentralSettings(params["allocation"], noise=params["noise"])
    budget = Budget(params["epsilon"], params["delta"] or 0.0)
    betas = {
        name: beta
        for name, (_, beta) in compute_noise_parameters(schema, budget, central_settings).items()
    }
    if not betas:
        return []
    noise_budget = SmoothNoiseBudget(central_settings.noise, budget).budget
    count_spread = math.sqrt(
        noise_budget.spend_on_noise(
            "counts", split_feature_costs(schema, central_settings, noise_budget)[""]
        ).variance
    )
    shift_by_size = {
        size: min(
            compute_relative_shift(method, size, beta, count_spread) for beta in {*betas.values()}
        )
        for size in CANDIDATE_SIZES
    }
    table_size = next(
        (size for size, shift in shift_by_size.items() if shift >= SUFFICIENT_SHIFT),
        max(CANDIDATE_SIZES, key=shift_by_size.__getitem__),
    )
    base_record = make_corner_record(schema, False)
    columns = {
        name: [
            _decode_value(schema, name, code)
            for code in _make_value_codes(method, table_size, beta)
        ]
        for name, beta in betas.items()
    }
    base_table = [
        base_record | {name: column[row_index] for name, column in columns.items()}
        for row_index in range(table_size)
    ]
    added_record = base_record | {name: _decode_value(schema, name, 2) for name in betas}
    return [
        Pair(
            f"{table_size} and one that moves all",
            f"{table_size}",
            [*base_table, added_record],
            base_table,
        )
    ]


def compute_relative_shift(method: str, size: int, beta: float, count_spread: float = 0.0) -> float:
    """Compute the shift by the added record, relative to the smooth bounds.

    Parameters
    ----------
    method : {"smooth", "trimmed"}
    size : int
        Records without it.
    beta : float
    count_spread : float
        Of the noisy count, from which the number of trimmed values comes.
    """
    base_codes = _make_value_codes(method, size, beta)
    shifts = []
    for noisy_count in (size - 2 * count_spread, float(size), size + 2 * count_spread):
        base_statistics, larger_statistics = (
            STATISTIC_PAIRS[method](value_codes, 2, (beta, beta), noisy_count)
            for value_codes in (base_codes, np.append(base_codes, 2))
        )
        shifts += [
            abs(float(base_statistic.value - larger_statistic.value))
            / max(base_statistic.sensitivity_bound, larger_statistic.sensitivity_bound)
            for base_statistic, larger_statistic in zip(
                base_statistics, larger_statistics, strict=True
            )
        ]
    return min(shifts)


def _make_value_codes(method: str, size: int, beta: float) -> Integers:
    """Value codes of one class, sorted: 1 is the middle, 2 the upper bound."""
    trim_count = compute_trim(size, beta) if method == "trimmed" else 0
    return np.repeat(np.array([1, 2]), [size - trim_count, trim_count])


def _decode_value(schema: Schema, name: str, code: int) -> float:
    feature = schema[name]
    assert isinstance(feature, Numeric)
    value = feature.lower + (feature.upper - feature.lower) * int(code) / 2
    return float(math.floor(value)) if feature.integer else value
