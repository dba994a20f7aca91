"""Tables that come with scikit-learn, with public bounds: nothing was tuned on them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from discreet import Numeric, Schema

BUNDLED = ("iris", "wine", "wdbc", "digits")


def bundled(name: str) -> Any:
    """A table of scikit-learn; bounds are 0 and the maximum rounded up to 1, 2 or 5 times 10^k."""
    import sklearn.datasets

    known = {"wdbc": "breast_cancer"}
    found = getattr(sklearn.datasets, f"load_{known.get(name, name)}")()
    names = [f"x{j}" for j in range(found.data.shape[1])]
    features = []
    for column, top in zip(names, found.data.max(axis=0), strict=True):
        power = 10.0 ** math.floor(math.log10(max(top, 1e-9)))
        upper = next(power * step for step in (1, 2, 5, 10) if power * step >= top)
        features.append(Numeric(column, 0, upper, optional=False))
    schema = Schema(features, "class", np.unique(found.target).tolist())
    return pd.DataFrame(found.data, columns=names), found.target, schema
