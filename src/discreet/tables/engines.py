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

from discreet.encoding import columns_of
from discreet.errors import FormatError, SchemaError
from discreet.tables.databases import open_database, refuse_unclear_types
from discreet.tables.frames import arrow_table
from discreet.tables.spark import java_home, spark_session, spark_table

__all__ = [
    "SourceKind",
    "arrow_batches",
    "fetched",
    "java_home",
    "kind_of",
    "open_rows",
    "open_table",
    "ordered_batches",
    "parquet_table",
    "reading",
    "spark_session",
]

SourceKind = Literal["arrays", "frame", "ibis", "spark", "csv", "parquet", "url"]

MEMORY_LIMIT = "300MB"
"""What DuckDB may hold before it spills to a private temporary folder."""

ROWS_HELD = 65_536
"""Rows of a file that are held in memory at once where they are read in order."""

_OPENED: weakref.WeakSet[Any] = weakref.WeakSet()

CSV_SUFFIXES = (".csv", ".tsv", ".txt", ".data")
PARQUET_SUFFIXES = (".parquet", ".pq")
DATABASE_SUFFIXES = {
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}
UTF8 = "save it as UTF-8 (spreadsheets call it 'CSV UTF-8')"


def kind_of(source: Any) -> SourceKind:
    """What a source is; a file is looked up, not opened."""
    if isinstance(source, str) and ("://" in source or source.startswith("spark:")):
        return "url"
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if not path:
            raise FormatError("the name of the table is empty; write a file, such as people.csv")
        first, bare = files_of(path)[0], path.lower().removesuffix(".gz")
        if bare.endswith(PARQUET_SUFFIXES):
            return "parquet"
        if bare.endswith(CSV_SUFFIXES):
            return "csv"
        with reading(first), open(first, "rb") as file:
            if file.read(4) == b"PAR1":
                return "parquet"
        raise FormatError(f"{path}: {_other_file(path)}")
    library = type(source).__module__.split(".")[0]
    if library == "pyspark":
        return "spark"
    return "ibis" if library == "ibis" else "arrays" if _in_memory(source, library) else "frame"


def _other_file(path: str) -> str:
    """The way out for a file that is neither CSV nor Parquet."""
    suffix = os.path.splitext(path)[1].lower()
    if engine := DATABASE_SUFFIXES.get(suffix):
        return f"is a database; write which table of it: {engine}://{path}#table"
    if suffix in (".xlsx", ".xls", ".ods"):
        return "is a spreadsheet; save it as CSV (UTF-8) and give that"
    return "its name must end in .csv, .tsv, .csv.gz or .parquet; rename or convert it"


def _in_memory(source: Any, library: str) -> bool:
    if library in ("pandas", "polars", "pyarrow"):
        return False
    if library == "numpy" or isinstance(source, (list, tuple, Mapping)):
        return True
    raise SchemaError(
        f"rows cannot be read from a {type(source).__name__}; give an array, a data frame, an "
        "Arrow or ibis table, or the path of a CSV or Parquet file"
    )


def files_of(path: str) -> list[str]:
    """The files of a path or glob, in order."""
    if os.path.isdir(path):
        raise FormatError(f"{path}: is a folder; write which files you mean: {path}/*.parquet")
    if os.path.isfile(path):
        return [path]
    found = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
    if not found:
        some = "no file matches this pattern" if glob.has_magic(path) else "there is no such file"
        raise FormatError(f"{path}: {some}")
    return found


