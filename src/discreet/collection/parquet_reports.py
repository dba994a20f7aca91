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
from discreet.tables.engines import get_source_kind, handle_read_errors, open_parquet, open_table

__all__ = [
    "BATCH_COLUMN",
    "REPORT_COLUMNS",
    "SIMULATED_KEY",
    "ReportFile",
    "check_report_columns",
    "open_reports",
    "read_reports",
]

REPORT_COLUMNS = ("id", "collection", "question", "value")
"""Columns that every file of reports has (docs/formats.md)."""
BATCH_COLUMN = "batch"
"""The column of batch marks, 16 bytes; null, or no column at all, where nothing was shuffled."""
SIMULATED_KEY = b"discreet.simulated"
"""Key in a file's metadata that marks simulated reports."""
ROWS_PER_READ = 1 << 16
"""Rows of a Parquet file that are read at once: memory."""


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
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.collection = collection
        arrow_schema = pa.schema(
            {
                "id": pa.binary(16),
                "collection": pa.dictionary(pa.int32(), pa.string()),
                "question": pa.int32(),
                "value": pa.list_(pa.int64()),
                BATCH_COLUMN: pa.binary(16),
            }
        ).with_metadata({SIMULATED_KEY: b"yes"} if simulated else None)
        try:
            self._writer = pq.ParquetWriter(path, arrow_schema, compression="zstd")
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
            list_ends = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
            value_lists = pa.ListArray.from_arrays(
                list_ends, np.ascontiguousarray(values, np.int64).ravel()
            )
        else:
            value_lists = pa.array(values, pa.list_(pa.int64()))
        question_column = np.broadcast_to(np.asarray(question, np.int32), (len(values),)).copy()
        digest = pa.array([self.collection.digest])
        digest_column = pa.DictionaryArray.from_arrays(np.zeros(len(values), np.int32), digest)
        self._write_rows(
            ids, digest_column, question_column, value_lists, pa.nulls(len(values), pa.binary(16))
        )

    def add_reports(self, reports: Sequence[Report]) -> None:
        """Append reports, including those to other collections, which the tally refuses.

        Integers beyond a column's type are clipped to its extremes; every tally refuses them.
        """
        import pyarrow as pa

        max_int64, list_type = np.iinfo(np.int64).max, pa.list_(pa.int64())
        values = [
            [min(max(integer, -max_int64), max_int64) for integer in report.value]
            for report in reports
        ]
        questions = [min(max(report.question, -1), 2**31 - 1) for report in reports]
        digests = [report.collection for report in reports]
        digest_column = pa.array(digests, pa.string()).dictionary_encode()
        ids = np.frombuffer(bytes.fromhex("".join(report.id for report in reports)), np.uint8)
        mark_bytes = [
            None if report.batch is None else bytes.fromhex(report.batch) for report in reports
        ]
        answers = pa.array(values, list_type)
        self._write_rows(
            ids.reshape(-1, 16),
            digest_column,
            np.array(questions, np.int32),
            answers,
            pa.array(mark_bytes, pa.binary(16)),
        )
        if any(report.simulated for report in reports):
            self._writer.add_key_value_metadata({SIMULATED_KEY: b"yes"})

    def _write_rows(
        self, ids: Bytes, digest_column: Any, questions: Any, value_lists: Any, mark_column: Any
    ) -> None:
        import pyarrow as pa

        report_count, id_bytes = len(value_lists), np.ascontiguousarray(ids, dtype=np.uint8)
        if id_bytes.shape != (report_count, 16):
            raise SchemaError(
                f"ids have the shape {id_bytes.shape}; {report_count} reports need {report_count} "
                "x 16"
            )
        id_column = pa.Array.from_buffers(
            pa.binary(16), report_count, [None, pa.py_buffer(id_bytes.tobytes())]
        )
        columns = [id_column, digest_column, pa.array(questions), value_lists, mark_column]
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

    with _convert_arrow_errors(path):
        is_simulated = _is_simulated(os.fspath(path))
        parquet_file = pq.ParquetFile(path)
        mark_columns = [BATCH_COLUMN] if BATCH_COLUMN in parquet_file.schema_arrow.names else []
        for record_batch in parquet_file.iter_batches(
            ROWS_PER_READ, columns=[*REPORT_COLUMNS, *mark_columns]
        ):
            for row in record_batch.to_pylist():
                mark_bytes = row.pop(BATCH_COLUMN, None)
                if None in row.values() or None in row["value"]:
                    raise FormatError(f"{path}: a row has missing fields and is not a report")
                question, report_value = int(row["question"]), tuple(row["value"])
                batch_mark = None if mark_bytes is None else bytes(mark_bytes).hex()
                yield Report(
                    row["collection"],
                    row["id"].hex(),
                    question,
                    report_value,
                    is_simulated,
                    batch_mark,
                )


