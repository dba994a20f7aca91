"""Batches of answers on their way from an engine into a tally.

Wide answers on Spark stay where they are: each worker sums its partition and returns only the sums.
The workers run this module, so discreet must be installed where they run; a local Spark has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Booleans, Integers
from discreet.collection.files import BATCH
from discreet.collection.protocol import Channel, Collection, collection_of
from discreet.collection.shuffle_batches import BatchSizes
from discreet.collection.tally import Tally
from discreet.errors import DiscreetError
from discreet.tables.engines import arrow_batches

__all__ = ["Answers", "PartialSums", "batches_of", "identities", "partial_sums"]


class Answers:
    """A batch of answers: validity of each row, and the integers as one matrix per question."""

    def __init__(self, channels: Sequence[Channel], batch: Any) -> None:
        import pyarrow as pa

        lists = batch["value"].cast(pa.list_(pa.int64()))
        self.questions = batch["question"].to_numpy().astype(np.int64)
        ends = lists.offsets.to_numpy().astype(np.int64)
        self.starts = ends[:-1]
        self.numbers = lists.values.fill_null(0).to_numpy()
        self.widths = [channel.width for channel in channels]
        self.torn = np.zeros(batch.num_rows, bool)
        if lists.values.null_count:
            holes = lists.values.is_null().to_numpy(zero_copy_only=False)
            before = np.append(0, np.cumsum(holes))
            self.torn = before[ends[1:]] > before[ends[:-1]]
        self.wrong = np.zeros(batch.num_rows, bool)
        for question, rows, matrix in self.parts(~self.torn):
            self.wrong[rows] = channels[question].faulty(matrix)
        self.valid = ~self.torn & ~self.wrong
        self._marks, self._places = _distinct_marks(batch)

    def batch_sizes(self, times: Integers | None = None) -> BatchSizes:
        """Count the valid answers by their batch of a shuffle.

        Parameters
        ----------
        times : array of int, optional
            How often each answer was sent; once if not given.
        """
        weight = self.valid.astype(np.int64) if times is None else np.where(self.valid, times, 0)
        reports = np.zeros(len(self._marks), np.int64)
        np.add.at(reports, self._places, weight)
        found = BatchSizes()
        for place in np.flatnonzero(reports).tolist():
            found.add(self._marks[place], int(reports[place]))
        return found

    def parts(self, flags: Booleans) -> Iterator[tuple[int, Any, Any]]:
        """Iterate over (question, rows, matrix) of the flagged rows, by question."""
        rows = np.flatnonzero(flags)
        rows = rows[np.argsort(self.questions[rows], kind="stable")]
        asked, begins = np.unique(self.questions[rows], return_index=True)
        pieces = np.split(rows, begins[1:]) if len(rows) else []
        for question, some in zip(asked, pieces, strict=True):
            places = self.starts[some][:, None] + np.arange(self.widths[question])
            yield int(question), some, self.numbers[places]

    def changed(self, rows: Integers) -> Booleans:
        """Flag each of these rows that differs from the previous one."""
        differs = np.ones(len(rows), bool)
        marks = self._places[rows]
        flags = np.zeros(len(self.questions), bool)
        flags[rows] = True
        place = np.cumsum(flags) - 1
        for _, some, matrix in self.parts(flags):
            follows = np.diff(place[some]) == 1
            same = (matrix[1:] == matrix[:-1]).all(axis=1) & follows
            differs[place[some[1:]]] = ~same
        differs[1:] |= marks[1:] != marks[:-1]
        return differs


def _distinct_marks(batch: Any) -> tuple[list[str | None], Integers]:
    """Return the distinct batch marks, and for each row the index of its mark."""
    import pyarrow as pa

    if BATCH not in batch.schema.names:
        return [None], np.zeros(batch.num_rows, np.int64)
    column = batch[BATCH].cast(pa.binary()).dictionary_encode(null_encoding="encode")
    marks = [None if one is None else one.hex() for one in column.dictionary.to_pylist()]
    return marks, column.indices.to_numpy().astype(np.int64)


def batches_of(table: Any, rows: int) -> Iterator[Any]:
    """Read the rows of a query as Arrow batches in bounded memory."""
    import pyarrow as pa

    engine = table.get_backend()
    if engine.name != "pyspark":
        yield from arrow_batches(table, rows)
        return
    # ibis would collect everything on the driver; this keeps one partition in memory
    stream = engine.raw_sql(engine.compile(table)).toLocalIterator()
    kinds = {
        "id": pa.binary(),
        "question": pa.int32(),
        "value": pa.list_(pa.int64()),
        BATCH: pa.binary(),
    }
    shape = pa.schema({name: kinds.get(name, pa.int64()) for name in table.columns})
    while some := list(itertools.islice(stream, rows)):
        columns = [
            pa.array(column, kind)
            for column, kind in zip(zip(*some, strict=True), shape.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=shape)


def identities(column: Any) -> NDArray[Any]:
    """Convert ids of 16 bytes to values that can be compared."""
    import pyarrow as pa

    fixed = column.cast(pa.binary()).cast(pa.binary(16))
    whole = np.frombuffer(fixed.buffers()[1], np.uint8)[16 * fixed.offset :]
    return whole[: 16 * len(fixed)].view("V16")


@dataclass(frozen=True)
class PartialSums:
    """Result of one worker for one question: sums, and counts of valid and invalid answers.

    ``batches`` covers all questions; only the first result of a worker carries it.
    """

    question: int
    sums: Integers
    valid: int
    torn: int
    wrong: int
    batches: BatchSizes


def partial_sums(collection: Collection, answers: Any) -> Iterator[PartialSums]:
    """Sum answers (an ibis table on Spark with ``question`` and ``value``) by partition."""
    engine = answers.get_backend()
    frame = engine.raw_sql(engine.compile(answers))
    shape = (
        "question int, sums array<bigint>, valid bigint, torn bigint, wrong bigint, "
        "marks array<string>, sizes array<bigint>"
    )
    summed = frame.mapInArrow(partial(_summed, collection.to_json()), shape)
    try:
        rows = summed.collect()  # a row for each partition and question
    except Exception as error:  # Spark reports the failure of a worker as various Java errors
        if "No module named" not in str(error):
            raise
        raise DiscreetError(
            "the workers of this Spark cannot import discreet; install it where they run, or set "
            "PYSPARK_PYTHON to a Python that has it before the session starts"
        ) from None
    for row in rows:
        sums = np.array(row["sums"], dtype=np.int64)
        batches = BatchSizes(dict(zip(row["marks"], row["sizes"], strict=True)))
        yield PartialSums(row["question"], sums, row["valid"], row["torn"], row["wrong"], batches)


@lru_cache(maxsize=4)
def _read(text: str) -> Any:
    return collection_of(text)


def _summed(text: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Sum one partition; runs on a worker and yields one row per question."""
    import pyarrow as pa

    collection = _read(text)
    tally: Tally[Any] = Tally(collection)
    torn, wrong = np.zeros((2, len(collection.questions)), np.int64)
    for batch in batches:
        answered = Answers(collection.questions, batch)
        for question, _, matrix in answered.parts(answered.valid):
            tally.add_values(question, matrix)
        tally.batches.merge(answered.batch_sizes())
        np.add.at(torn, answered.questions[answered.torn], 1)
        np.add.at(wrong, answered.questions[answered.wrong], 1)
    seen = np.flatnonzero(tally.counted + torn + wrong)
    sizes = tally.batches.to_body()
    none: list[Any] = [[]] * max(len(seen) - 1, 0)
    columns = {
        "question": pa.array(seen.astype(np.int32)),
        "sums": pa.array([tally.sums[q].tolist() for q in seen], pa.list_(pa.int64())),
        "valid": pa.array(tally.counted[seen]),
        "torn": pa.array(torn[seen]),
        "wrong": pa.array(wrong[seen]),
        "marks": pa.array([list(sizes), *none][: len(seen)], pa.list_(pa.string())),
        "sizes": pa.array([list(sizes.values()), *none][: len(seen)], pa.list_(pa.int64())),
    }
    yield pa.RecordBatch.from_pydict(columns)
