"""Tables of the server, and the differences between SQLite and PostgreSQL.

There is no column of time, address, program or order anywhere. Arrivals are sealed under keys
outside the database (:mod:`discreet.server.keys`), since no database forgets what it deletes. What
is deleted is overwritten nevertheless: SQLite by ``secure_delete`` and a log that is truncated
after settling, PostgreSQL by VACUUM, both by rewriting all tables when a whole survey was deleted
(:mod:`discreet.server.erasure`). Every commit is on the disk before it is acknowledged
(``synchronous=FULL``).

All writing of a process is done by one thread (:mod:`discreet.server.writer`). SQLite belongs to
one server; several servers may share a PostgreSQL database, where locks by survey keep them apart.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError

from discreet.errors import DiscreetError, FormatError
from discreet.locks import locked
from discreet.server.keys import Keys

__all__ = ["Database", "among", "exclusive", "insert_of", "insert_rows", "keys_of"]

SYNCHRONOUS = "FULL"
"""For SQLite: NORMAL would lose acknowledged reports in a power failure."""

DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)
"""Of PostgreSQL: a batch whose key was destroyed must not come back unsettled after a crash."""

BUSY = 10
"""Seconds that SQLite waits for another process, such as one that creates a token."""

VARIABLES = 10_000
"""Values in one statement; SQLite allows 32,766."""
LOCKS = 0x64697363
"""First key of the advisory locks in PostgreSQL; the second one is the number of the survey."""

IDENTITY = (
    "SELECT oid, system_identifier FROM pg_database, pg_control_system() "
    "WHERE datname = current_database()"
)
"""Identifies a PostgreSQL database: ``oid`` alone starts at the same number in each cluster."""

metadata = sql.MetaData()


def _table(name: str, *columns: Any) -> sql.Table:
    """Make a table; SQLite stores it in the order of its key, without row numbers."""
    return sql.Table(name, metadata, *columns, sqlite_with_rowid=False)


def _survey() -> sql.Column[int]:
    return sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False)


def _id(name: str = "id") -> sql.Column[bytes]:
    return sql.Column(name, sql.LargeBinary, primary_key=True)


def _number(name: str) -> sql.Column[int]:
    return sql.Column(name, sql.BigInteger, nullable=False)


def _text(name: str) -> sql.Column[str]:
    return sql.Column(name, sql.Text, nullable=False)


def _blob(name: str) -> sql.Column[bytes]:
    return sql.Column(name, sql.LargeBinary, nullable=False)


survey = sql.Table(
    "survey",
    metadata,
    sql.Column("number", sql.Integer, primary_key=True),
    sql.Column("slug", sql.Text, nullable=False, unique=True),
    _blob("document"),
    _text("announcement"),
    _text("state"),
    _number("longest"),  # bytes of the longest report: sealed rows are all that long
    sqlite_autoincrement=True,  # the number of a deleted survey is never given again
)
arrival = _table(
    "arrival",
    _survey(),
    _id("mark"),  # MAC of the id under the key of the batch
    sql.Column("code", sql.LargeBinary),  # MAC of the hash of the invitation, likewise
    _number("batch"),  # number of the key
    _number("live"),  # 0 after a withdrawal
    _blob("body"),
)
"""Reports that wait to be settled, each with the invitation spent on it, sealed."""
INVITED = sql.text("code IS NOT NULL")
sql.Index(
    "arrival_code",
    arrival.c.survey,
    arrival.c.code,
    unique=True,
    sqlite_where=INVITED,
    postgresql_where=INVITED,
)
batch_key = _table(
    "batch_key",
    _survey(),
    sql.Column("number", sql.BigInteger, primary_key=True, autoincrement=False),
    _text("state"),
)
"""Keys of batches: ``sealing`` new arrivals, ``closed`` to them, or ``spent``: to be destroyed."""
report = _table("report", _survey(), _id(), _number("question"), _blob("value"))
withdrawn = _table("withdrawn", _survey(), _id())
invitation = _table("invitation", _survey(), _id("hash"), _number("spent"))
tally = _table(
    "tally",
    _survey(),
    _number("version"),
    _blob("counted"),
    _blob("sums"),
    _number("settled"),
    _number("repeated"),
    _number("withdrawn"),
)
sheet = _table(
    "sheet",
    _survey(),
    sql.Column("question", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("value", sql.LargeBinary, primary_key=True),
    _number("times"),
)
refusal = _table(
    "refusal", _survey(), sql.Column("kind", sql.Text, primary_key=True), _number("times")
)
erasure = _table("erasure", _survey())
"""Surveys that were deleted, while their bytes may still be in the files."""
token = _table(
    "token",
    sql.Column("hash", sql.LargeBinary, primary_key=True),
    _text("kind"),
    _text("role"),
    _text("label"),
    _text("made"),
    sql.Column("expires", sql.Text),
)
action = _table(
    "action",
    sql.Column("day", sql.Text, primary_key=True),
    sql.Column("label", sql.Text, primary_key=True),
    sql.Column("what", sql.Text, primary_key=True),
    _number("times"),
)
"""How often which action was done with which token, by day."""

OF_A_SURVEY = (arrival, report, withdrawn, invitation, tally, sheet, refusal)


class Database:
    """One database, opened; a context manager.

    Parameters
    ----------
    url : str
        ``sqlite:///path`` or ``postgresql://…``.
    serving : bool, default True
        Whether a server opens it: SQLite is then locked against other servers until it is closed.
    keys : path, optional
        Folder of the keys, with a subfolder per database. Default: ``FILE.keys`` next to SQLite's
        file; for PostgreSQL the environment variable ``DISCREET_KEYS`` or ``discreet-keys``.

    Attributes
    ----------
    keys : Keys
    """

    def __init__(self, url: str, *, serving: bool = True, keys: str | Path | None = None) -> None:
        self.url = _checked(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.keys = Keys(lambda: self._find_keys(keys))
        self._stack = ExitStack()
        try:
            if self.sqlite:
                self._own_file(serving)
            self.writing, self.reading = self._engine(1), self._engine(8)
        except BaseException:
            self._stack.close()
            raise

    @property
    def place(self) -> str:
        """Path or URL of the database, without a password."""
        if self.sqlite:
            return str(Path(str(self.url.database)).resolve())
        return self.url.set(drivername="postgresql").render_as_string(hide_password=True)

    def _find_keys(self, chosen: str | Path | None) -> Path:
        if self.sqlite:
            path = Path(self.place)
            if chosen is None:
                return path.with_name(f"{path.name}.keys")
            told_apart = hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
            return Path(chosen).resolve() / f"{path.name}-{told_apart}"
        with self.reading.connect() as connection:
            oid, cluster = connection.exec_driver_sql(IDENTITY).one()
        root = chosen or os.environ.get("DISCREET_KEYS") or "discreet-keys"
        return Path(root).resolve() / f"{self.url.database}-{oid}-{cluster}"

    def _own_file(self, serving: bool) -> None:
        path = Path(str(self.url.database))
        if not path.parent.is_dir():
            raise FormatError(f"{path}: the folder {path.parent} does not exist; make it first")
        if serving:
            busy = (
                "another discreet serve uses this database; SQLite belongs to one server. Stop the "
                "other one, or use PostgreSQL, which several servers may share"
            )
            self._stack.enter_context(locked(f"{path}.lock", busy))
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise FormatError(f"{path}: cannot be opened: {error.strerror}") from None

    def _engine(self, connections: int) -> sql.Engine:
        options: dict[str, Any] = {"pool_size": connections, "max_overflow": 0}
        if not self.sqlite:
            engine = sql.create_engine(
                self.url, pool_pre_ping=True, execution_options={"keys": self.keys}, **options
            )

            @sql.event.listens_for(engine, "connect")
            def durable(connection: Any, _: Any) -> None:
                connection.execute(DURABLE)
                connection.commit()

            self._stack.callback(engine.dispose)
            return engine
        arguments = {"timeout": BUSY, "check_same_thread": False}
        options |= {"connect_args": arguments, "execution_options": {"keys": self.keys}}
        engine = sql.create_engine(self.url, poolclass=sql.pool.QueuePool, **options)
        begin = "BEGIN IMMEDIATE" if connections == 1 else "BEGIN"

        @sql.event.listens_for(engine, "connect")
        def connected(connection: Any, _: Any) -> None:
            connection.isolation_level = None  # transactions begin explicitly, see below
            for pragma in (
                "journal_mode=WAL",
                f"synchronous={SYNCHRONOUS}",
                "secure_delete=ON",
                "journal_size_limit=67108864",
            ):
                connection.execute(f"PRAGMA {pragma}")

        @sql.event.listens_for(engine, "begin")
        def begun(connection: sql.Connection) -> None:
            connection.exec_driver_sql(begin)

        self._stack.callback(engine.dispose)
        return engine

    @contextmanager
    def write(self) -> Iterator[sql.Connection]:
        """Open a transaction that writes; commit it at the end, or roll it back."""
        with self.writing.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[sql.Connection]:
        """Open a read-only transaction on one snapshot."""
        with self.reading.connect() as plain:
            # on SQLite every transaction sees one snapshot
            connection = (
                plain
                if self.sqlite
                else plain.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            )
            with connection.begin():
                yield connection

    def sweep(self, tables: Sequence[sql.Table] = ()) -> None:
        """Run the long part of the cleanup, concurrently with writers; from any thread.

        Parameters
        ----------
        tables : sequence of tables, optional
            Where rows were deleted; those that settling empties if not given.
        """
        if self.sqlite:
            self.run_alone(self.reading, "PRAGMA wal_checkpoint(PASSIVE)")
            return
        with self.reading.connect() as connection:
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            for table in tables or (arrival, invitation):
                alone.exec_driver_sql(f"VACUUM {table.name}")

    def tidy(self) -> bool:
        """Truncate the log of SQLite, which holds the order of transactions and deleted rows.

        Returns
        -------
        bool
            False if another connection is reading the log of SQLite: try again later.
        """
        if not self.sqlite:
            return True
        busy, _, _ = self.run_alone(self.writing, "PRAGMA wal_checkpoint(TRUNCATE)")
        return not busy

    def run_alone(self, engine: sql.Engine, command: str, *, wait: bool = False) -> Any:
        """Run a command of SQLite outside of a transaction; return its first row.

        Parameters
        ----------
        engine : Engine
            ``reading`` or ``writing``.
        command : str
        wait : bool, default False
            Whether to wait for other processes that use the file.
        """
        try:
            with closing(engine.raw_connection()) as raw:
                cursor = raw.cursor()
                cursor.execute(f"PRAGMA busy_timeout={BUSY * 1000 * wait}")
                try:
                    cursor.execute(command)
                    return cursor.fetchone()
                finally:
                    cursor.execute(f"PRAGMA busy_timeout={BUSY * 1000}")
        except sqlite3.Error as error:  # like all other errors of a database
            raise sql.exc.OperationalError(command, None, error) from None

    def migrate(self, revision: str = "head") -> None:
        """Migrate the tables to this program's version or an older one; their content stays.

        Parameters
        ----------
        revision : str, default "head"
        """
        from discreet.server.migrations import migrate

        with unavailable(self):
            migrate(self, revision)

    def close(self) -> None:
        """Close connections and release the lock."""
        self._stack.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def unavailable(database: Database) -> Iterator[None]:
    """Convert errors of the database into one sentence."""
    try:
        yield
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        raise DiscreetError(f"{database.place}: the database does not work: {reason}") from None


def _checked(url: str) -> sql.URL:
    if "://" not in url:
        url = f"sqlite:///{url}"
    try:
        made = sql.make_url(url)
    except (sql.exc.ArgumentError, ValueError):
        raise FormatError(
            "this is not the URL of a database; write sqlite:///collected.db or "
            "postgresql://user:password@host/name"
        ) from None
    kind = made.get_backend_name()
    if kind == "sqlite" and made.database and not made.query:
        return made
    if kind == "postgresql":
        return made.set(drivername="postgresql+psycopg")
    raise FormatError(
        f"{re.sub(r':[^/@]*@', ':…@', url)}: give a file, sqlite:///path, or postgresql://…; "
        "reports are kept in one of the two"
    )


# ---------------------------------------------------------------- where the two databases differ


def insert_of(connection: sql.Connection, table: sql.Table) -> Any:
    """Make an INSERT of this dialect that supports ``on_conflict``."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as on_sqlite

        return on_sqlite(table)
    from sqlalchemy.dialects.postgresql import insert as on_postgres

    return on_postgres(table)


