"""Write, open and read Parquet files of reports."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Bytes
from discreet.collection.protocol import Collection
from discreet.collection.report import Report
from discreet.errors import FormatError, SchemaError
from discreet.tables.engines import kind_of, open_table, parquet_table, reading

__all__ = [
    "BATCH",
    "COLUMNS",
    "SIMULATED",
    "ReportFile",
    "check_columns",
    "open_reports",
    "read_reports",
]

COLUMNS = ("id", "collection", "question", "value")
BATCH = "batch"
"""The column of batch marks, 16 bytes; null, or no column at all, where nothing was shuffled."""
SIMULATED = b"discreet.simulated"
ROWS = 1 << 16


def _shape() -> Any:
    import pyarrow as pa

    return pa.schema(
        {
            "id": pa.binary(16),
            "collection": pa.dictionary(pa.int32(), pa.string()),
            "question": pa.int32(),
            "value": pa.list_(pa.int64()),
            BATCH: pa.binary(16),
        }
    )


class ReportFile:
    """A Parquet file that reports are appended to; a context manager.

    Parameters
    ----------
    path : path or file
        A file is one that is opened for writing bytes; it stays open.
    collection : Plan or Questionnaire
    simulated : bool, default False
        Whether a seeded source made the reports; recorded in the file and in the tally.
    """

    def __init__(
        self, path: str | Path | IO[bytes], collection: Collection, simulated: bool = False
    ) -> None:
        import pyarrow.parquet as pq

        self.collection = collection
        shape = _shape().with_metadata({SIMULATED: b"yes"} if simulated else None)
        try:
            self._writer = pq.ParquetWriter(path, shape, compression="zstd")
        except OSError as error:
            reason = error.strerror or str(error)
            raise FormatError(f"{path}: cannot be written: {reason}") from None

    def write(self, question: ArrayLike, ids: Bytes, values: Any) -> None:
        """Append reports.

        Parameters
        ----------
        question : int or array of int
            Which question each report answers; one number where all answer the same.
        ids : array of uint8, (reports, 16)
            128 random bits per report.
        values : array of int, (reports, width), or list of lists
            Outputs of the mechanism; lists where the questions differ in width.
        """
        import pyarrow as pa

        if isinstance(values, np.ndarray):
            ends = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
            lists = pa.ListArray.from_arrays(ends, np.ascontiguousarray(values, np.int64).ravel())
        else:
            lists = pa.array(values, pa.list_(pa.int64()))
        questions = np.broadcast_to(np.asarray(question, np.int32), (len(values),)).copy()
        digest = pa.array([self.collection.digest])
        named = pa.DictionaryArray.from_arrays(np.zeros(len(values), np.int32), digest)
        self._write(ids, named, questions, lists, pa.nulls(len(values), pa.binary(16)))

    def add(self, reports: Sequence[Report]) -> None:
        """Append reports, including those to other collections, which the tally refuses.

        Integers beyond a column's type are clipped to its extremes; every tally refuses them.
        """
        import pyarrow as pa

        most, lists = np.iinfo(np.int64).max, pa.list_(pa.int64())
        values = [[min(max(n, -most), most) for n in report.value] for report in reports]
        questions = [min(max(report.question, -1), 2**31 - 1) for report in reports]
        texts = [report.collection for report in reports]
        named = pa.array(texts, pa.string()).dictionary_encode()
        ids = np.frombuffer(bytes.fromhex("".join(report.id for report in reports)), np.uint8)
        marks = [None if one.batch is None else bytes.fromhex(one.batch) for one in reports]
        answers = pa.array(values, lists)
        self._write(
            ids.reshape(-1, 16),
            named,
            np.array(questions, np.int32),
            answers,
            pa.array(marks, pa.binary(16)),
        )
        if any(report.simulated for report in reports):
            self._writer.add_key_value_metadata({SIMULATED: b"yes"})

    def _write(self, ids: Bytes, named: Any, questions: Any, lists: Any, marks: Any) -> None:
        import pyarrow as pa

        count, raw = len(lists), np.ascontiguousarray(ids, dtype=np.uint8)
        if raw.shape != (count, 16):
            raise SchemaError(f"ids have the shape {raw.shape}; {count} reports need {count} x 16")
        fixed = pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(raw.tobytes())])
        columns = [fixed, named, pa.array(questions), lists, marks]
        self._writer.write_table(pa.table(columns, schema=self._writer.schema))

    def __enter__(self) -> ReportFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


def read_reports(path: str | Path) -> Iterator[Report]:
    """Read the reports of a Parquet file, one by one and in order.

    Raises
    ------
    FormatError
        Where a row is not a report at all.
    """
    import pyarrow.parquet as pq

    with _parquet(path):
        simulated = _is_simulated(os.fspath(path))
        file = pq.ParquetFile(path)
        marked = [BATCH] if BATCH in file.schema_arrow.names else []
        for piece in file.iter_batches(ROWS, columns=[*COLUMNS, *marked]):
            for row in piece.to_pylist():
                mark = row.pop(BATCH, None)
                if None in row.values() or None in row["value"]:
                    raise FormatError(f"{path}: a row has missing fields and is not a report")
                question, value = int(row["question"]), tuple(row["value"])
                batch = None if mark is None else bytes(mark).hex()
                yield Report(row["collection"], row["id"].hex(), question, value, simulated, batch)


@contextmanager
def _parquet(path: str | Path) -> Iterator[None]:
    """Convert Arrow's errors to a FormatError of one sentence."""
    import pyarrow as pa

    try:
        with reading(path):
            yield
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise FormatError(f"{path}: is not a Parquet file of reports: {reason}") from None


