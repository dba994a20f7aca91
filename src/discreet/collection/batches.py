"""Batches of answers on their way from an engine into a tally."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Booleans, Integers
from discreet.collection.protocol import Channel
from discreet.tables.engines import arrow_batches

__all__ = ["Answers", "batches_of", "identities"]


class Answers:
    """A batch of answers: which rows are valid, and their numbers as one matrix per question."""

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

    def parts(self, flags: Booleans) -> Iterator[tuple[int, Any, Any]]:
        """(question, rows, matrix) of the flagged rows, in the order of the questions."""
        rows = np.flatnonzero(flags)
        rows = rows[np.argsort(self.questions[rows], kind="stable")]
        asked, begins = np.unique(self.questions[rows], return_index=True)
        pieces = np.split(rows, begins[1:]) if len(rows) else []
        for question, some in zip(asked, pieces, strict=True):
            places = self.starts[some][:, None] + np.arange(self.widths[question])
            yield int(question), some, self.numbers[places]

    def changed(self, rows: Integers) -> Booleans:
        """Whether each of these rows differs from the one before it."""
        differs = np.ones(len(rows), bool)
        flags = np.zeros(len(self.questions), bool)
        flags[rows] = True
        place = np.cumsum(flags) - 1
        for _, some, matrix in self.parts(flags):
            follows = np.diff(place[some]) == 1
            same = (matrix[1:] == matrix[:-1]).all(axis=1) & follows
            differs[place[some[1:]]] = ~same
        return differs


def batches_of(table: Any, rows: int) -> Iterator[Any]:
    """The rows of a query as Arrow batches, never all of them at once."""
    import pyarrow as pa

    engine = table.get_backend()
    if engine.name != "pyspark":
        yield from arrow_batches(table, rows)
        return
    # ibis would collect everything on the driver; this holds a partition at a time
    stream = engine.raw_sql(engine.compile(table)).toLocalIterator()
    kinds = {"id": pa.binary(), "question": pa.int32(), "value": pa.list_(pa.int64())}
    shape = pa.schema({name: kinds.get(name, pa.int64()) for name in table.columns})
    while some := list(itertools.islice(stream, rows)):
        columns = [
            pa.array(column, kind)
            for column, kind in zip(zip(*some, strict=True), shape.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=shape)


def identities(column: Any) -> NDArray[Any]:
    """Ids of 16 bytes as values that can be compared."""
    import pyarrow as pa

    fixed = column.cast(pa.binary()).cast(pa.binary(16))
    whole = np.frombuffer(fixed.buffers()[1], np.uint8)[16 * fixed.offset :]
    return whole[: 16 * len(fixed)].view("V16")
