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
from discreet.collection.batches import Answers, identities
from discreet.collection.files import BATCH, COLUMNS, SIMULATED, check_columns
from discreet.collection.protocol import Collection
from discreet.collection.report import ALREADY_SHUFFLED
from discreet.collection.tally import refusals
from discreet.errors import FormatError

__all__ = [
    "Row",
    "longest_value",
    "matrices_of",
    "packed",
    "packed_rows",
    "rows_in",
    "unpacked",
]

SIZES = (1, 2, 4, 8)
PIECE = 10_000
"""Rows of a batch in one transaction, so that others do not wait long."""
MOST_ROWS = 1_000_000
"""Reports of one Parquet batch."""


class Row(NamedTuple):
    """One report as it is stored."""

    id: bytes
    question: int
    value: bytes


def packed(value: Sequence[int]) -> bytes:
    r"""Pack the integers of one report as bytes.

    Parameters
    ----------
    value : sequence of int

    Examples
    --------
    >>> packed([1, -1]), packed([300])
    (b'\x01\xff', b',\x01')
    """
    most = max((~one if one < 0 else one for one in value), default=0)
    letter = "b" if most < 1 << 7 else "h" if most < 1 << 15 else "i" if most < 1 << 31 else "q"
    return struct.pack(f"<{len(value)}{letter}", *value)


def longest_value(collection: Collection) -> int:
    """How many bytes :func:`packed` makes of a report at most: sealed rows are all that long."""

    def size_of(furthest: int) -> int:
        return next(size for size in SIZES if size == SIZES[-1] or furthest < 1 << (8 * size - 1))

    return max(channel.width * size_of(channel.furthest) for channel in collection.questions)


def packed_rows(matrix: Integers) -> list[bytes]:
    """Pack the integers of many reports of one width, one row per report."""
    most = np.where(matrix < 0, ~matrix, matrix).max(axis=1, initial=0)
    found = np.empty(len(matrix), object)
    left = np.ones(len(matrix), bool)
    for size in SIZES:
        chosen = left & (most < 1 << (8 * size - 1))
        if chosen.any():
            raw = np.ascontiguousarray(matrix[chosen].astype(f"<i{size}"))
            found[chosen] = raw.view(f"V{size * matrix.shape[1]}").ravel().tolist()
        left &= ~chosen
    return found.tolist()


def unpacked(values: Sequence[bytes], width: int) -> Integers:
    """What :func:`packed` made into bytes, one row per report."""
    made = np.empty((len(values), width), np.int64)
    lengths = np.array([len(one) for one in values])
    for length in np.unique(lengths):
        size, rest = divmod(int(length), width)
        if rest or size not in SIZES:
            raise FormatError("a stored report does not have the width of its question")
        rows = np.flatnonzero(lengths == length)
        whole = np.frombuffer(b"".join(values[row] for row in rows.tolist()), f"<i{size}")
        made[rows] = whole.reshape(-1, width)
    return made


def matrices_of(
    collection: Collection, rows: Sequence[Any]
) -> Iterator[tuple[int, Integers, Integers]]:
    """Yield (question, indices of its rows, their integers) of stored rows."""
    asked = np.array([row[1] for row in rows], np.int64)
    for question in np.unique(asked).tolist():
        places = np.flatnonzero(asked == question)
        width = collection.questions[question].width
        yield question, places, unpacked([rows[place][2] for place in places.tolist()], width)


def faults(collection: Collection, reports: Sequence[Any]) -> list[str]:
    """Find why each report is refused, in the words of the tally; empty if it is valid."""
    found = refusals(collection, [one.question for one in reports], [one.value for one in reports])
    for place, report in enumerate(reports):
        if report.collection != collection.digest:
            found[place] = f"foreign {collection.kind}"
        elif report.batch is not None:
            found[place] = ALREADY_SHUFFLED
        elif report.simulated and not found[place]:
            found[place] = "simulated"
    return found


