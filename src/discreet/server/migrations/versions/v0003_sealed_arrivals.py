"""Arrivals sealed under keys outside the database, each in one row with its invitation."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sql
from alembic import op

revision = "0003"
down_revision = "0002"

KEYED = {"sqlite_with_rowid": False}


def _survey() -> sql.Column[int]:
    return sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False)


def upgrade() -> None:
    """Seal the waiting arrivals; the invitations spent on them are no longer known."""
    connection = op.get_bind()
    # added in place: a copy of the table would forget the numbers of surveys that were deleted
    column = sql.Column("longest", sql.BigInteger, nullable=False, server_default="0")
    op.add_column("survey", column)
    longest = _write_longest(connection)
    rows = connection.exec_driver_sql("SELECT survey, id, question, value FROM arrival").all()
    op.drop_table("arrival")
    op.drop_index("invitation_fresh", "invitation")
    op.execute("UPDATE invitation SET spent = 1 WHERE spent > 0")
    if connection.dialect.name == "postgresql":  # until now in the order in which they were spent
        op.execute("CLUSTER invitation USING invitation_pkey")
        op.execute("ALTER TABLE invitation SET WITHOUT CLUSTER")
    op.create_table(
        "arrival",
        _survey(),
        sql.Column("mark", sql.LargeBinary, primary_key=True),
        sql.Column("code", sql.LargeBinary),
        sql.Column("batch", sql.BigInteger, nullable=False),
        sql.Column("live", sql.BigInteger, nullable=False),
        sql.Column("body", sql.LargeBinary, nullable=False),
        **KEYED,
    )
    invited = sql.text("code IS NOT NULL")
    op.create_index(
        "arrival_code",
        "arrival",
        ["survey", "code"],
        unique=True,
        sqlite_where=invited,
        postgresql_where=invited,
    )
    op.create_table(
        "batch_key",
        _survey(),
        sql.Column("number", sql.BigInteger, primary_key=True, autoincrement=False),
        sql.Column("state", sql.Text, nullable=False),
        **KEYED,
    )
    _seal(connection, rows, longest)


def _write_longest(connection: sql.Connection) -> dict[int, int]:
    """Store the bytes of the longest report of each survey, from its document."""
    from discreet.collection.protocol import collection_of
    from discreet.documents import digest_of
    from discreet.server.intake import longest_value

    table = sql.table("survey", sql.column("number"), sql.column("document"), sql.column("longest"))
    longest = {}
    for number, document in connection.execute(sql.select(table.c.number, table.c.document)).all():
        whole = {**json.loads(bytes(document)), "digest": digest_of(bytes(document))}
        longest[number] = longest_value(collection_of(json.dumps(whole)))
        change = sql.update(table).where(table.c.number == number)
        connection.execute(change.values(longest=longest[number]))
    return longest


def _seal(connection: sql.Connection, rows: Any, longest: dict[int, int]) -> None:
    from discreet.server.intake import Row
    from discreet.server.sealed_arrivals import Arrival, insert_arrivals

    for survey, size in longest.items():
        waiting = [
            Arrival(Row(bytes(identity), question, bytes(value)))
            for number, identity, question, value in rows
            if number == survey
        ]
        insert_arrivals(connection, survey, size, waiting)


def downgrade() -> None:
    """Open the arrivals again."""
    from discreet.server.sealed_arrivals import live_keys, open_arrivals

    connection = op.get_bind()
    stored = connection.execute(sql.text("SELECT * FROM arrival")).all()
    surveys = {row.survey for row in stored}
    keys = {number: key for one in surveys for number, key in live_keys(connection, one).items()}
    waiting = list(zip((row.survey for row in stored), open_arrivals(stored, keys), strict=True))
    op.drop_table("arrival")
    op.drop_table("batch_key")
    op.drop_column("survey", "longest")
    op.create_table(
        "arrival",
        _survey(),
        sql.Column("id", sql.LargeBinary, primary_key=True),
        sql.Column("question", sql.BigInteger, nullable=False),
        sql.Column("value", sql.LargeBinary, nullable=False),
        **KEYED,
    )
    op.execute("UPDATE invitation SET spent = 2 WHERE spent > 0")
    fresh = sql.text("spent = 1")
    columns = ["survey", "hash"]
    op.create_index(
        "invitation_fresh", "invitation", columns, sqlite_where=fresh, postgresql_where=fresh
    )
    _unseal(connection, waiting)


def _unseal(connection: sql.Connection, waiting: Any) -> None:
    names = ("survey", "id", "question", "value")
    arrival = sql.table("arrival", *map(sql.column, names))
    withdrawn = sql.table("withdrawn", sql.column("survey"), sql.column("id"))
    invitation = sql.table("invitation", *map(sql.column, ("survey", "hash", "spent")))
    for survey, opened in sorted(waiting, key=lambda pair: pair[1].arrival.row.id):
        row = opened.arrival.row
        if opened.live:
            values = dict(zip(names, (survey, *row), strict=True))
            connection.execute(sql.insert(arrival).values(**values))
        else:
            connection.execute(sql.insert(withdrawn).values(survey=survey, id=row.id))
        if opened.arrival.code is not None:
            here = invitation.c
            spent = sql.update(invitation).where(here.survey == survey)
            connection.execute(spent.where(here.hash == opened.arrival.code).values(spent=1))
