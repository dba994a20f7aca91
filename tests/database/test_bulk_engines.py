"""Claim: a real Spark tallies reports to the same integers as DuckDB, bad ones included."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.collection.bulk import tally_parquet
from discreet.collection.simulation import answers
from discreet.datasets import mortgage
from discreet.encoding import class_codes
from discreet.local.plan import Plan
from discreet.local.planning import make_plan
from discreet.randomness import SeededRandom

pytestmark = pytest.mark.slow


def delivered(plan: Plan, people: int) -> list[tuple[bytes, str, int, list[int]]]:
    """Reports with repetitions, reused ids, foreign ones and answers out of domain."""
    data, source, chance = mortgage(people), SeededRandom(4), random.Random(4)
    records = plan.encoded(data.X, class_codes(data.schema, data.y))
    rows = [
        (source.raw(16).tobytes(), plan.digest, question, value)
        for question, _, values in answers(plan, records, source)
        for value in values.tolist()
    ]
    spoiled = [*rows, *chance.sample(rows, 30)]
    for id_, digest, question, value in chance.sample(rows, 20):
        other = chance.choice(rows)
        spoiled += [
            (id_, digest, other[2], other[3]),
            (id_, "sha256:other", question, value),
            (id_, digest, 99, value),
            (id_, digest, question, [*value, 1]),
            (os.urandom(16), digest, question, [-(1 << 63)] * len(value)),
            (os.urandom(9), digest, question, value),
        ]
    chance.shuffle(spoiled)
    return spoiled


@pytest.mark.spark
@pytest.mark.parametrize(
    "options",
    [{"oracle": "auto"}, {"oracle": "olh"}, {"numeric": "gaussian", "approach": 1}],
    ids=["auto", "olh", "gaussian"],
)
def test_spark_and_duckdb_agree(spark: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    plan = make_plan(mortgage(1).schema, 1.0, 400, **options)
    kinds = {"id": pa.binary(), "collection": pa.string(), "question": pa.int32()}
    shape = pa.schema({**kinds, "value": pa.list_(pa.int64())})
    table = pa.table(list(zip(*delivered(plan, 400), strict=True)), schema=shape)
    path = tmp_path / "reports.parquet"
    pq.write_table(table, path)
    embedded = tally_parquet(plan, path)
    for source in (f"spark:{path}", spark.read.parquet(str(path))):
        spread = tally_parquet(plan, source)
        assert spread.counted.tolist() == embedded.counted.tolist()
        assert [s.tolist() for s in spread.sums] == [s.tolist() for s in embedded.sums]
        assert spread.rejected == embedded.rejected
        assert spread.repeated == embedded.repeated > 0
    assert len(embedded.rejected) == 5
