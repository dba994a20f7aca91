"""Where rows come from: files, data frames and databases, all opened as an ibis table.

Files and data frames are read by an embedded DuckDB with bounded memory. CSV is read as text,
so that "05" stays "05" and no sniffing decides what a row is; the schema says what is a number.
Names of folders such as ``region=north`` are not columns: an engine would guess one type for all of
them, or read rows only where all folders have such names.
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Literal

from discreet.errors import FormatError, SchemaError
from discreet.privacy.ledger import remove_credentials
from discreet.schema.cells import get_columns
from discreet.schema.drafting import read_header
from discreet.tables.databases import open_database, refuse_unclear_types
from discreet.tables.frames import convert_to_arrow
from discreet.tables.spark import find_java_home, get_spark_session, open_spark_table

__all__ = [
    "SourceKind",
    "fetch_arrow",
    "find_java_home",
    "get_source_kind",
    "get_spark_session",
    "handle_read_errors",
    "hold_rows",
    "iter_arrow_batches",
    "iter_ordered_batches",
    "open_parquet",
    "open_rows",
    "open_table",
    "read_column_types",
]

SourceKind = Literal["arrays", "frame", "ibis", "spark", "csv", "parquet", "url"]

MEMORY_LIMIT = "300MB"
"""What DuckDB may hold before it spills to a private temporary folder."""

MAX_HELD_ROWS = 65_536
"""Rows of a file that are held in memory at once where they are read in order."""

_OWN_ENGINES: weakref.WeakSet[Any] = weakref.WeakSet()

CSV_SUFFIXES = (".csv", ".tsv", ".txt", ".data")
PARQUET_SUFFIXES = (".parquet", ".pq")
DATABASE_SUFFIXES = {
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}
UTF8_ADVICE = "save it as UTF-8 (spreadsheets call it 'CSV UTF-8')"


def get_source_kind(source: Any) -> SourceKind:
    """What a source is; a file is looked up, not opened."""
    if isinstance(source, str) and ("://" in source or source.startswith("spark:")):
        return "url"
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if not path:
            raise FormatError("the name of the table is empty; write a file, such as people.csv")
        first_file, bare_name = list_files(path)[0], path.lower().removesuffix(".gz")
        if bare_name.endswith(PARQUET_SUFFIXES):
            return "parquet"
        if bare_name.endswith(CSV_SUFFIXES):
            return "csv"
        with handle_read_errors(first_file), open(first_file, "rb") as file:
            if file.read(4) == b"PAR1":
                return "parquet"
        raise FormatError(f"{path}: {_explain_other_file(path)}")
    library = type(source).__module__.split(".")[0]
    if library == "pyspark":
        return "spark"
    return "ibis" if library == "ibis" else "arrays" if _is_in_memory(source, library) else "frame"


def _explain_other_file(path: str) -> str:
    """The way out for a file that is neither CSV nor Parquet."""
    suffix = os.path.splitext(path)[1].lower()
    if engine := DATABASE_SUFFIXES.get(suffix):
        return f"is a database; write which table of it: {engine}://{path}#table"
    if suffix in (".xlsx", ".xls", ".ods"):
        return "is a spreadsheet; save it as CSV (UTF-8) and give that"
    return "its name must end in .csv, .tsv, .csv.gz or .parquet; rename or convert it"


def _is_in_memory(source: Any, library: str) -> bool:
    if library in ("pandas", "polars", "pyarrow"):
        return False
    if library == "numpy" or isinstance(source, (list, tuple, Mapping)):
        return True
    raise SchemaError(
        f"rows cannot be read from a value of type {type(source).__name__}; give an array, a data "
        "frame, an Arrow or ibis table, or the path of a CSV or Parquet file"
    )


def list_files(path: str) -> list[str]:
    """The files of a path or glob, in order."""
    if os.path.isdir(path):
        raise FormatError(f"{path}: is a folder; write which files you mean: {path}/*.parquet")
    if os.path.isfile(path):
        return [path]
    matching_files = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
    if not matching_files:
        reason = "no file matches this pattern" if glob.has_magic(path) else "there is no such file"
        raise FormatError(f"{path}: {reason}")
    return matching_files


@contextmanager
def handle_read_errors(source: Any) -> Iterator[None]:
    """One sentence instead of an engine's traceback where a file cannot be read.

    Databases have words of their own.
    """
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        if not isinstance(source, (str, os.PathLike)) or get_source_kind(source) == "url":
            raise
        raise FormatError(f"{source}: {_explain_read_error(error)}") from None


def _explain_read_error(error: Exception) -> str:
    """Why a file cannot be read; DuckDB would quote the row, which is somebody's."""
    error_text = str(error) or type(error).__name__
    if isinstance(error, UnicodeDecodeError):
        return f"is not text in UTF-8; {UTF8_ADVICE}"
    if (line_match := re.search(r"CSV Error on Line: (\d+)", error_text)) is None:
        return f"cannot be read: {error_text.splitlines()[0].split('LINE 1:')[0].strip()}"
    line_name = f"line {line_match.group(1)}"
    reason = "does not follow the rules of CSV; look at it"
    if column_counts := re.findall(
        r"^Expected Number of Columns: (\d+) Found: (\d+)$", error_text, re.M
    ):
        named_count, found_count = column_counts[-1]
        advice = (
            "add what is missing"
            if int(found_count) < int(named_count)
            else "put such values in quotes"
        )
        value_noun = "value" if int(found_count) == 1 else "values"
        column_noun = "column" if int(named_count) == 1 else "columns"
        reason = (
            f"has {found_count} {value_noun}, but the first line names {named_count} "
            f"{column_noun}; {advice}"
        )
    elif re.search(r"^Value with unterminated quote found", error_text, re.M):
        reason = "opens a quotation mark that is not closed; close it, or write it twice"
    elif re.search(r"^Invalid unicode", error_text, re.M):
        reason = f"is not text in UTF-8; {UTF8_ADVICE}"
    elif re.search(r"^Maximum line size", error_text, re.M):
        reason = "is longer than 2 MB; is it a CSV file, with all quotation marks closed?"
    return f"{line_name} {reason}"


