"""Providers count dates alike, in memory, in files and in databases."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from round_fixtures import NAMES, PARTIES, agreed, cards

from discreet import Categorical, Date, DatePart, Schema
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import make_feature_requests
from discreet.federated.judging import make_judging_manifest
from discreet.federated.release import Release
from discreet.federated.service.provider import ProviderInput, _count_source

SCHEMA = Schema(
    [
        Date("joined", "2019-01-01", "2021-12-31", by="month"),
        DatePart("visited", by="weekday"),
        DatePart("called", by="hour"),
        Categorical("colour", ["red", "blue"]),
    ],
    "class",
    ["no", "yes"],
    outliers="clip",
)


def make_rows(size=300):
    rng = np.random.default_rng(7)
    classes = rng.integers(0, 2, size)
    hours = pd.to_timedelta(24 * 7 * rng.integers(0, 150, size) + 29 * classes, unit="h")
    moments = pd.Timestamp("2019-01-02") + hours
    return pd.DataFrame(
        {
            "joined": moments.strftime("%Y-%m-%d"),
            "visited": moments.strftime("%Y-%m-%d %H:%M:%S"),
            "called": moments.strftime("%Y-%m-%dT%H:%M:%S+01:00"),
            "colour": rng.choice(["red", "blue"], size),
            "class": np.array(["no", "yes"])[classes],
            "patient": rng.integers(0, size // 4, size),
        }
    )


def make_manifests():
    """A round of counts, and the next one, which judges candidates by rows."""
    parties = (cards(NAMES), PARTIES["collector"].card, PARTIES["receiver"].card)
    requests = make_feature_requests(SCHEMA, 4)
    first = agreed(
        Manifest(SCHEMA, requests, 1.0, *parties, aggregation="masks", rows_per_person=2)
    )
    totals = len(NAMES) * _count_source(first, make_rows())
    statistics = Release.from_totals(first, totals).statistics
    return first, agreed(make_judging_manifest(first, statistics, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("person", [None, "patient"])
def test_a_provider_counts_dates_alike_wherever_they_are(person, tmp_path):
    rows = make_rows()
    rows.to_csv(tmp_path / "rows.csv", index=False)
    typed = rows.astype({"joined": "datetime64[us]", "visited": "datetime64[us]"})
    typed.assign(called=pd.to_datetime(rows["called"])).to_parquet(tmp_path / "rows.parquet")
    types = {"visited": "timestamp", "called": "timestamp", "joined": "date"}
    with closing(sqlite3.connect(tmp_path / "rows.db")) as connection:
        rows.to_sql("t", connection, index=False, dtype=types)
    sources = [str(tmp_path / "rows.csv"), str(tmp_path / "rows.parquet")]
    sources.append(f"sqlite://{tmp_path}/rows.db#t")
    for manifest in make_manifests():
        bound = None
        if person is not None:
            bound = ProviderInput(rows, person=person).make_bound(manifest)
        in_memory = _count_source(manifest, rows, bound)
        for source in sources:
            assert _count_source(manifest, source, bound).tolist() == in_memory.tolist()
