"""Invented people that several test modules share."""

from __future__ import annotations

import numpy as np
import pandas as pd


def make_sizes(people: int = 4000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """People of ``schemas.SIZES``, some of them with a colour or a number that is missing."""
    rng = np.random.default_rng(seed)
    y = (rng.random(people) < 0.4).astype(int)
    frame = pd.DataFrame(
        {
            "size": rng.normal(2.0 * y, 1.0),
            "colour": np.where(rng.random(people) < 0.3 + 0.4 * y, "red", "blue"),
            "n": rng.poisson(2 + y).clip(0, 9).astype(float),
        }
    )
    frame.loc[::17, "colour"] = None
    frame.loc[::13, "n"] = np.nan
    return frame, y