def _refuse_file_list(source: Any) -> None:
    """Refuse several files in a list: one pattern opens them all."""
    if isinstance(source, (list, tuple)) and all(
        isinstance(entry, (str, os.PathLike)) for entry in source
    ):
        folder = os.path.dirname(os.fspath(source[0])) if source else ""
        raise SchemaError(
            f"a list of {len(source)} files is given; write one pattern that matches them, such as "
            f"{os.path.join(folder, 'part-*.csv')!r}, or put them in one file"
        )


def open_table(source: Any, *, table: str | None = None, typed: bool = False) -> Any:
    """Open rows as an ibis table.

    Parameters
    ----------
    source : path or glob, data frame, Arrow table, Spark data frame, ibis table or URL
        CSV (also gzipped) and Parquet files; ``"postgres://user@host/database"``,
        ``"duckdb://file"`` and whatever else ibis connects to; ``"spark:path"`` for a file that
        Spark is to read.
    table : str, optional
        The table's name, for a database URL; ``"…#name"`` at the end of the URL says the same.
    typed : bool, default False
        Let DuckDB guess the types of CSV columns instead of leaving them as text.
    """
    source_kind = get_source_kind(source)
    if source_kind == "ibis":
        return source
    if source_kind == "arrays":
        _refuse_file_list(source)
        raise SchemaError("arrays are counted in memory; only tables with names can be opened")
    if source_kind == "url":
        if source.startswith("spark:"):
            return _open_spark_file(source.removeprefix("spark:"))
        return open_database(source, table)
    if source_kind == "spark":
        return open_spark_table(source)
    import ibis

    spill_folder = tempfile.mkdtemp(prefix="discreet-")  # readable by this user alone
    engine = ibis.duckdb.connect(
        memory_limit=MEMORY_LIMIT, preserve_insertion_order=False, temp_directory=spill_folder
    )
    _OWN_ENGINES.add(engine)
    weakref.finalize(engine, shutil.rmtree, spill_folder, ignore_errors=True)
    if source_kind == "frame":
        engine.con.register("rows", convert_to_arrow(source))
        return engine.table("rows")
    path = os.fspath(source)
    files = list_files(path)
    file_patterns = [glob.escape(file) for file in files]
    with handle_read_errors(source):
        if source_kind == "parquet":
            return open_parquet(engine, file_patterns)
        return engine.read_csv(file_patterns, **_make_csv_options(files, typed))


def open_parquet(engine: Any, names: str | Sequence[str]) -> Any:
    """Parquet files as a table of DuckDB, with the columns that are in the files alone.

    Parameters
    ----------
    engine : ibis backend
    names : str or sequence of str
        Patterns of files.
    """
    return engine.read_parquet(names, hive_partitioning=False)