def insert_rows(
    connection: sql.Connection, table: sql.Table, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows of all columns, in their order; none of them may be there already."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(table.columns))
        connection.exec_driver_sql(f"INSERT INTO {table.name} VALUES ({marks})", list(rows))
        return
    types = {sql.Integer: "int4", sql.BigInteger: "int8", sql.LargeBinary: "bytea"}
    raw: Any = connection.connection.dbapi_connection
    command = f"COPY {table.name} FROM STDIN (FORMAT BINARY)"
    with raw.cursor() as cursor, cursor.copy(command) as copy:
        copy.set_types([types[type(column.type)] for column in table.columns])
        for row in rows:
            copy.write_row(row)


def keys_of(connection: sql.Connection) -> Keys:
    """Get the key folder of the database of a connection."""
    keys: Keys = connection.get_execution_options()["keys"]
    return keys


def exclusive(connection: sql.Connection, number: int) -> None:
    """Lock a survey until the transaction ends; SQLite has only one writer.

    Earlier changes are then committed and visible: no report or invitation is stored twice, and no
    key is destroyed while it seals. An advisory lock writes nothing, whereas a lock of a
    row would leave in it which transaction asked for it.
    """
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s, %s)", (LOCKS, number))


def among(
    connection: sql.Connection, table: sql.Table, number: int, ids: Sequence[bytes]
) -> list[Any]:
    """Find the rows of a survey with these keys, without the survey column."""
    key, *others = [column.name for column in table.columns][1:]
    names = ", ".join((key, *others))
    if not ids:
        return []
    if connection.dialect.name == "sqlite":
        found: list[Any] = []
        for start in range(0, len(ids), VARIABLES):
            some = ids[start : start + VARIABLES]
            marks = ",".join("?" * len(some))
            text = f"SELECT {names} FROM {table.name} WHERE survey = ? AND {key} IN ({marks})"
            found += connection.exec_driver_sql(text, (number, *some))
        return found
    text = f"SELECT {names} FROM {table.name} WHERE survey = %s AND {key} = ANY(%b)"
    return list(connection.exec_driver_sql(text, (number, list(ids))))
