"""Conversion of received reports, one as text or many as Parquet, to rows of the database.

A row is ``(id, question, value)``. The value is the report's integers, little-endian, each in as
many bytes (1, 2, 4 or 8) as the largest of them needs: the same report is always the same bytes.
"""

from __future__ import annotations

import io
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Integers
from discreet.collection.answer_batches import AnswerBatch, make_comparable_ids
from discreet.collection.parquet_reports import (
    BATCH_COLUMN,
    REPORT_COLUMNS,
    SIMULATED_KEY,
    check_report_columns,
)
from discreet.collection.protocol import Collection
from discreet.collection.report import ALREADY_SHUFFLED
from discreet.collection.tally import find_answer_faults
from discreet.errors import FormatError

__all__ = [
    "ReportRow",
    "compute_longest_value",
    "iter_matrices",
    "pack_integers",
    "pack_matrix",
    "read_batch_rows",
    "unpack_matrix",
]

INTEGER_SIZES = (1, 2, 4, 8)
BATCH_PIECE_ROWS = 10_000
"""Rows of a batch in one transaction, so that others do not wait long."""
MAX_BATCH_ROWS = 1_000_000
"""Reports of one Parquet batch."""


class ReportRow(NamedTuple):
    """One report as it is stored."""

    id: bytes
    question: int
    value: bytes


def pack_integers(value: Sequence[int]) -> bytes:
    r"""Pack the integers of one report as bytes.

    Parameters
    ----------
    value : sequence of int

    Examples
    --------
    >>> pack_integers([1, -1]), pack_integers([300])
    (b'\x01\xff', b',\x01')
    """
    magnitude = max((~integer if integer < 0 else integer for integer in value), default=0)
    struct_letter = next(
        (letter for letter, bits in (("b", 7), ("h", 15), ("i", 31)) if magnitude < 1 << bits), "q"
    )
    return struct.pack(f"<{len(value)}{struct_letter}", *value)


def compute_longest_value(collection: Collection) -> int:
    """Compute the longest packed report of a collection in bytes; all sealed rows are that long."""
    return max(
        channel.width * len(pack_integers([channel.max_magnitude]))
        for channel in collection.questions
    )


def pack_matrix(matrix: Integers) -> list[bytes]:
    """Pack the integers of many reports of one width, one row per report."""
    magnitudes = np.where(matrix < 0, ~matrix, matrix).max(axis=1, initial=0)
    packed_values = np.empty(len(matrix), object)
    is_unpacked = np.ones(len(matrix), bool)
    for size in INTEGER_SIZES:
        fits_size = is_unpacked & (magnitudes < 1 << (8 * size - 1))
        if fits_size.any():
            raw_bytes = np.ascontiguousarray(matrix[fits_size].astype(f"<i{size}"))
            packed_values[fits_size] = raw_bytes.view(f"V{size * matrix.shape[1]}").ravel().tolist()
        is_unpacked &= ~fits_size
    return packed_values.tolist()


def unpack_matrix(values: Sequence[bytes], width: int) -> Integers:
    """Unpack what :func:`pack_integers` made into bytes, one row per report."""
    matrix = np.empty((len(values), width), np.int64)
    value_lengths = np.array([len(value) for value in values])
    for length in np.unique(value_lengths):
        integer_size, remainder = divmod(int(length), width)
        if remainder or integer_size not in INTEGER_SIZES:
            raise FormatError("a stored report does not have the width of its question")
        row_indices = np.flatnonzero(value_lengths == length)
        integers = np.frombuffer(
            b"".join(values[row_index] for row_index in row_indices.tolist()), f"<i{integer_size}"
        )
        matrix[row_indices] = integers.reshape(-1, width)
    return matrix


def iter_matrices(
    collection: Collection, rows: Sequence[Any]
) -> Iterator[tuple[int, Integers, Integers]]:
    """Yield (question, indices of its rows, their integers) of stored rows."""
    row_questions = np.array([row[1] for row in rows], np.int64)
    for question in np.unique(row_questions).tolist():
        row_indices = np.flatnonzero(row_questions == question)
        width = collection.questions[question].width
        yield (
            question,
            row_indices,
            unpack_matrix([rows[row_index][2] for row_index in row_indices.tolist()], width),
        )


def find_faults(collection: Collection, reports: Sequence[Any]) -> list[str]:
    """Find why each report is refused, in the words of the tally; empty if it is valid."""
    report_faults = find_answer_faults(
        collection,
        [sent_report.question for sent_report in reports],
        [sent_report.value for sent_report in reports],
    )
    for report_index, report in enumerate(reports):
        if report.collection != collection.digest:
            report_faults[report_index] = f"foreign {collection.kind}"
        elif report.batch is not None:
            report_faults[report_index] = ALREADY_SHUFFLED
        elif report.simulated and not report_faults[report_index]:
            report_faults[report_index] = "simulated"
    return report_faults