@contextmanager
def _convert_arrow_errors(path: str | Path) -> Iterator[None]:
    """Convert Arrow's errors to a FormatError of one sentence."""
    import pyarrow as pa

    try:
        with handle_read_errors(path):
            yield
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise FormatError(f"{path}: is not a Parquet file of reports: {reason}") from None


def open_reports(source: Any) -> tuple[Any, bool, str]:
    """Open reports for an engine: the ibis table, whether simulated, and the name for errors."""
    is_sequence = isinstance(source, Sequence) and not isinstance(source, str)
    paths = list(source) if is_sequence else [source]
    if not all(isinstance(path, (str, os.PathLike)) for path in paths):
        return _require_report_columns(open_table(source), "the table"), False, ""
    path_texts = [os.fspath(path) for path in paths]
    if not path_texts:
        raise FormatError("there are no files of reports; name at least one")
    source_name = (
        path_texts[0] if len(path_texts) == 1 else f"{path_texts[0]} and {len(path_texts) - 1} more"
    )
    if any(get_source_kind(path_text) != "parquet" for path_text in path_texts):
        if len(path_texts) > 1:
            raise FormatError(f"{source_name}: reports in several places must all be Parquet files")
        return _require_report_columns(open_table(path_texts[0]), source_name), False, ""
    files = [file_name for path_text in path_texts for file_name in _list_files(path_text)]
    is_simulated = any(_is_simulated(file_name) for file_name in files)
    engine = open_table(files[0]).get_backend()
    with handle_read_errors(source_name):
        marked_files, unmarked_files = list[str](), list[str]()
        for file_name in files:
            table = _require_report_columns(open_parquet(engine, glob.escape(file_name)), file_name)
            (marked_files if BATCH_COLUMN in table.columns else unmarked_files).append(
                glob.escape(file_name)
            )
        if not marked_files or not unmarked_files:
            return open_parquet(engine, marked_files or unmarked_files), is_simulated, source_name
        shuffled_table = open_parquet(engine, marked_files)
        unshuffled_table = open_parquet(engine, unmarked_files)
        return (
            _select_report_columns(shuffled_table).union(_select_report_columns(unshuffled_table)),
            is_simulated,
            source_name,
        )


def _select_report_columns(table: Any) -> Any:
    """Select the columns of reports with common types; null batch marks if the table has none."""
    import ibis

    mark_column = table[BATCH_COLUMN] if BATCH_COLUMN in table.columns else ibis.null()
    return table.select(
        id=table.id.cast("binary"),
        collection=table.collection.cast("string"),
        question=table.question.cast("int64"),
        value=table.value.cast("array<int64>"),
        batch=mark_column.cast("binary"),
    )


def _list_files(path: str) -> list[str]:
    return [path] if os.path.isfile(path) else sorted(glob.glob(path, recursive=True))


def _is_simulated(file_name: str) -> bool:
    import pyarrow.parquet as pq

    with _convert_arrow_errors(file_name):
        return SIMULATED_KEY in (pq.read_metadata(file_name).metadata or {})


def _require_report_columns(table: Any, source_name: str) -> Any:
    check_report_columns(table.schema(), source_name)
    return table


def check_report_columns(column_types: Any, source_name: str) -> None:
    """Require that a table, given by its ibis schema, has the columns of reports."""
    missing_columns = [column for column in REPORT_COLUMNS if column not in column_types]
    if missing_columns:
        raise FormatError(
            f"{source_name}: reports have the columns {', '.join(REPORT_COLUMNS)}, not these"
        )
    has_right_types = (
        column_types["id"].is_binary()
        and column_types["collection"].is_string()
        and _fits_int64(column_types["question"])
        and column_types["value"].is_array()
        and _fits_int64(column_types["value"].value_type)
        and (BATCH_COLUMN not in column_types or column_types[BATCH_COLUMN].is_binary())
    )
    if not has_right_types:
        raise FormatError(
            f"{source_name}: the columns of reports are id (16 bytes), collection (text), question "
            "(int32), value (list of int64) and, of shuffled reports, batch (16 bytes); these have "
            "other types"
        )


def _fits_int64(column_type: Any) -> bool:
    """Whether all values of an integer type fit into int64; those of uint64 may not."""
    return bool(column_type.is_integer() and not column_type.is_uint64())
