"""What every central method is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from discreet.encoding import Bins
from discreet.errors import SchemaError
from discreet.schema import Numeric, Schema

__all__ = ["PUBLISHED", "Method", "Settings", "check_bounded"]

PUBLISHED = {
    "global-published": "as published, the noise is scaled by exact class sizes, which leak; what "
    "was asked for is not kept",
}
"""Methods that are here to be compared with, and why they keep no promise."""

Method = Literal["histogram", "moments", "global", "global-published", "smooth", "trimmed"]

PUBLIC = "the schema was written without looking at the data"


@dataclass(frozen=True)
class Settings:
    """What the user may choose beside the promise.

    Parameters
    ----------
    allocation : mapping of feature name to weight, optional
        Shares of the budget.
    bins : "auto", int or mapping
        How numeric features are cut.
    likelihood : {"gaussian", "truncated"}
        Density of numeric features where one is fitted.
    selection : bool
        Whether a part of the budget may choose features and scorings.
    noise : Any
        Noise law of the smooth methods.
    assumptions : tuple of str
        What the promise rests on.
    """

    allocation: Mapping[str, Any] | None = None
    bins: Literal["auto"] | Bins = "auto"
    likelihood: Literal["gaussian", "truncated"] = "gaussian"
    selection: bool = True
    noise: Any = None
    assumptions: tuple[str, ...] = (PUBLIC,)


def check_bounded(schema: Schema) -> None:
    """Refuse numeric features without public bounds."""
    for feature in schema.features:
        if isinstance(feature, Numeric) and not feature.bounded:
            raise SchemaError(
                f"{feature.name} has no public bounds, and how far one person can move it is "
                f"unknown; write Numeric({feature.name!r}, lower, upper) with bounds you know"
            )
