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
from discreet.files.locks import hold_lock
from discreet.server.keys import KeyFolder

__all__ = [
    "Database",
    "add_times",
    "find_rows",
    "get_keys",
    "insert_rows",
    "lock_survey",
    "make_insert",
]

SQLITE_SYNCHRONOUS = "FULL"
"""For SQLite: NORMAL would lose acknowledged reports in a power failure."""

DURABLE_COMMITS_QUERY = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)
"""Of PostgreSQL: a batch whose key was destroyed must not come back unsettled after a crash."""

BUSY_TIMEOUT_SECONDS = 10
"""Seconds that SQLite waits for another process, such as one that creates a token."""

MAX_STATEMENT_VALUES = 10_000
"""Values in one statement; SQLite allows 32,766."""
ADVISORY_LOCK_SPACE = 0x64697363
"""First key of the advisory locks in PostgreSQL; the second one is the number of the survey."""

DATABASE_IDENTITY_QUERY = (
    "SELECT oid, system_identifier FROM pg_database, pg_control_system() "
    "WHERE datname = current_database()"
)
"""Identifies a PostgreSQL database: ``oid`` alone starts at the same number in each cluster."""

metadata = sql.MetaData()


def _make_table(table_name: str, *columns: Any) -> sql.Table:
    """Make a table; SQLite stores it in the order of its key, without row numbers."""
    return sql.Table(table_name, metadata, *columns, sqlite_with_rowid=False)


def _make_survey_column() -> sql.Column[int]:
    return sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False)


def _make_id_column(column_name: str = "id") -> sql.Column[bytes]:
    return sql.Column(column_name, sql.LargeBinary, primary_key=True)


def _make_integer_column(column_name: str) -> sql.Column[int]:
    return sql.Column(column_name, sql.BigInteger, nullable=False)


def _make_text_column(column_name: str) -> sql.Column[str]:
    return sql.Column(column_name, sql.Text, nullable=False)


def _make_blob_column(column_name: str) -> sql.Column[bytes]:
    return sql.Column(column_name, sql.LargeBinary, nullable=False)