def fetch_arrow(query: Any) -> Any:
    """The result of a query as an Arrow table."""
    engine = query.get_backend()
    if engine in _OWN_ENGINES:  # ibis would import pandas, a third of a second, to give the same
        return engine.con.sql(engine.compile(query)).to_arrow_table()
    return query.to_pyarrow()


def open_rows(
    source: Any, names: Iterable[str], *, table: str | None = None, keep_others: bool = False
) -> Any:
    """Open rows as :func:`open_table` does, and hold their columns against the names wanted.

    A CSV file is parsed once and for all queries to come.

    Parameters
    ----------
    source, table
        As for :func:`open_table`.
    names : iterable of str
        The columns wanted.
    keep_others : bool, default False
        Keep all other columns of a CSV file, too.
    """
    wanted_columns = list(dict.fromkeys(names))
    rows = open_table(source, table=table)
    _require_columns(rows, wanted_columns, source)
    if rows.get_backend() not in _OWN_ENGINES:
        refuse_unclear_types(rows, wanted_columns)
    source_kind = get_source_kind(source)
    if source_kind == "parquet":
        _refuse_differing_parts(rows.get_backend(), source, wanted_columns)
    if source_kind != "csv":
        return rows
    with handle_read_errors(source):
        return hold_rows(rows if keep_others else rows.select(*wanted_columns), "parsed_rows")


def hold_rows(query: Any, name: str = "used_rows") -> Any:
    """The result of a query, computed once where the engine is our own; else the query itself.

    Parameters
    ----------
    query : ibis.Table
    name : str
        Of the table in that engine.
    """
    engine = query.get_backend()
    if engine not in _OWN_ENGINES:
        return query
    # not through ibis, whose release 12 writes a DROP TABLE that DuckDB 2 refuses
    engine.con.execute(f"CREATE OR REPLACE TABLE {name} AS {engine.compile(query)}")
    return engine.table(name)


def _require_columns(table: Any, names: Sequence[str], source: Any) -> None:
    """Refuse a table that lacks a column, also where folders are named after it."""
    missing_names = [name for name in names if name not in table.columns]
    if not missing_names:
        return
    try:
        get_columns(dict.fromkeys(table.columns), names)
    except SchemaError as error:
        source_files = (
            list_files(os.fspath(source)) if get_source_kind(source) in ("csv", "parquet") else []
        )
        folder_names = {folder for file in source_files for folder in re.split(r"[/\\]", file)[:-1]}
        for name in missing_names:
            if any(folder.startswith(f"{name}=") for folder in folder_names):
                raise SchemaError(
                    f"{error}; names of folders ({name}=…) are not columns, write {name} into the "
                    "files"
                ) from None
        raise


def _refuse_differing_parts(engine: Any, source: Any, names: Sequence[str]) -> None:
    """Refuse Parquet files whose columns differ in type: the first would decide for all others.

    Programs that write them often take the type from the rows, so that one row would decide.
    """
    first_types: dict[str, str] = {}
    source_files = list_files(os.fspath(source))
    for file in source_files if len(source_files) > 1 else ():
        query = "SELECT * FROM read_parquet(?, hive_partitioning = false) LIMIT 0"
        with handle_read_errors(source):
            column_descriptions = engine.con.execute(query, [glob.escape(file)]).description
        column_types = {column[0]: str(column[1]) for column in column_descriptions}
        for name in names:
            column_type = column_types.get(name, "none")
            if column_type != first_types.setdefault(name, column_type):
                raise SchemaError(
                    f"{file}: its column {name} has the type {column_type}, and that of "
                    f"{source_files[0]} the type {first_types[name]}; write all parts with the "
                    "same types"
                )


def iter_arrow_batches(table: Any, max_rows: int, source: Any = None) -> Iterator[Any]:
    """The rows of an ibis table as Arrow batches of at most ``max_rows`` rows.

    What cannot be read is said of the file ``source``, if that is one.
    """
    engine = table.get_backend()  # held to the end: it closes when nobody holds it
    with handle_read_errors(source):
        if engine.name != "duckdb":
            batch_reader = engine.to_pyarrow_batches(table, chunk_size=max_rows)
        else:  # not through ibis, whose release 12 calls what DuckDB 2 has renamed
            relation = engine.con.sql(engine.compile(table))
            has_arrow_reader = hasattr(relation, "to_arrow_reader")
            batch_reader = (
                relation.to_arrow_reader if has_arrow_reader else relation.fetch_arrow_reader
            )(max_rows)
    while True:
        with handle_read_errors(source):
            batch = next(batch_reader, None)
        if batch is None:
            return
        yield batch


