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
from discreet.collection.batch_sizes import BatchSizes
from discreet.collection.parquet_reports import BATCH_COLUMN
from discreet.collection.protocol import Channel, Collection, parse_collection_json
from discreet.collection.tally import Tally
from discreet.errors import DiscreetError
from discreet.tables.engines import iter_arrow_batches

__all__ = ["AnswerBatch", "PartialSums", "iter_partial_sums", "make_comparable_ids", "read_batches"]


class AnswerBatch:
    """A batch of answers: validity of each row, and the integers as one matrix per question."""

    def __init__(self, channels: Sequence[Channel], batch: Any) -> None:
        import pyarrow as pa

        value_lists = batch["value"].cast(pa.list_(pa.int64()))
        self.questions = batch["question"].to_numpy().astype(np.int64)
        list_ends = value_lists.offsets.to_numpy().astype(np.int64)
        self.starts = list_ends[:-1]
        self.integers = value_lists.values.fill_null(0).to_numpy()
        self.widths = [channel.width for channel in channels]
        self.has_null = np.zeros(batch.num_rows, bool)
        if value_lists.values.null_count:
            null_flags = value_lists.values.is_null().to_numpy(zero_copy_only=False)
            nulls_before = np.append(0, np.cumsum(null_flags))
            self.has_null = nulls_before[list_ends[1:]] > nulls_before[list_ends[:-1]]
        self.out_of_domain = np.zeros(batch.num_rows, bool)
        for question, row_indices, matrix in self.split_by_question(~self.has_null):
            self.out_of_domain[row_indices] = channels[question].find_faulty(matrix)
        self.is_valid = ~self.has_null & ~self.out_of_domain
        self._batch_marks, self._mark_indices = _index_marks(batch)

    def count_batch_sizes(self, multiplicities: Integers | None = None) -> BatchSizes:
        """Count the valid answers by their batch of a shuffle.

        Parameters
        ----------
        multiplicities : array of int, optional
            How often each answer was sent; once if not given.
        """
        report_weights = (
            self.is_valid.astype(np.int64)
            if multiplicities is None
            else np.where(self.is_valid, multiplicities, 0)
        )
        report_counts = np.zeros(len(self._batch_marks), np.int64)
        np.add.at(report_counts, self._mark_indices, report_weights)
        batch_sizes = BatchSizes()
        for mark_index in np.flatnonzero(report_counts).tolist():
            batch_sizes.add(self._batch_marks[mark_index], int(report_counts[mark_index]))
        return batch_sizes

    def split_by_question(self, row_flags: Booleans) -> Iterator[tuple[int, Any, Any]]:
        """Iterate over (question, rows, matrix) of the flagged rows, by question."""
        row_indices = np.flatnonzero(row_flags)
        row_indices = row_indices[np.argsort(self.questions[row_indices], kind="stable")]
        question_numbers, group_starts = np.unique(self.questions[row_indices], return_index=True)
        row_groups = np.split(row_indices, group_starts[1:]) if len(row_indices) else []
        for question, group_rows in zip(question_numbers, row_groups, strict=True):
            integer_indices = self.starts[group_rows][:, None] + np.arange(self.widths[question])
            yield int(question), group_rows, self.integers[integer_indices]

    def find_changes(self, row_indices: Integers) -> Booleans:
        """Flag each of these rows that differs from the previous one."""
        is_changed = np.ones(len(row_indices), bool)
        mark_indices = self._mark_indices[row_indices]
        row_flags = np.zeros(len(self.questions), bool)
        row_flags[row_indices] = True
        row_positions = np.cumsum(row_flags) - 1
        for _, group_rows, matrix in self.split_by_question(row_flags):
            is_adjacent = np.diff(row_positions[group_rows]) == 1
            is_equal = (matrix[1:] == matrix[:-1]).all(axis=1) & is_adjacent
            is_changed[row_positions[group_rows[1:]]] = ~is_equal
        is_changed[1:] |= mark_indices[1:] != mark_indices[:-1]
        return is_changed


def _index_marks(batch: Any) -> tuple[list[str | None], Integers]:
    """Return the distinct batch marks, and for each row the index of its mark."""
    import pyarrow as pa

    if BATCH_COLUMN not in batch.schema.names:
        return [None], np.zeros(batch.num_rows, np.int64)
    mark_column = batch[BATCH_COLUMN].cast(pa.binary()).dictionary_encode(null_encoding="encode")
    batch_marks = [
        None if mark_bytes is None else mark_bytes.hex()
        for mark_bytes in mark_column.dictionary.to_pylist()
    ]
    return batch_marks, mark_column.indices.to_numpy().astype(np.int64)


