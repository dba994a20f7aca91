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

REMOTE = ("s3", "gs", "gcs", "az", "abfs", "abfss", "hdfs", "http", "https", "ftp", "sftp", "file")
"""Addresses of files rather than of databases."""
EXTRAS = {"postgres": ("psycopg", "postgres"), "postgresql": ("psycopg", "postgres")}
CLOUD = ("md:", "motherduck:")
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
    name = table or fragment
    if scheme in REMOTE:
        raise FormatError(
            f"{scheme}: files are read from this machine only; fetch it first and give its path"
        )
    if not name:
        raise SchemaError(f"{scheme}: which table? write it after the address: {scheme}://…#name")
    try:
        engine = _connect(address, scheme)
    except DiscreetError:
        raise
    except ImportError as error:
        if scheme in EXTRAS:
            raise MissingDependencyError(*EXTRAS[scheme]) from None
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
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise FormatError(f"{scheme}: the database cannot be reached: {reason}") from None
    try:
        return engine.table(name)
    except ibis.common.exceptions.TableNotFound:
        some = ", ".join(sorted(_tables(engine))[:20]) or "none"
        raise SchemaError(f"{scheme}: there is no table {name!r}; there are: {some}") from None


def _tables(engine: Any) -> list[str]:
    if engine.name != "duckdb":
        return list(engine.list_tables())
    return [name for (name,) in engine.con.execute("SHOW TABLES").fetchall()]


def _connect(address: str, scheme: str) -> Any:
    import ibis

    parts = urlsplit(address)
    name = parts.netloc + parts.path
    if scheme not in ("duckdb", "sqlite") or name.startswith(CLOUD):
        return ibis.connect(address)
    path = Path(name)
    if not path.is_file():
        raise FormatError(
            f"{scheme}: there is no file {name!r}; write {scheme}://FILE#TABLE, with three slashes "
            f"({scheme}:///…) where the path begins at the root"
        )
    options = dict(parse_qsl(parts.query))
    if scheme == "duckdb":
        return ibis.duckdb.connect(path.absolute(), **{**options, "read_only": True})
    if options:
        raise FormatError(f"sqlite: there is no option {next(iter(options))!r}; leave it out")
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)
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
    for setting, usual, needed, reason in SETTINGS.get(engine.name, ()):
        if not any(needed(rows[name].type()) for name in dict.fromkeys(names)):
            continue
        query = f"SELECT current_setting('{setting}')"
        if engine.name == "duckdb":
            ((current,),) = engine.con.execute(query).fetchall()
        else:
            with engine.raw_sql(query) as cursor:
                ((current,),) = cursor.fetchall()
        if current and current.lower() not in usual:
            raise SchemaError(
                f"{engine.name}: its {setting} is {current!r}, under which {reason}; set it to "
                f"{usual[0]!r} before"
            )
    if engine.name == "sqlite":
        _refuse_mixed_types(rows, names)


MERGED = "one row could decide how others are spelled"
SPELLED = "points in time are spelled otherwise than in the schema"
UTC_NAMES = ("utc", "etc/utc", "gmt", "etc/gmt", "uct", "zulu", "universal")
SETTINGS: dict[str, tuple[tuple[str, tuple[str, ...], Callable[[Any], bool], str], ...]] = {
    "duckdb": (
        ("default_collation", ("binary",), lambda kind: True, MERGED),
        ("timezone", UTC_NAMES, lambda kind: _has_time_zone(kind), SPELLED),
    ),
    "postgres": (
        ("datestyle", ("iso, ymd", "iso, mdy", "iso, dmy"), lambda kind: _is_time(kind), SPELLED),
        ("intervalstyle", ("postgres",), lambda kind: bool(kind.is_interval()), SPELLED),
        ("timezone", UTC_NAMES, lambda kind: _has_time_zone(kind), SPELLED),
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
    strange = {}
    for name in dict.fromkeys(names):
        column = rows[name]
        kind = column.type()
        fitting = [stored for what, stored in SQLITE_TYPES.items() if getattr(kind, f"is_{what}")()]
        allowed = fitting[0] if fitting else ("real", "integer") if kind.is_numeric() else ()
        stored = column.typeof()
        if kind.is_boolean():
            whole = (stored == "integer").ifelse(column.cast("int64").cast("string"), stored)
            strange[name] = whole.isin(["null", "0", "1"]).ifelse(None, whole).max()
        elif allowed:
            strange[name] = (stored.isin(["null", *allowed])).ifelse(None, stored).max()
    if not strange:
        return
    for name, stored in rows.aggregate(**strange).to_pyarrow().to_pylist()[0].items():
        if stored is not None:
            raise SchemaError(
                f"{name}: a column of type {rows[name].type()} of which SQLite stores some values "
                f"as {stored}; store all of them in one type, such as by UPDATE with CAST"
            )