def iter_ordered_batches(source: str, names: Sequence[str] | None = None) -> Iterator[Any]:
    """The columns of a CSV or Parquet file as Arrow batches, in the order of the file.

    What cannot be read is refused at once, the first batch included.

    Parameters
    ----------
    source : str
        Path or glob.
    names : sequence of str, optional
        The columns wanted; others are not read. All of them, if not given.
    """
    if get_source_kind(source) not in ("csv", "parquet"):
        raise SchemaError(f"{source}: only files have an order of rows; give a CSV or Parquet file")
    table = open_table(source)
    names = table.columns if names is None else names
    try:
        _require_columns(table, names, source)
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from None
    # counting does not care which row comes first, but here the first row is row 0
    table.get_backend().raw_sql("SET preserve_insertion_order = true")
    if get_source_kind(source) == "parquet":
        _refuse_differing_parts(table.get_backend(), source, names)
    batches = iter_arrow_batches(table.select(*names), MAX_HELD_ROWS, source)
    return chain([first_batch] if (first_batch := next(batches, None)) is not None else [], batches)


def _make_csv_options(files: Sequence[str], typed: bool) -> dict[str, Any]:
    """All options are explicit: DuckDB's sniffer would drop a row that starts with #."""
    headers: list[tuple[list[str], str]] = []
    for file in files:
        open_file = gzip.open if file.lower().endswith(".gz") else open
        with open_file(file, "rb") as line_reader:
            raw_line = line_reader.readline(1 << 20)
        if raw_line.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise FormatError(f"{file}: is text in UTF-16; {UTF8_ADVICE}")
        first_line = raw_line.decode("utf-8-sig")
        if not first_line.strip():
            raise FormatError(f"{file}: is empty; a CSV file starts with the names of its columns")
        delimiter = max((",", ";", "\t", "|"), key=first_line.count)
        column_names = next(csv.reader([first_line], delimiter=delimiter))
        lower_names = [name.lower() for name in column_names]
        for name in column_names:
            if not name.strip() or lower_names.count(name.lower()) > 1:
                raise FormatError(
                    f"{file}: the first line must name every column once, {name!r} does not"
                )
        headers.append((column_names, delimiter))
        if headers[-1] != headers[0]:
            raise FormatError(f"{file}: its columns are not those of {files[0]}")
    column_names, delimiter = headers[0]
    csv_options = {"delim": delimiter, "quote": '"', "escape": '"', "header": True, "comment": ""}
    csv_options["hive_partitioning"] = False
    if typed:
        return {**csv_options, "sample_size": -1}
    return {**csv_options, "auto_detect": False, "columns": dict.fromkeys(column_names, "VARCHAR")}


def _open_spark_file(path: str) -> Any:
    matching_files = glob.glob(path)
    if not matching_files and "://" not in path:
        raise FormatError(f"{path}: there is no such file")
    # with the names of folders it would leave out files in folders that have none
    reader = get_spark_session().read.option("recursiveFileLookup", "true")
    if not path.lower().removesuffix(".gz").endswith(CSV_SUFFIXES):
        return open_spark_table(reader.parquet(path))
    delimiter = ","
    if matching_files:
        delimiter = _make_csv_options(matching_files[:1], typed=False)["delim"]
    return open_spark_table(
        reader.csv(path, header=True, sep=delimiter, quote='"', escape='"', multiLine=True)
    )


def read_column_types(source: str, table: str | None = None) -> tuple[str, list[tuple[str, Any]]]:
    """Read how a source is called where people see it, and its columns; no row is read.

    Parameters
    ----------
    source : path, glob or URL
    table : str, optional
        Name of the table, for a database URL.

    Returns
    -------
    (str, list of (column name, type))
        The type of a column of a CSV file is None: it states none.
    """
    source_name = os.path.basename(source) if "://" not in source else remove_credentials(source)
    if get_source_kind(source) == "csv":
        return source_name, [(name, None) for name in read_header(list_files(source)[0])]
    return source_name, list(open_table(source, table=table).schema().items())