def rows_in(collection: Collection, content: bytes) -> Iterator[tuple[list[Row], Counter[str]]]:
    """Read the rows of a Parquet batch piece by piece, with the number refused per fault.

    Parameters
    ----------
    collection : Plan or Questionnaire
    content : bytes
        A file as :class:`~discreet.collection.files.ReportFile` writes it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    widest = max(channel.width for channel in collection.questions)
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        check_columns(_kinds(file.schema_arrow), "this batch")
        if SIMULATED in (file.metadata.metadata or {}):
            raise FormatError("these reports come from a seeded source; they are not private")
        rows = file.metadata.num_rows
        groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        marked = [BATCH] if BATCH in file.schema_arrow.names else []
        most = max(
            (one.column(c).num_values for one in groups for c in range(one.num_columns)), default=0
        )
        if rows > MOST_ROWS or most > (widest + 1) * max(rows, 1):
            raise FormatError(f"a batch has at most {MOST_ROWS:,} reports of {widest} integers")
        for batch in file.iter_batches(PIECE, columns=[*COLUMNS, *marked]):
            yield _rows(collection, batch)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        reason = str(error).splitlines()[0]
        raise FormatError(f"this is not a Parquet file of reports: {reason}") from None


def _kinds(shape: Any) -> Any:
    """Convert an Arrow schema to ibis, which has no binary type of fixed size."""
    import ibis
    import pyarrow as pa

    fixed = [
        one.with_type(pa.binary()) if pa.types.is_fixed_size_binary(one.type) else one
        for one in shape
    ]
    try:
        return ibis.schema(pa.schema(fixed))
    except (KeyError, NotImplementedError):  # what ibis raises for Arrow types it has no name for
        raise FormatError("this batch has columns of a type that reports do not have") from None


def _rows(collection: Collection, batch: Any) -> tuple[list[Row], Counter[str]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, channels = collection.kind, collection.questions
    refused: Counter[str] = Counter()

    def keep(batch: Any, right: Any, fault: str) -> Any:
        lost = batch.num_rows - (pc.sum(right).as_py() or 0)
        if not lost:
            return batch
        refused[fault] += lost
        return batch.filter(right)

    table = pa.Table.from_batches([batch])
    present = pc.equal(pc.binary_length(table["id"].cast(pa.binary())), 16)
    for name in ("collection", "question", "value"):
        present = pc.and_(present, pc.is_valid(table[name]))
    batch = keep(batch, pc.fill_null(present, False).combine_chunks(), "misshapen")
    digest = pc.equal(batch["collection"].cast(pa.string()), collection.digest)
    batch = keep(batch, digest, f"foreign {kind}")
    if BATCH in batch.schema.names:
        batch = keep(batch, pc.is_null(batch[BATCH]), ALREADY_SHUFFLED)
    known = pc.and_(
        pc.greater_equal(batch["question"], 0), pc.less(batch["question"], len(channels))
    )
    batch = keep(batch, known, "unknown question")
    widths = np.array([channel.width for channel in channels])
    lengths = pc.list_value_length(batch["value"]).to_numpy(zero_copy_only=False)
    fits = lengths == widths[batch["question"].to_numpy(zero_copy_only=False)]
    batch = keep(batch, pa.array(fits), "out of domain")
    # a filtered or sliced list keeps the numbers of what is gone
    whole = pa.Table.from_batches([batch]).combine_chunks().take(pa.array(range(batch.num_rows)))
    if not whole.num_rows:
        return [], refused
    batch = whole.combine_chunks().to_batches()[0]
    answers = Answers(channels, batch)
    for flags, fault in ((answers.torn, "misshapen"), (answers.wrong, "out of domain")):
        if flags.any():
            refused[fault] += int(flags.sum())
    ids = identities(batch["id"]).tolist()
    made: list[Row] = []
    for question, places, matrix in answers.parts(answers.valid):
        values = packed_rows(matrix)
        chosen = [ids[place] for place in places.tolist()]
        made += map(Row._make, zip(chosen, repeat(question), values, strict=False))
    made.sort()
    return made, refused
