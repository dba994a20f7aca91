"""Databases by their address, opened as an ibis table.

Files of DuckDB and SQLite are opened for reading only: an address with a mistake in it creates no
database, and others may read the file meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from discreet.errors import DiscreetError, FormatError, MissingDependencyError, SchemaError

__all__ = ["open_database", "refuse_unclear_types"]

FILE_SCHEMES = (
    "s3",
    "gs",
    "gcs",
    "az",
    "abfs",
    "abfss",
    "hdfs",
    "http",
    "https",
    "ftp",
    "sftp",
    "file",
)
"""Addresses of files rather than of databases."""
DRIVER_EXTRAS = {"postgres": ("psycopg", "postgres"), "postgresql": ("psycopg", "postgres")}
CLOUD_PREFIXES = ("md:", "motherduck:")
"""What names of DuckDB databases begin with that are not files."""


def open_database(url: str, table: str | None = None) -> Any:
    """A table of a database, by its address; files are opened for reading only.

    Parameters
    ----------
    url : str
        ``"…#name"`` at the end names the table.
    table : str, optional
        Its name.
    """
    import ibis

    address, _, fragment = url.partition("#")
    scheme = urlsplit(address).scheme
    table_name = table or fragment
    if scheme in FILE_SCHEMES:
        raise FormatError(
            f"{scheme}: files are read from this machine only; fetch it first and give its path"
        )
    if not table_name:
        raise SchemaError(f"{scheme}: which table? write it after the address: {scheme}://…#name")
    try:
        engine = _connect_database(address, scheme)
    except DiscreetError:
        raise
    except ImportError as error:
        if scheme in DRIVER_EXTRAS:
            raise MissingDependencyError(*DRIVER_EXTRAS[scheme]) from None
        raise FormatError(
            f"{scheme}: its driver ({error.name or scheme}) is not installed; run: "
            f"pip install 'ibis-framework[{scheme}]'"
        ) from None
    except ValueError as error:
        if "connect to" not in str(error):
            raise FormatError(f"{scheme}: the address is not valid: {error}") from None
        raise FormatError(
            f"{scheme}: there is no such kind of database; write duckdb://, sqlite://, "
            "postgres:// or another one that ibis knows"
        ) from None
    except Exception as error:  # every driver has errors of its own
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise FormatError(f"{scheme}: the database cannot be reached: {first_line}") from None
    try:
        return engine.table(table_name)
    except ibis.common.exceptions.TableNotFound:
        table_names = ", ".join(sorted(_list_tables(engine))[:20]) or "none"
        raise SchemaError(
            f"{scheme}: there is no table {table_name!r}; there are: {table_names}"
        ) from None


def _list_tables(engine: Any) -> list[str]:
    if engine.name != "duckdb":
        return list(engine.list_tables())
    return [table_name for (table_name,) in engine.con.execute("SHOW TABLES").fetchall()]


def _connect_database(address: str, scheme: str) -> Any:
    import ibis

    url_parts = urlsplit(address)
    database_name = url_parts.netloc + url_parts.path
    if scheme not in ("duckdb", "sqlite") or database_name.startswith(CLOUD_PREFIXES):
        return ibis.connect(address)
    file_path = Path(database_name)
    if not file_path.is_file():
        raise FormatError(
            f"{scheme}: there is no file {database_name!r}; write {scheme}://FILE#TABLE, with "
            f"three slashes ({scheme}:///…) where the path begins at the root"
        )
    url_options = dict(parse_qsl(url_parts.query))
    if scheme == "duckdb":
        return ibis.duckdb.connect(file_path.absolute(), **{**url_options, "read_only": True})
    if url_options:
        raise FormatError(f"sqlite: there is no option {next(iter(url_options))!r}; leave it out")
    connection = sqlite3.connect(f"file:{quote(str(file_path.absolute()))}?mode=ro", uri=True)
    connection.execute("SELECT count(*) FROM sqlite_schema")  # opened only when it is read
    return ibis.sqlite.from_connection(connection)


def refuse_unclear_types(rows: Any, names: Iterable[str]) -> None:
    """Refuse columns whose values have no type in common, and settings that merge spellings.

    Parameters
    ----------
    rows : ibis.Table
    names : iterable of str
        The columns that will be read.
    """
    engine = rows.get_backend()
    for setting_name, usual_values, is_concerned, reason in TEXT_SETTINGS.get(engine.name, ()):
        if not any(is_concerned(rows[name].type()) for name in dict.fromkeys(names)):
            continue
        query = f"SELECT current_setting('{setting_name}')"
        if engine.name == "duckdb":
            ((current_value,),) = engine.con.execute(query).fetchall()
        else:
            with engine.raw_sql(query) as cursor:
                ((current_value,),) = cursor.fetchall()
        if current_value and current_value.lower() not in usual_values:
            raise SchemaError(
                f"{engine.name}: its {setting_name} is {current_value!r}, under which {reason}; "
                f"set it to {usual_values[0]!r} before"
            )
    if engine.name == "sqlite":
        _refuse_mixed_types(rows, names)


MERGED_REASON = "one row could decide how others are spelled"
SPELLING_REASON = "points in time are spelled otherwise than in the schema"
UTC_NAMES = ("utc", "etc/utc", "gmt", "etc/gmt", "uct", "zulu", "universal")
TEXT_SETTINGS: dict[str, tuple[tuple[str, tuple[str, ...], Callable[[Any], bool], str], ...]] = {
    "duckdb": (
        ("default_collation", ("binary",), lambda kind: True, MERGED_REASON),
        ("timezone", UTC_NAMES, lambda kind: _has_time_zone(kind), SPELLING_REASON),
    ),
    "postgres": (
        (
            "datestyle",
            ("iso, ymd", "iso, mdy", "iso, dmy"),
            lambda kind: _is_time(kind),
            SPELLING_REASON,
        ),
        ("intervalstyle", ("postgres",), lambda kind: bool(kind.is_interval()), SPELLING_REASON),
        ("timezone", UTC_NAMES, lambda kind: _has_time_zone(kind), SPELLING_REASON),
    ),
}
"""Settings of a session on which text depends: usual values, the types concerned, and how."""


def _is_time(kind: Any) -> bool:
    return bool(kind.is_timestamp() or kind.is_date())


def _has_time_zone(kind: Any) -> bool:
    return bool(kind.is_timestamp()) and kind.timezone is not None


SQLITE_TYPES = {"integer": ("integer",), "floating": ("real", "integer"), "string": ("text",)}
"""How SQLite may store the values of a column, which may have any type in any row."""


def _refuse_mixed_types(rows: Any, names: Iterable[str]) -> None:
    strange_types = {}
    for name in dict.fromkeys(names):
        column = rows[name]
        column_type = column.type()
        matching_types = [
            storage_types
            for type_name, storage_types in SQLITE_TYPES.items()
            if getattr(column_type, f"is_{type_name}")()
        ]
        allowed_types = (
            matching_types[0]
            if matching_types
            else ("real", "integer")
            if column_type.is_numeric()
            else ()
        )
        stored_type = column.typeof()
        if column_type.is_boolean():
            boolean_type = (stored_type == "integer").ifelse(
                column.cast("int64").cast("string"), stored_type
            )
            strange_types[name] = (
                boolean_type.isin(["null", "0", "1"]).ifelse(None, boolean_type).max()
            )
        elif allowed_types:
            strange_types[name] = (
                (stored_type.isin(["null", *allowed_types])).ifelse(None, stored_type).max()
            )
    if not strange_types:
        return
    for name, strange_type in rows.aggregate(**strange_types).to_pyarrow().to_pylist()[0].items():
        if strange_type is not None:
            raise SchemaError(
                f"{name}: a column of type {rows[name].type()} of which SQLite stores some values "
                f"as {strange_type}; store all of them in one type, such as by UPDATE with CAST"
            )
