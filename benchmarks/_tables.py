"""Tables that come with scikit-learn, with public bounds, and generated ones with many classes."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd

from discreet import Categorical, Numeric, Schema

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


def generated(name: str) -> Any:
    """A table by its size: ``numeric20x30x5000`` has 20 classes, 30 features and 5000 rows.

    ``categorical...`` likewise; ``strong15x1000`` has two classes and 15 features: one that is
    right in 87 % of the rows, and many noisy copies of one that is right in 68 %.
    """
    kind, *sizes = re.findall("[a-z]+|[0-9]+", name.replace("x", " "))
    numbers = [int(size) for size in sizes]
    classes, d, n = numbers if kind != "strong" else (2, *numbers)
    rng = np.random.default_rng([classes, d, n, len(kind)])
    names = [f"x{j}" for j in range(d)]
    if kind == "strong":
        y = rng.integers(0, 2, n)
        hidden = np.where(rng.random(n) < 0.68, y, 1 - y)
        columns = [np.where(rng.random(n) < 0.87, y, 1 - y)]
        columns += [np.where(rng.random(n) < 0.9, hidden, 1 - hidden) for _ in names[1:]]
        schema = Schema([Categorical(one, ["0", "1"]) for one in names], "class", [0, 1])
        return pd.DataFrame(np.array(columns).T.astype(str), columns=names), y, schema
    y = rng.choice(classes, n, p=rng.dirichlet(np.full(classes, 5.0)))
    if kind == "numeric":
        means = rng.normal(size=(classes, d)) * rng.choice([0.5, 1.0, 2.0], size=d)
        X = np.clip(means[y] + rng.normal(size=(n, d)), -8, 8)
        features: list[Any] = [Numeric(one, -8, 8) for one in names]
        return pd.DataFrame(X, columns=names), y, Schema(features, "class", list(range(classes)))
    law = rng.dirichlet(np.ones(6), size=(d, classes)).cumsum(axis=2)
    cells = np.array([(rng.random(n)[:, None] > law[j, y][:, :-1]).sum(axis=1) for j in range(d)])
    features = [Categorical(one, list("012345")) for one in names]
    schema = Schema(features, "class", list(range(classes)))
    return pd.DataFrame(cells.T.astype(str), columns=names), y, schema
