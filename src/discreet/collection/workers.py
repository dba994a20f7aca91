"""Wide answers on Spark: each worker adds up what it holds, and only the sums travel.

The workers run this module, so discreet must be installed where they run; a local Spark has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.collection.batches import Answers
from discreet.collection.protocol import Collection, collection_of
from discreet.collection.tally import Tally
from discreet.errors import DiscreetError

__all__ = ["PartialSums", "partial_sums"]


@dataclass(frozen=True)
class PartialSums:
    """What one worker made of the answers to one question: sums, and how many were (not) valid."""

    question: int
    sums: Integers
    valid: int
    torn: int
    wrong: int


def partial_sums(collection: Collection, answers: Any) -> Iterator[PartialSums]:
    """Sums of answers (an ibis table on Spark with ``question`` and ``value``), by partition."""
    engine = answers.get_backend()
    frame = engine.raw_sql(engine.compile(answers))
    shape = "question int, sums array<bigint>, valid bigint, torn bigint, wrong bigint"
    summed = frame.mapInArrow(partial(_summed, collection.to_json()), shape)
    try:
        rows = summed.collect()  # a row for each partition and question
    except Exception as error:  # whatever Java makes of a worker's failure
        if "No module named" not in str(error):
            raise
        raise DiscreetError(
            "the workers of this Spark cannot import discreet; install it where they run, or set "
            "PYSPARK_PYTHON to a Python that has it before the session starts"
        ) from None
    for row in rows:
        sums = np.array(row["sums"], dtype=np.int64)
        yield PartialSums(row["question"], sums, row["valid"], row["torn"], row["wrong"])


@lru_cache(maxsize=4)
def _read(text: str) -> Any:
    return collection_of(text)


def _summed(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Runs on a worker: one row for each question that its partition answers."""
    import pyarrow as pa

    collection = _read(text)
    tally: Tally[Any] = Tally(collection)
    torn, wrong = np.zeros((2, len(collection.questions)), np.int64)
    for batch in batches:
        answered = Answers(collection.questions, batch)
        for question, _, matrix in answered.parts(answered.valid):
            tally.add_values(question, matrix)
        np.add.at(torn, answered.questions[answered.torn], 1)
        np.add.at(wrong, answered.questions[answered.wrong], 1)
    seen = np.flatnonzero(tally.counted + torn + wrong)
    columns = {
        "question": pa.array(seen.astype(np.int32)),
        "sums": pa.array([tally.sums[q].tolist() for q in seen], pa.list_(pa.int64())),
        "valid": pa.array(tally.counted[seen]),
        "torn": pa.array(torn[seen]),
        "wrong": pa.array(wrong[seen]),
    }
    yield pa.RecordBatch.from_pydict(columns)