survey = sql.Table(
    "survey",
    metadata,
    sql.Column("number", sql.Integer, primary_key=True),
    sql.Column("slug", sql.Text, nullable=False, unique=True),
    _make_blob_column("document"),
    _make_text_column("announcement"),
    _make_text_column("state"),
    _make_integer_column("longest"),  # bytes of the longest report: sealed rows are all that long
    sqlite_autoincrement=True,  # the number of a deleted survey is never given again
)
arrival = _make_table(
    "arrival",
    _make_survey_column(),
    _make_id_column("mark"),  # MAC of the id under the key of the batch
    sql.Column("code", sql.LargeBinary),  # MAC of the hash of the invitation, likewise
    _make_integer_column("batch"),  # number of the key
    _make_integer_column("live"),  # 0 after a withdrawal
    _make_blob_column("body"),
)
"""Reports that wait to be settled, each with the invitation spent on it, sealed."""
HAS_INVITATION = sql.text("code IS NOT NULL")
sql.Index(
    "arrival_code",
    arrival.c.survey,
    arrival.c.code,
    unique=True,
    sqlite_where=HAS_INVITATION,
    postgresql_where=HAS_INVITATION,
)
batch_key = _make_table(
    "batch_key",
    _make_survey_column(),
    sql.Column("number", sql.BigInteger, primary_key=True, autoincrement=False),
    _make_text_column("state"),
)
"""Keys of batches: ``sealing`` new arrivals, ``closed`` to them, or ``spent``: to be destroyed."""
report = _make_table(
    "report",
    _make_survey_column(),
    _make_id_column(),
    _make_integer_column("question"),
    _make_blob_column("value"),
)
withdrawn = _make_table("withdrawn", _make_survey_column(), _make_id_column())
invitation = _make_table(
    "invitation", _make_survey_column(), _make_id_column("hash"), _make_integer_column("spent")
)
tally = _make_table(
    "tally",
    _make_survey_column(),
    _make_integer_column("version"),
    _make_blob_column("counted"),
    _make_blob_column("sums"),
    _make_integer_column("settled"),
    _make_integer_column("repeated"),
    _make_integer_column("withdrawn"),
)
sheet = _make_table(
    "sheet",
    _make_survey_column(),
    sql.Column("question", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("value", sql.LargeBinary, primary_key=True),
    _make_integer_column("times"),
)
refusal = _make_table(
    "refusal",
    _make_survey_column(),
    sql.Column("kind", sql.Text, primary_key=True),
    _make_integer_column("times"),
)
erasure = _make_table("erasure", _make_survey_column())
"""Surveys that were deleted, while their bytes may still be in the files."""
token = _make_table(
    "token",
    sql.Column("hash", sql.LargeBinary, primary_key=True),
    _make_text_column("kind"),
    _make_text_column("role"),
    _make_text_column("label"),
    _make_text_column("made"),
    sql.Column("expires", sql.Text),
)
action = _make_table(
    "action",
    sql.Column("day", sql.Text, primary_key=True),
    sql.Column("label", sql.Text, primary_key=True),
    sql.Column("what", sql.Text, primary_key=True),
    _make_integer_column("times"),
)
"""How often which action was done with which token, by day."""

SURVEY_TABLES = (arrival, report, withdrawn, invitation, tally, sheet, refusal)


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
    keys : KeyFolder
    """

    def __init__(self, url: str, *, serving: bool = True, keys: str | Path | None = None) -> None:
        self.url = _parse_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.keys = KeyFolder(lambda: self._find_key_folder(keys))
        self._stack = ExitStack()
        try:
            if self.is_sqlite:
                self._open_own_file(serving)
            self.write_engine, self.read_engine = self._create_engine(1), self._create_engine(8)
        except BaseException:
            self._stack.close()
            raise

    @property
    def location(self) -> str:
        """Path or URL of the database, without a password."""
        if self.is_sqlite:
            return str(Path(str(self.url.database)).resolve())
        return self.url.set(drivername="postgresql").render_as_string(hide_password=True)

    def _find_key_folder(self, chosen_folder: str | Path | None) -> Path:
        if self.is_sqlite:
            database_path = Path(self.location)
            if chosen_folder is None:
                return database_path.with_name(f"{database_path.name}.keys")
            path_digest = hashlib.sha256(os.fsencode(database_path)).hexdigest()[:8]
            return Path(chosen_folder).resolve() / f"{database_path.name}-{path_digest}"
        with self.read_engine.connect() as connection:
            oid, cluster_id = connection.exec_driver_sql(DATABASE_IDENTITY_QUERY).one()
        keys_root = chosen_folder or os.environ.get("DISCREET_KEYS") or "discreet-keys"
        return Path(keys_root).resolve() / f"{self.url.database}-{oid}-{cluster_id}"

    def _open_own_file(self, serving: bool) -> None:
        database_path = Path(str(self.url.database))
        if not database_path.parent.is_dir():
            raise FormatError(
                f"{database_path}: the folder {database_path.parent} does not exist; make it first"
            )
        if serving:
            busy_message = (
                "another discreet serve uses this database; SQLite belongs to one server. Stop the "
                "other one, or use PostgreSQL, which several servers may share"
            )
            self._stack.enter_context(hold_lock(f"{database_path}.lock", busy_message))
        try:
            os.close(os.open(database_path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise FormatError(f"{database_path}: cannot be opened: {error.strerror}") from None

    def _create_engine(self, pool_size: int) -> sql.Engine:
        engine_options: dict[str, Any] = {
            "pool_size": pool_size,
            "max_overflow": 0,
            "execution_options": {"keys": self.keys},
        }
        if not self.is_sqlite:
            engine = sql.create_engine(self.url, pool_pre_ping=True, **engine_options)

            @sql.event.listens_for(engine, "connect")
            def set_durable_commits(connection: Any, _: Any) -> None:
                connection.execute(DURABLE_COMMITS_QUERY)
                connection.commit()

            self._stack.callback(engine.dispose)
            return engine
        connect_arguments = {"timeout": BUSY_TIMEOUT_SECONDS, "check_same_thread": False}
        engine = sql.create_engine(
            self.url,
            poolclass=sql.pool.QueuePool,
            connect_args=connect_arguments,
            **engine_options,
        )
        begin_statement = "BEGIN IMMEDIATE" if pool_size == 1 else "BEGIN"

        @sql.event.listens_for(engine, "connect")
        def set_pragmas(connection: Any, _: Any) -> None:
            connection.isolation_level = None  # transactions begin explicitly, see below
            for pragma in (
                "journal_mode=WAL",
                f"synchronous={SQLITE_SYNCHRONOUS}",
                "secure_delete=ON",
                "journal_size_limit=67108864",
            ):
                connection.execute(f"PRAGMA {pragma}")

        @sql.event.listens_for(engine, "begin")
        def start_transaction(connection: sql.Connection) -> None:
            connection.exec_driver_sql(begin_statement)

        self._stack.callback(engine.dispose)
        return engine

    @contextmanager
    def write(self) -> Iterator[sql.Connection]:
        """Open a transaction that writes; commit it at the end, or roll it back."""
        with self.write_engine.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[sql.Connection]:
        """Open a read-only transaction on one snapshot."""
        with self.read_engine.connect() as plain_connection:
            # on SQLite every transaction sees one snapshot
            connection = (
                plain_connection
                if self.is_sqlite
                else plain_connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            )
            with connection.begin():
                yield connection

    def run_cleanup(self, tables: Sequence[sql.Table] = ()) -> None:
        """Run the long part of the cleanup, concurrently with writers; from any thread.

        Parameters
        ----------
        tables : sequence of tables, optional
            Where rows were deleted; those that settling empties if not given.
        """
        if self.is_sqlite:
            self.run_outside_transaction(self.read_engine, "PRAGMA wal_checkpoint(PASSIVE)")
            return
        with self.read_engine.connect() as connection:
            autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
            for table in tables or (arrival, invitation):
                autocommit.exec_driver_sql(f"VACUUM {table.name}")

    def truncate_log(self) -> bool:
        """Truncate the log of SQLite, which holds the order of transactions and deleted rows.

        Returns
        -------
        bool
            False if another connection is reading the log of SQLite: try again later.
        """
        if not self.is_sqlite:
            return True
        is_busy, _, _ = self.run_outside_transaction(
            self.write_engine, "PRAGMA wal_checkpoint(TRUNCATE)"
        )
        return not is_busy

    def run_outside_transaction(
        self, engine: sql.Engine, command: str, *, wait: bool = False
    ) -> Any:
        """Run a command of SQLite outside of a transaction; return its first row.

        Parameters
        ----------
        engine : Engine
            ``read_engine`` or ``write_engine``.
        command : str
        wait : bool, default False
            Whether to wait for other processes that use the file.
        """
        try:
            with closing(engine.raw_connection()) as raw_connection:
                cursor = raw_connection.cursor()
                cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_SECONDS * 1000 * wait}")
                try:
                    cursor.execute(command)
                    return cursor.fetchone()
                finally:
                    cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_SECONDS * 1000}")
        except sqlite3.Error as error:  # like all other errors of a database
            raise sql.exc.OperationalError(command, None, error) from None

    def migrate(self, revision: str = "head") -> None:
        """Migrate the tables to this program's version or an older one; their content stays.

        Parameters
        ----------
        revision : str, default "head"
        """
        from discreet.server.migrations import migrate

        with convert_database_errors(self):
            migrate(self, revision)

    def close(self) -> None:
        """Close connections and release the lock."""
        self._stack.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def convert_database_errors(database: Database) -> Iterator[None]:
    """Convert errors of the database into one sentence."""
    try:
        yield
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        raise DiscreetError(f"{database.location}: the database does not work: {reason}") from None


def _parse_url(url: str) -> sql.URL:
    if "://" not in url:
        url = f"sqlite:///{url}"
    try:
        parsed_url = sql.make_url(url)
    except (sql.exc.ArgumentError, ValueError):
        raise FormatError(
            "this is not the URL of a database; write sqlite:///collected.db or "
            "postgresql://user:password@host/name"
        ) from None
    backend_name = parsed_url.get_backend_name()
    if backend_name == "sqlite" and parsed_url.database and not parsed_url.query:
        return parsed_url
    if backend_name == "postgresql":
        return parsed_url.set(drivername="postgresql+psycopg")
    raise FormatError(
        f"{re.sub(r':[^/@]*@', ':…@', url)}: give a file, sqlite:///path, or postgresql://…; "
        "reports are kept in one of the two"
    )


# ---------------------------------------------------------------- where the two databases differ


def make_insert(connection: sql.Connection, table: sql.Table) -> Any:
    """Make an INSERT of this dialect that supports ``on_conflict``."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as on_sqlite

        return on_sqlite(table)
    from sqlalchemy.dialects.postgresql import insert as on_postgres

    return on_postgres(table)


def add_times(connection: sql.Connection, table: sql.Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert counters; what is there already is increased by ``times``."""
    upsert = make_insert(connection, table)
    upsert = upsert.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={"times": table.c.times + upsert.excluded.times},
    )
    connection.execute(upsert, rows)


def insert_rows(
    connection: sql.Connection, table: sql.Table, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows of all columns, in their order; none of them may be there already."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        placeholders = ", ".join("?" * len(table.columns))
        connection.exec_driver_sql(f"INSERT INTO {table.name} VALUES ({placeholders})", list(rows))
        return
    column_types = {sql.Integer: "int4", sql.BigInteger: "int8", sql.LargeBinary: "bytea"}
    raw_connection: Any = connection.connection.dbapi_connection
    copy_command = f"COPY {table.name} FROM STDIN (FORMAT BINARY)"
    with raw_connection.cursor() as cursor, cursor.copy(copy_command) as copy:
        copy.set_types([column_types[type(column.type)] for column in table.columns])
        for row in rows:
            copy.write_row(row)


def get_keys(connection: sql.Connection) -> KeyFolder:
    """Get the key folder of the database of a connection."""
    keys: KeyFolder = connection.get_execution_options()["keys"]
    return keys


def lock_survey(connection: sql.Connection, survey_number: int) -> None:
    """Lock a survey until the transaction ends; SQLite has only one writer.

    Earlier changes are then committed and visible: no report or invitation is stored twice, and no
    key is destroyed while it seals. An advisory lock writes nothing, whereas a lock of a
    row would leave in it which transaction asked for it.
    """
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(
            "SELECT pg_advisory_xact_lock(%s, %s)", (ADVISORY_LOCK_SPACE, survey_number)
        )


def find_rows(
    connection: sql.Connection, table: sql.Table, survey_number: int, ids: Sequence[bytes]
) -> list[Any]:
    """Find the rows of a survey with these keys, without the survey column."""
    _, key_column, *_ = table.columns.keys()
    column_names = ", ".join(table.columns.keys()[1:])
    if not ids:
        return []
    if connection.dialect.name == "sqlite":
        matching_rows: list[Any] = []
        for chunk_start in range(0, len(ids), MAX_STATEMENT_VALUES):
            id_chunk = ids[chunk_start : chunk_start + MAX_STATEMENT_VALUES]
            placeholders = ",".join("?" * len(id_chunk))
            query = (
                f"SELECT {column_names} FROM {table.name} "
                f"WHERE survey = ? AND {key_column} IN ({placeholders})"
            )
            matching_rows += connection.exec_driver_sql(query, (survey_number, *id_chunk))
        return matching_rows
    query = f"SELECT {column_names} FROM {table.name} WHERE survey = %s AND {key_column} = ANY(%b)"
    return list(connection.exec_driver_sql(query, (survey_number, list(ids))))
