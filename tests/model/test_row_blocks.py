"""A large matrix is scored block by block, with the scores of each row alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from discreet import Categorical, CentralNB, Numeric, Schema
from discreet.errors import SchemaError
from discreet.model import naive_bayes


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    schema = Schema(
        [Numeric("a", -4, 4), Numeric("b", 0, 9, integer=True), Categorical("c", [0, 1, 2])],
        "y",
        [0, 1],
    )
    y = rng.integers(0, 2, 3000)
    X = np.column_stack(
        [rng.uniform(-4, 4, 3000), rng.integers(0, 10, 3000), (y + rng.integers(0, 2, 3000)) % 3]
    ).astype(float)
    X[::7, 0] = np.nan
    return CentralNB(50.0, schema=schema, random_state=0).fit(X, y).model_, X


def test_blocks_are_as_all_rows_at_once(monkeypatch, trained):
    model, X = trained
    whole = model.predict_joint_log_proba(X)
    frame = pd.DataFrame(X, columns=model.schema.names)
    for rows in (1, 700, 2999, 3000):
        monkeypatch.setattr(naive_bayes, "BLOCK_ROWS", rows)
        assert model.predict_joint_log_proba(X[:1400]).tobytes() == whole[:1400].tobytes()
        assert model.predict_joint_log_proba(frame).tobytes() == whole.tobytes()


def test_a_number_outside_is_refused_in_any_block(monkeypatch, trained):
    model, X = trained
    monkeypatch.setattr(naive_bayes, "BLOCK_ROWS", 100)
    outside = X.copy()
    outside[2950, 0] = 17.0
    with pytest.raises(SchemaError, match="17 is outside"):
        model.predict_joint_log_proba(outside)
