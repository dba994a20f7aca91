"""Claim: a real Spark tallies reports to the same integers as DuckDB, bad ones included."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.collection import parquet_tally
from discreet.collection.parquet_reports import ReportFile
from discreet.collection.parquet_tally import tally_parquet
from discreet.collection.simulation import iter_simulated_answers
from discreet.datasets import make_mortgage
from discreet.local.plan import Plan
from discreet.local.planning import PlanOptions, make_plan
from discreet.randomness import SeededRandom
from discreet.schema.cells import encode_classes

pytestmark = pytest.mark.slow


def delivered(plan: Plan, people: int) -> list[tuple[bytes, str, int, list[int]]]:
    """Reports with repetitions, reused ids, foreign ones and answers out of domain."""
    data, source, chance = make_mortgage(people), SeededRandom(4), random.Random(4)
    records = plan.encode_columns(data.X, encode_classes(data.schema, data.y))
    rows = [
        (source.raw(16).tobytes(), plan.digest, question, value)
        for question, _, values in iter_simulated_answers(plan, records, source)
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
    [
        {"oracle": "auto"},
        {"oracle": "oue"},  # too wide to be grouped: summed by the workers
        {"oracle": "olh"},
        {"numeric": "gaussian", "approach": 1},
    ],
    ids=["auto", "oue", "olh", "gaussian"],
)
def test_spark_and_duckdb_agree(spark: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    plan = make_plan(make_mortgage(1).schema, 1.0, 400, PlanOptions(**options))
    kinds = {"id": pa.binary(), "collection": pa.string(), "question": pa.int32()}
    shape = pa.schema({**kinds, "value": pa.list_(pa.int64())})
    table = pa.table(list(zip(*delivered(plan, 400), strict=True)), schema=shape)
    chance = random.Random(5)
    marks = [chance.choice([None, b"a" * 16, b"b" * 16]) for _ in range(len(table))]
    table = table.append_column("batch", pa.array(marks, pa.binary()))
    path = tmp_path / "reports.parquet"
    pq.write_table(table, path)
    embedded = tally_parquet(plan, path)
    for source in (f"spark:{path}", spark.read.parquet(str(path))):
        spread = tally_parquet(plan, source)
        assert spread.counted.tolist() == embedded.counted.tolist()
        assert [s.tolist() for s in spread.sums] == [s.tolist() for s in embedded.sums]
        assert spread.rejected == embedded.rejected
        assert spread.repeated == embedded.repeated > 0
        assert spread.batches == embedded.batches
        assert spread.sample == embedded.sample
        assert spread.fingerprint == embedded.fingerprint
    assert len(embedded.rejected) == 5
    assert len(embedded.batches) == 2


@pytest.mark.spark
def test_spark_counts_whole_sheets_like_duckdb(spark: Any, tmp_path: Path, survey: Any) -> None:
    people = np.random.default_rng(0).integers(0, survey.sizes, (500, len(survey.sizes)))
    source = SeededRandom(1)
    sent = survey.randomize_records(0, people, source)
    path = tmp_path / "sheets.parquet"
    with ReportFile(path, survey, simulated=True) as file:
        file.write(0, source.raw(16 * len(sent)).reshape(-1, 16), sent)
    embedded, spread = (tally_parquet(survey, one) for one in (path, f"spark:{path}"))
    for one, two in zip(
        embedded.get_distinct_answers(), spread.get_distinct_answers(), strict=True
    ):
        assert one.tolist() == two.tolist()
    assert spread.reports == 500


@pytest.mark.spark
def test_wide_reports_never_come_to_the_driver(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each report once and none of few outputs: nothing but sums leaves the workers."""
    people = make_mortgage(300)
    plan = make_plan(people.schema, 1.0, 300, PlanOptions(oracle="oue", bins=30, kind="pairs"))
    wide = [n for n, question in enumerate(plan.questions) if question.outputs is None]
    source = SeededRandom(2)
    records = plan.encode_columns(people.X, encode_classes(people.schema, people.y))
    path = tmp_path / "wide.parquet"
    with ReportFile(path, plan) as file:
        for number in wide:
            values = plan.randomize_records(number, records, source)
            file.write(number, source.raw(16 * len(values)).reshape(-1, 16), values)
    expected = tally_parquet(plan, path)
    assert expected.reports == 300 * len(wide) > 0
    count = parquet_tally._BulkTally._count_answers

    def grouped_only(self: Any, answers: Any) -> None:
        assert "n" in answers.columns, "wide answers came to the driver one by one"
        count(self, answers)

    monkeypatch.setattr(parquet_tally._BulkTally, "_count_answers", grouped_only)
    with pytest.raises(AssertionError, match="came to the driver"):  # so the test can fail
        tally_parquet(plan, path)
    found = tally_parquet(plan, f"spark:{path}")
    assert [s.tolist() for s in found.sums] == [s.tolist() for s in expected.sums]