def open_reports(source: Any) -> tuple[Any, bool, str]:
    """Open reports for an engine: the ibis table, whether simulated, and the name for errors."""
    several = isinstance(source, Sequence) and not isinstance(source, str)
    paths = list(source) if several else [source]
    if not all(isinstance(path, (str, os.PathLike)) for path in paths):
        return _checked(open_table(source), "the table"), False, ""
    texts = [os.fspath(path) for path in paths]
    if not texts:
        raise FormatError("there are no files of reports; name at least one")
    name = texts[0] if len(texts) == 1 else f"{texts[0]} and {len(texts) - 1} more"
    if any(kind_of(text) != "parquet" for text in texts):
        if len(texts) > 1:
            raise FormatError(f"{name}: reports in several places must all be Parquet files")
        return _checked(open_table(texts[0]), name), False, ""
    files = [file for text in texts for file in _files(text)]
    simulated = any(_is_simulated(file) for file in files)
    engine = open_table(files[0]).get_backend()
    with reading(name):
        marked, unmarked = list[str](), list[str]()
        for file in files:
            table = _checked(parquet_table(engine, glob.escape(file)), file)
            (marked if BATCH in table.columns else unmarked).append(glob.escape(file))
        if not marked or not unmarked:
            return parquet_table(engine, marked or unmarked), simulated, name
        shuffled, others = parquet_table(engine, marked), parquet_table(engine, unmarked)
        return _same_columns(shuffled).union(_same_columns(others)), simulated, name


def _same_columns(table: Any) -> Any:
    """Select the columns of reports with common types; null batch marks if the table has none."""
    import ibis

    mark = table[BATCH] if BATCH in table.columns else ibis.null()
    return table.select(
        id=table.id.cast("binary"),
        collection=table.collection.cast("string"),
        question=table.question.cast("int64"),
        value=table.value.cast("array<int64>"),
        batch=mark.cast("binary"),
    )


def _files(path: str) -> list[str]:
    return [path] if os.path.isfile(path) else sorted(glob.glob(path, recursive=True))


def _is_simulated(file: str) -> bool:
    import pyarrow.parquet as pq

    with _parquet(file):
        return SIMULATED in (pq.read_metadata(file).metadata or {})


def _checked(table: Any, name: str) -> Any:
    check_columns(table.schema(), name)
    return table


def check_columns(kinds: Any, name: str) -> None:
    """Require that a table, given by its ibis schema, has the columns of reports."""
    lacking = [column for column in COLUMNS if column not in kinds]
    if lacking:
        raise FormatError(f"{name}: reports have the columns {', '.join(COLUMNS)}, not these")
    right = (
        kinds["id"].is_binary()
        and kinds["collection"].is_string()
        and _fits(kinds["question"])
        and kinds["value"].is_array()
        and _fits(kinds["value"].value_type)
        and (BATCH not in kinds or kinds[BATCH].is_binary())
    )
    if not right:
        raise FormatError(
            f"{name}: the columns of reports are id (16 bytes), collection (text), question "
            "(int32), value (list of int64) and, of shuffled reports, batch (16 bytes); these have "
            "other types"
        )


def _fits(kind: Any) -> bool:
    """Whether all values of an integer type fit into int64; those of uint64 may not."""
    return bool(kind.is_integer() and not kind.is_uint64())
