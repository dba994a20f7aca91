"""A table and what is public about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its public schema.

    Parameters
    ----------
    name, title : str
    schema : Schema
    frame : pandas.DataFrame
        The features in schema order, then the target. Categories and classes are text, a missing
        one is None; numbers are float64, or int64 where they are whole and none is missing.
    source : str
        Where the rows come from.
    """

    name: str
    title: str
    schema: Schema
    frame: pd.DataFrame
    source: str

    @property
    def X(self) -> pd.DataFrame:  # noqa: N802 - scikit-learn's name for it
        """The features."""
        return self.frame[list(self.schema.names)]

    @property
    def y(self) -> NDArray[np.object_]:
        """The target, as text."""
        return np.asarray(self.frame[self.schema.target].to_numpy(dtype=object))

    def __len__(self) -> int:
        return len(self.frame)
