"""The tables, and what differs between SQLite and PostgreSQL.

There is no column of time, address, program or order anywhere. What is deleted is overwritten:
SQLite by ``secure_delete`` and a log that is truncated after settling, PostgreSQL by VACUUM. Every
commit is on the disk before anybody hears of it (``synchronous=FULL``).

All writing of a process is done by one thread (:mod:`discreet.server.writer`). SQLite belongs to
one server; several servers may share a PostgreSQL database, where locks by survey keep them apart.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError

from discreet.errors import DiscreetError, FormatError
from discreet.locks import locked

__all__ = ["Database", "among", "exclusive", "insert_of", "shared"]

SYNCHRONOUS = "FULL"
"""Of SQLite: NORMAL would lose acknowledged reports at a power cut."""

BUSY = 10
"""Seconds that SQLite waits for another process, such as one that makes a token."""

VARIABLES = 10_000
"""Values in one statement; SQLite allows 32,766."""
LOCKS = 0x64697363
"""First key of the advisory locks in PostgreSQL; the second one is the number of the survey."""

metadata = sql.MetaData()


def _table(name: str, *columns: Any) -> sql.Table:
    """A table; SQLite stores it in the order of its key, without numbers of rows."""
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
    sqlite_autoincrement=True,  # the number of a deleted survey is never given again
)
arrival = _table("arrival", _survey(), _id(), _number("question"), _blob("value"))
report = _table("report", _survey(), _id(), _number("question"), _blob("value"))
withdrawn = _table("withdrawn", _survey(), _id())
invitation = _table("invitation", _survey(), _id("hash"), _number("spent"))
FRESH = sql.text("spent = 1")
sql.Index(
    "invitation_fresh",
    invitation.c.survey,
    invitation.c.hash,
    sqlite_where=FRESH,
    postgresql_where=FRESH,
)
"""Invitations spent since the last settling, which are few."""
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
"""What was done with which token, by day; how often, not when."""

OF_A_SURVEY = (arrival, report, withdrawn, invitation, tally, sheet, refusal)


class Database:
    """One database, opened; a context manager.

    Parameters
    ----------
    url : str
        ``sqlite:///path`` or ``postgresql://…``.
    serving : bool, default True
        Whether a server opens it: then SQLite is held alone, until this is closed.
    """

    def __init__(self, url: str, *, serving: bool = True) -> None:
        self.url = _checked(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
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
        """Where the data lies, without a password."""
        if self.sqlite:
            return str(Path(str(self.url.database)).resolve())
        return self.url.set(drivername="postgresql").render_as_string(hide_password=True)

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
            engine = sql.create_engine(self.url, pool_pre_ping=True, **options)
            self._stack.callback(engine.dispose)
            return engine
        arguments = {"timeout": BUSY, "check_same_thread": False}
        engine = sql.create_engine(
            self.url, poolclass=sql.pool.QueuePool, connect_args=arguments, **options
        )
        begin = "BEGIN IMMEDIATE" if connections == 1 else "BEGIN"

        @sql.event.listens_for(engine, "connect")
        def connected(connection: Any, _: Any) -> None:
            connection.isolation_level = None  # transactions begin where we say so
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
        """A transaction that writes; committed at the end, or undone."""
        with self.writing.begin() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[sql.Connection]:
        """A transaction that sees one moment and writes nothing."""
        with self.reading.connect() as plain:
            # on SQLite a transaction sees one moment anyway
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
        """The long part of tidying up, beside whoever writes; from any thread.

        Parameters
        ----------
        tables : sequence of tables, optional
            Where rows were deleted; those that settling empties if not given.
        """
        if self.sqlite:
            self._pragma(self.reading, "wal_checkpoint(PASSIVE)")
            return
        with self.reading.connect() as connection:
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            for table in tables or (arrival, invitation):
                alone.exec_driver_sql(f"VACUUM {table.name}")

    def tidy(self) -> bool:
        """Remove what the last transactions left behind: order, and deleted rows.

        Returns
        -------
        bool
            False where somebody reads the log of SQLite at this moment: then try again later.
        """
        if not self.sqlite:
            return True
        busy, _, _ = self._pragma(self.writing, "wal_checkpoint(TRUNCATE)")
        return not busy

    def _pragma(self, engine: sql.Engine, pragma: str) -> Any:
        raw = engine.raw_connection()
        try:
            cursor = raw.cursor()
            cursor.execute("PRAGMA busy_timeout=0")
            cursor.execute(f"PRAGMA {pragma}")
            found = cursor.fetchone()
            cursor.execute(f"PRAGMA busy_timeout={BUSY * 1000}")
            return found
        finally:
            raw.close()

    def migrate(self, revision: str = "head") -> None:
        """Bring the tables to this program's version, or to an older one; their content stays.

        Parameters
        ----------
        revision : str, default "head"
        """
        from discreet.server.migrations import migrate

        with unavailable(self):
            migrate(self, revision)

    def close(self) -> None:
        """Give everything back."""
        self._stack.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def unavailable(database: Database) -> Iterator[None]:
    """One sentence where the database does not answer."""
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
    """An INSERT that knows what to do about conflicts."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as on_sqlite

        return on_sqlite(table)
    from sqlalchemy.dialects.postgresql import insert as on_postgres

    return on_postgres(table)


def shared(connection: sql.Connection, number: int) -> None:
    """Hold a survey together with others who add arrivals; SQLite has one writer anyway."""
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock_shared(%s, %s)", (LOCKS, number))


def exclusive(connection: sql.Connection, number: int) -> None:
    """Hold a survey alone until the transaction ends: to settle, withdraw, close or delete."""
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s, %s)", (LOCKS, number))


def among(
    connection: sql.Connection, table: sql.Table, number: int, ids: Sequence[bytes]
) -> list[Any]:
    """The rows of a survey that have one of these ids, without the column of the survey."""
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