def read_batches(table: Any, batch_rows: int) -> Iterator[Any]:
    """Read the rows of a query as Arrow batches in bounded memory."""
    import pyarrow as pa

    engine = table.get_backend()
    if engine.name != "pyspark":
        yield from iter_arrow_batches(table, batch_rows)
        return
    # ibis would collect everything on the driver; this keeps one partition in memory
    row_stream = engine.raw_sql(engine.compile(table)).toLocalIterator()
    column_types = {
        "id": pa.binary(),
        "question": pa.int32(),
        "value": pa.list_(pa.int64()),
        BATCH_COLUMN: pa.binary(),
    }
    batch_schema = pa.schema({name: column_types.get(name, pa.int64()) for name in table.columns})
    while row_tuples := list(itertools.islice(row_stream, batch_rows)):
        columns = [
            pa.array(column, arrow_type)
            for column, arrow_type in zip(
                zip(*row_tuples, strict=True), batch_schema.types, strict=True
            )
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=batch_schema)


def make_comparable_ids(id_column: Any) -> NDArray[Any]:
    """Convert ids of 16 bytes to values that can be compared."""
    import pyarrow as pa

    fixed_size_ids = id_column.cast(pa.binary()).cast(pa.binary(16))
    id_bytes = np.frombuffer(fixed_size_ids.buffers()[1], np.uint8)[16 * fixed_size_ids.offset :]
    return id_bytes[: 16 * len(fixed_size_ids)].view("V16")


@dataclass(frozen=True)
class PartialSums:
    """Result of one worker for one question: sums, and counts of valid and invalid answers.

    ``batch_sizes`` covers all questions; only the first result of a worker carries it.
    """

    question: int
    sums: Integers
    valid_count: int
    null_count: int
    out_of_domain_count: int
    batch_sizes: BatchSizes


def iter_partial_sums(collection: Collection, answers: Any) -> Iterator[PartialSums]:
    """Sum answers (an ibis table on Spark with ``question`` and ``value``) by partition."""
    engine = answers.get_backend()
    spark_frame = engine.raw_sql(engine.compile(answers))
    row_schema = (
        "question int, sums array<bigint>, valid bigint, torn bigint, wrong bigint, "
        "marks array<string>, sizes array<bigint>"
    )
    partition_sums = spark_frame.mapInArrow(
        partial(_sum_partition, collection.to_json()), row_schema
    )
    try:
        rows = partition_sums.collect()  # a row for each partition and question
    except Exception as error:  # Spark reports the failure of a worker as various Java errors
        if "No module named" not in str(error):
            raise
        raise DiscreetError(
            "the workers of this Spark cannot import discreet; install it where they run, or set "
            "PYSPARK_PYTHON to a Python that has it before the session starts"
        ) from None
    for row in rows:
        sums = np.array(row["sums"], dtype=np.int64)
        batch_sizes = BatchSizes(dict(zip(row["marks"], row["sizes"], strict=True)))
        yield PartialSums(
            row["question"], sums, row["valid"], row["torn"], row["wrong"], batch_sizes
        )


_load_collection = lru_cache(maxsize=4)(parse_collection_json)


def _sum_partition(collection_json: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Sum one partition; runs on a worker and yields one row per question."""
    import pyarrow as pa

    collection = _load_collection(collection_json)
    tally: Tally[Any] = Tally(collection)
    null_counts, domain_counts = np.zeros((2, len(collection.questions)), np.int64)
    for batch in batches:
        answer_batch = AnswerBatch(collection.questions, batch)
        for question, _, matrix in answer_batch.split_by_question(answer_batch.is_valid):
            tally.add_values(question, matrix)
        tally.batches.merge(answer_batch.count_batch_sizes())
        np.add.at(null_counts, answer_batch.questions[answer_batch.has_null], 1)
        np.add.at(domain_counts, answer_batch.questions[answer_batch.out_of_domain], 1)
    question_numbers = np.flatnonzero(tally.counted + null_counts + domain_counts)
    batch_sizes = dict(sorted(tally.batches.items()))
    empty_rows: list[Any] = [[]] * max(len(question_numbers) - 1, 0)
    columns = {
        "question": pa.array(question_numbers.astype(np.int32)),
        "sums": pa.array(
            [tally.sums[question].tolist() for question in question_numbers], pa.list_(pa.int64())
        ),
        "valid": pa.array(tally.counted[question_numbers]),
        "torn": pa.array(null_counts[question_numbers]),
        "wrong": pa.array(domain_counts[question_numbers]),
        "marks": pa.array(
            [list(batch_sizes), *empty_rows][: len(question_numbers)], pa.list_(pa.string())
        ),
        "sizes": pa.array(
            [list(batch_sizes.values()), *empty_rows][: len(question_numbers)], pa.list_(pa.int64())
        ),
    }
    yield pa.RecordBatch.from_pydict(columns)