def read_batch_rows(
    collection: Collection, content: bytes
) -> Iterator[tuple[list[ReportRow], Counter[str]]]:
    """Read the rows of a Parquet batch piece by piece, with the number refused per fault.

    Parameters
    ----------
    collection : Plan or Questionnaire
    content : bytes
        A file as :class:`~discreet.collection.parquet_reports.ReportFile` writes it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    max_width = max(channel.width for channel in collection.questions)
    try:
        parquet_file = pq.ParquetFile(io.BytesIO(content))
        check_report_columns(_convert_schema(parquet_file.schema_arrow), "this batch")
        if SIMULATED_KEY in (parquet_file.metadata.metadata or {}):
            raise FormatError("these reports come from a seeded source; they are not private")
        row_count = parquet_file.metadata.num_rows
        row_groups = [
            parquet_file.metadata.row_group(group_index)
            for group_index in range(parquet_file.metadata.num_row_groups)
        ]
        batch_columns = [BATCH_COLUMN] if BATCH_COLUMN in parquet_file.schema_arrow.names else []
        max_values = max(
            (
                group.column(column_index).num_values
                for group in row_groups
                for column_index in range(group.num_columns)
            ),
            default=0,
        )
        if row_count > MAX_BATCH_ROWS or max_values > (max_width + 1) * max(row_count, 1):
            raise FormatError(
                f"a batch has at most {MAX_BATCH_ROWS:,} reports of {max_width} integers"
            )
        for batch in parquet_file.iter_batches(
            BATCH_PIECE_ROWS, columns=[*REPORT_COLUMNS, *batch_columns]
        ):
            yield _convert_batch(collection, batch)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        reason = str(error).splitlines()[0]
        raise FormatError(f"this is not a Parquet file of reports: {reason}") from None


def _convert_schema(arrow_schema: Any) -> Any:
    """Convert an Arrow schema to ibis, which has no binary type of fixed size."""
    import ibis
    import pyarrow as pa

    arrow_fields = [
        field.with_type(pa.binary()) if pa.types.is_fixed_size_binary(field.type) else field
        for field in arrow_schema
    ]
    try:
        return ibis.schema(pa.schema(arrow_fields))
    except (KeyError, NotImplementedError):  # what ibis raises for Arrow types it has no name for
        raise FormatError("this batch has columns of a type that reports do not have") from None


def _convert_batch(collection: Collection, batch: Any) -> tuple[list[ReportRow], Counter[str]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, channels = collection.kind, collection.questions
    refused: Counter[str] = Counter()

    def filter_rows(batch: Any, is_valid: Any, fault: str) -> Any:
        refused_count = batch.num_rows - (pc.sum(is_valid).as_py() or 0)
        if not refused_count:
            return batch
        refused[fault] += refused_count
        return batch.filter(is_valid)

    table = pa.Table.from_batches([batch])
    is_present = pc.equal(pc.binary_length(table["id"].cast(pa.binary())), 16)
    for column_name in ("collection", "question", "value"):
        is_present = pc.and_(is_present, pc.is_valid(table[column_name]))
    batch = filter_rows(batch, pc.fill_null(is_present, False).combine_chunks(), "misshapen")
    digest_matches = pc.equal(batch["collection"].cast(pa.string()), collection.digest)
    batch = filter_rows(batch, digest_matches, f"foreign {kind}")
    if BATCH_COLUMN in batch.schema.names:
        batch = filter_rows(batch, pc.is_null(batch[BATCH_COLUMN]), ALREADY_SHUFFLED)
    is_known_question = pc.and_(
        pc.greater_equal(batch["question"], 0), pc.less(batch["question"], len(channels))
    )
    batch = filter_rows(batch, is_known_question, "unknown question")
    widths = np.array([channel.width for channel in channels])
    value_lengths = pc.list_value_length(batch["value"]).to_numpy(zero_copy_only=False)
    fits_width = value_lengths == widths[batch["question"].to_numpy(zero_copy_only=False)]
    batch = filter_rows(batch, pa.array(fits_width), "out of domain")
    # a filtered or sliced list keeps the numbers of what is gone
    compact_table = (
        pa.Table.from_batches([batch]).combine_chunks().take(pa.array(range(batch.num_rows)))
    )
    if not compact_table.num_rows:
        return [], refused
    batch = compact_table.combine_chunks().to_batches()[0]
    answers = AnswerBatch(channels, batch)
    for fault_flags, fault in (
        (answers.has_null, "misshapen"),
        (answers.out_of_domain, "out of domain"),
    ):
        if fault_flags.any():
            refused[fault] += int(fault_flags.sum())
    report_ids = make_comparable_ids(batch["id"]).tolist()
    rows: list[ReportRow] = []
    for question, row_indices, matrix in answers.split_by_question(answers.is_valid):
        values = pack_matrix(matrix)
        row_ids = [report_ids[row_index] for row_index in row_indices.tolist()]
        rows += map(ReportRow._make, zip(row_ids, repeat(question), values, strict=False))
    rows.sort()
    return rows, refused