@contextmanager
def reading(source: Any) -> Iterator[None]:
    """One sentence instead of an engine's traceback where a file cannot be read.

    Databases have words of their own.
    """
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        if not isinstance(source, (str, os.PathLike)) or kind_of(source) == "url":
            raise
        raise FormatError(f"{source}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Why a file cannot be read; DuckDB would quote the row, which is somebody's."""
    said = str(error) or type(error).__name__
    if isinstance(error, UnicodeDecodeError):
        return f"is not text in UTF-8; {UTF8}"
    if (place := re.search(r"CSV Error on Line: (\d+)", said)) is None:
        return f"cannot be read: {said.splitlines()[0].split('LINE 1:')[0].strip()}"
    line, reason = f"line {place.group(1)}", "does not follow the rules of CSV; look at it"
    if columns := re.findall(r"^Expected Number of Columns: (\d+) Found: (\d+)$", said, re.M):
        named, found = columns[-1]
        few = "add what is missing" if int(found) < int(named) else "put such values in quotes"
        reason = f"has {found} values, but the first line names {named} columns; {few}"
    elif re.search(r"^Value with unterminated quote found", said, re.M):
        reason = "opens a quotation mark that is not closed; close it, or write it twice"
    elif re.search(r"^Invalid unicode", said, re.M):
        reason = f"is not text in UTF-8; {UTF8}"
    elif re.search(r"^Maximum line size", said, re.M):
        reason = "is longer than 2 MB; is it a CSV file, with all quotation marks closed?"
    return f"{line} {reason}"


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
    kind = kind_of(source)
    if kind == "ibis":
        return source
    if kind == "arrays":
        raise SchemaError("arrays are counted in memory; only tables with names can be opened")
    if kind == "url":
        return _opened_url(source, table)
    if kind == "spark":
        return spark_table(source)
    engine = _duckdb()
    if kind == "frame":
        engine.con.register("rows", arrow_table(source))
        return engine.table("rows")
    path = os.fspath(source)
    files = files_of(path)
    names = [glob.escape(file) for file in files]
    with reading(source):
        if kind == "parquet":
            return parquet_table(engine, names)
        return engine.read_csv(names, **_csv_options(files, typed))


def parquet_table(engine: Any, names: str | Sequence[str]) -> Any:
    """Parquet files as a table of DuckDB, with the columns that are in the files alone.

    Parameters
    ----------
    engine : ibis backend
    names : str or sequence of str
        Patterns of files.
    """
    return engine.read_parquet(names, hive_partitioning=False)


def fetched(query: Any) -> Any:
    """The result of a query as an Arrow table."""
    engine = query.get_backend()
    if engine in _OPENED:  # ibis would import pandas, a third of a second, to give the same
        return engine.con.sql(engine.compile(query)).to_arrow_table()
    return query.to_pyarrow()


def open_rows(
    source: Any, names: Iterable[str], *, table: str | None = None, others: bool = False
) -> Any:
    """Open rows as :func:`open_table` does, and hold their columns against the names wanted.

    A CSV file is parsed once and for all queries to come.

    Parameters
    ----------
    source, table
        As for :func:`open_table`.
    names : iterable of str
        The columns wanted.
    others : bool, default False
        Keep all other columns of a CSV file, too.
    """
    wanted = list(dict.fromkeys(names))
    rows = open_table(source, table=table)
    _require_columns(rows, wanted, source)
    if rows.get_backend() not in _OPENED:
        refuse_unclear_types(rows, wanted)
    kind = kind_of(source)
    if kind == "parquet":
        _refuse_differing_parts(rows.get_backend(), source, wanted)
    if kind != "csv":
        return rows
    engine = rows.get_backend()
    kept = engine.compile(rows if others else rows.select(*wanted))
    with reading(source):
        # not through ibis, whose release 12 writes a DROP TABLE that DuckDB 2 refuses
        engine.con.execute(f"CREATE OR REPLACE TABLE parsed_rows AS {kept}")
    return engine.table("parsed_rows")


def _require_columns(table: Any, names: Sequence[str], source: Any) -> None:
    """Refuse a table that lacks a column, also where folders are named after it."""
    try:
        columns_of(dict.fromkeys(table.columns), names)
    except SchemaError as error:
        files = files_of(os.fspath(source)) if kind_of(source) in ("csv", "parquet") else []
        folders = {folder for file in files for folder in re.split(r"[/\\]", file)[:-1]}
        lacking = [name for name in names if name not in table.columns]
        for name in lacking:
            if any(folder.startswith(f"{name}=") for folder in folders):
                raise SchemaError(
                    f"{error}; names of folders ({name}=…) are not columns, write {name} into the "
                    "files"
                ) from None
        raise


def _refuse_differing_parts(engine: Any, source: Any, names: Sequence[str]) -> None:
    """Refuse Parquet files whose columns differ in type: the first would decide for all others.

    Programs that write them often take the type from the rows, so that one row would decide.
    """
    first: dict[str, str] = {}
    files = files_of(os.fspath(source))
    for file in files if len(files) > 1 else ():
        query = "SELECT * FROM read_parquet(?, hive_partitioning = false) LIMIT 0"
        with reading(source):
            described = engine.con.execute(query, [glob.escape(file)]).description
        kinds = {column[0]: str(column[1]) for column in described}
        for name in names:
            kind = kinds.get(name, "none")
            if kind != first.setdefault(name, kind):
                raise SchemaError(
                    f"{file}: its column {name} has the type {kind}, and that of {files[0]} the "
                    f"type {first[name]}; write all parts with the same types"
                )


def arrow_batches(table: Any, rows: int, source: Any = None) -> Iterator[Any]:
    """The rows of an ibis table as Arrow batches of at most ``max_rows`` rows.

    What cannot be read is said of the file ``source``, if that is one.
    """
    engine = table.get_backend()  # held to the end: it closes when nobody holds it
    with reading(source):
        if engine.name != "duckdb":
            reader = engine.to_pyarrow_batches(table, chunk_size=rows)
        else:  # not through ibis, whose release 12 calls what DuckDB 2 has renamed
            relation = engine.con.sql(engine.compile(table))
            new = hasattr(relation, "to_arrow_reader")
            reader = (relation.to_arrow_reader if new else relation.fetch_arrow_reader)(rows)
    while True:
        with reading(source):
            batch = next(reader, None)
        if batch is None:
            return
        yield batch


def ordered_batches(source: str, names: Sequence[str] | None = None) -> Iterator[Any]:
    """The columns of a CSV or Parquet file as Arrow batches, in the order of the file.

    What cannot be read is refused at once, the first batch included.

    Parameters
    ----------
    source : str
        Path or glob.
    names : sequence of str, optional
        The columns wanted; others are not read. All of them, if not given.
    """
    if kind_of(source) not in ("csv", "parquet"):
        raise SchemaError(f"{source}: only files have an order of rows; give a CSV or Parquet file")
    table = open_table(source)
    names = table.columns if names is None else names
    try:
        _require_columns(table, names, source)
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from None
    # counting does not care which row comes first, but here the first row is row 0
    table.get_backend().raw_sql("SET preserve_insertion_order = true")
    if kind_of(source) == "parquet":
        _refuse_differing_parts(table.get_backend(), source, names)
    pieces = arrow_batches(table.select(*names), ROWS_HELD, source)
    return chain([first] if (first := next(pieces, None)) is not None else [], pieces)


def _duckdb() -> Any:
    import ibis

    spill = tempfile.mkdtemp(prefix="discreet-")  # readable by this user alone
    engine = ibis.duckdb.connect(
        memory_limit=MEMORY_LIMIT, preserve_insertion_order=False, temp_directory=spill
    )
    _OPENED.add(engine)
    weakref.finalize(engine, shutil.rmtree, spill, ignore_errors=True)
    return engine


def _csv_options(files: list[str], typed: bool) -> dict[str, Any]:
    """All options are explicit: DuckDB's sniffer would drop a row that starts with #."""
    header, delimiter = _header(files[0])
    for file in files[1:]:
        if _header(file) != (header, delimiter):
            raise FormatError(f"{file}: its columns are not those of {files[0]}")
    common = {"delim": delimiter, "quote": '"', "escape": '"', "header": True, "comment": ""}
    common["hive_partitioning"] = False
    if typed:
        return {**common, "sample_size": -1}
    return {**common, "auto_detect": False, "columns": dict.fromkeys(header, "VARCHAR")}


def _header(file: str) -> tuple[list[str], str]:
    opened = gzip.open if file.lower().endswith(".gz") else open
    with opened(file, "rb") as lines:
        raw = lines.readline(1 << 20)
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FormatError(f"{file}: is text in UTF-16; {UTF8}")
    first = raw.decode("utf-8-sig")
    if not first.strip():
        raise FormatError(f"{file}: is empty; a CSV file starts with the names of its columns")
    delimiter = max((",", ";", "\t", "|"), key=first.count)
    names = next(csv.reader([first], delimiter=delimiter))
    folded = [name.lower() for name in names]
    for name in names:
        if not name.strip() or folded.count(name.lower()) > 1:
            raise FormatError(
                f"{file}: the first line must name every column once, {name!r} does not"
            )
    return names, delimiter


def _opened_url(url: str, table: str | None) -> Any:
    if url.startswith("spark:"):
        return _spark_file(url.removeprefix("spark:"))
    return open_database(url, table)


def _spark_file(path: str) -> Any:
    matches = glob.glob(path)
    if not matches and "://" not in path:
        raise FormatError(f"{path}: there is no such file")
    # with the names of folders it would leave out files in folders that have none
    reader = spark_session().read.option("recursiveFileLookup", "true")
    if not path.lower().removesuffix(".gz").endswith(CSV_SUFFIXES):
        return spark_table(reader.parquet(path))
    delimiter = _header(matches[0])[1] if matches else ","
    return spark_table(
        reader.csv(path, header=True, sep=delimiter, quote='"', escape='"', multiLine=True)
    )
