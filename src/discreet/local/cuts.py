"""Public cut points: bins of equal frequency in a sample that is public anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.encoding import Bins, numbers_of
from discreet.errors import SchemaError
from discreet.schema import Numeric, Schema

__all__ = ["quantile_cuts"]


def quantile_cuts(schema: Schema, sample: Mapping[str, Any], bins: Bins) -> Bins:
    """Cut points of every numeric feature, by the quantiles of a public sample."""
    cuts: dict[str, int | list[float]] = {}
    for feature in schema.features:
        if not isinstance(feature, Numeric):
            continue
        wanted = bins if isinstance(bins, int) else bins.get(feature.name, 8)
        if not isinstance(wanted, int):
            cuts[feature.name] = list(wanted)
            continue
        numbers = numbers_of(feature, sample[feature.name], schema.missing_tokens, schema.outliers)
        present = numbers[~np.isnan(numbers)]
        if not present.size:
            raise SchemaError(f"{feature.name}: the public sample has no values to cut by")
        points = np.unique(np.quantile(present, np.arange(1, wanted) / wanted))
        inside = [float(x) for x in points if feature.lower < x < feature.upper]
        cuts[feature.name] = inside if inside else 1
    return cuts
