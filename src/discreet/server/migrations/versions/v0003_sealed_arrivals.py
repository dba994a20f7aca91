"""Arrivals sealed under keys outside the database, each in one row with its invitation."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sql
from alembic import op

revision = "0003"
down_revision = "0002"

WITHOUT_ROWID = {"sqlite_with_rowid": False}


def _make_survey_column() -> sql.Column[int]:
    return sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False)


def upgrade() -> None:
    """Seal the waiting arrivals; the invitations spent on them are no longer known."""
    connection = op.get_bind()
    # added in place: a copy of the table would forget the numbers of surveys that were deleted
    longest_column = sql.Column("longest", sql.BigInteger, nullable=False, server_default="0")
    op.add_column("survey", longest_column)
    longest_by_survey = _write_longest(connection)
    arrival_rows = connection.exec_driver_sql(
        "SELECT survey, id, question, value FROM arrival"
    ).all()
    op.drop_table("arrival")
    op.drop_index("invitation_fresh", "invitation")
    op.execute("UPDATE invitation SET spent = 1 WHERE spent > 0")
    if connection.dialect.name == "postgresql":  # until now in the order in which they were spent
        op.execute("CLUSTER invitation USING invitation_pkey")
        op.execute("ALTER TABLE invitation SET WITHOUT CLUSTER")
    op.create_table(
        "arrival",
        _make_survey_column(),
        sql.Column("mark", sql.LargeBinary, primary_key=True),
        sql.Column("code", sql.LargeBinary),
        sql.Column("batch", sql.BigInteger, nullable=False),
        sql.Column("live", sql.BigInteger, nullable=False),
        sql.Column("body", sql.LargeBinary, nullable=False),
        **WITHOUT_ROWID,
    )
    has_invitation = sql.text("code IS NOT NULL")
    op.create_index(
        "arrival_code",
        "arrival",
        ["survey", "code"],
        unique=True,
        sqlite_where=has_invitation,
        postgresql_where=has_invitation,
    )
    op.create_table(
        "batch_key",
        _make_survey_column(),
        sql.Column("number", sql.BigInteger, primary_key=True, autoincrement=False),
        sql.Column("state", sql.Text, nullable=False),
        **WITHOUT_ROWID,
    )
    _seal_arrivals(connection, arrival_rows, longest_by_survey)


def _write_longest(connection: sql.Connection) -> dict[int, int]:
    """Store the bytes of the longest report of each survey, from its document."""
    from discreet.collection.protocol import parse_collection_json
    from discreet.files.documents import compute_digest
    from discreet.server.intake import compute_longest_value

    survey_table = sql.table(
        "survey", sql.column("number"), sql.column("document"), sql.column("longest")
    )
    longest_by_survey = {}
    for survey_number, document in connection.execute(
        sql.select(survey_table.c.number, survey_table.c.document)
    ).all():
        sealed_document = {**json.loads(bytes(document)), "digest": compute_digest(bytes(document))}
        longest_by_survey[survey_number] = compute_longest_value(
            parse_collection_json(json.dumps(sealed_document))
        )
        update_statement = sql.update(survey_table).where(survey_table.c.number == survey_number)
        connection.execute(update_statement.values(longest=longest_by_survey[survey_number]))
    return longest_by_survey


def _seal_arrivals(
    connection: sql.Connection, arrival_rows: Any, longest_by_survey: dict[int, int]
) -> None:
    from discreet.server.intake import ReportRow
    from discreet.server.sealed_arrivals import Arrival, insert_arrivals

    for survey_number, longest_bytes in longest_by_survey.items():
        waiting = [
            Arrival(ReportRow(bytes(report_id), question, bytes(value)))
            for row_survey, report_id, question, value in arrival_rows
            if row_survey == survey_number
        ]
        insert_arrivals(connection, survey_number, longest_bytes, waiting)


def downgrade() -> None:
    """Open the arrivals again."""
    from discreet.server.sealed_arrivals import load_live_keys, open_arrivals

    connection = op.get_bind()
    stored_rows = connection.execute(sql.text("SELECT * FROM arrival")).all()
    survey_numbers = {row.survey for row in stored_rows}
    keys = {
        key_number: key
        for survey_number in survey_numbers
        for key_number, key in load_live_keys(connection, survey_number).items()
    }
    survey_arrivals = list(
        zip((row.survey for row in stored_rows), open_arrivals(stored_rows, keys), strict=True)
    )
    op.drop_table("arrival")
    op.drop_table("batch_key")
    op.drop_column("survey", "longest")
    op.create_table(
        "arrival",
        _make_survey_column(),
        sql.Column("id", sql.LargeBinary, primary_key=True),
        sql.Column("question", sql.BigInteger, nullable=False),
        sql.Column("value", sql.LargeBinary, nullable=False),
        **WITHOUT_ROWID,
    )
    op.execute("UPDATE invitation SET spent = 2 WHERE spent > 0")
    is_newly_spent = sql.text("spent = 1")
    index_columns = ["survey", "hash"]
    op.create_index(
        "invitation_fresh",
        "invitation",
        index_columns,
        sqlite_where=is_newly_spent,
        postgresql_where=is_newly_spent,
    )
    _restore_arrivals(connection, survey_arrivals)


def _restore_arrivals(connection: sql.Connection, survey_arrivals: Any) -> None:
    column_names = ("survey", "id", "question", "value")
    arrival_table = sql.table("arrival", *map(sql.column, column_names))
    withdrawn_table = sql.table("withdrawn", sql.column("survey"), sql.column("id"))
    invitation_table = sql.table("invitation", *map(sql.column, ("survey", "hash", "spent")))
    for survey_number, opened in sorted(survey_arrivals, key=lambda pair: pair[1].arrival.row.id):
        row = opened.arrival.row
        if opened.live:
            values = dict(zip(column_names, (survey_number, *row), strict=True))
            connection.execute(sql.insert(arrival_table).values(**values))
        else:
            connection.execute(sql.insert(withdrawn_table).values(survey=survey_number, id=row.id))
        if opened.arrival.code is not None:
            invitation_columns = invitation_table.c
            spend_statement = sql.update(invitation_table).where(
                invitation_columns.survey == survey_number
            )
            connection.execute(
                spend_statement.where(invitation_columns.hash == opened.arrival.code).values(
                    spent=1
                )
            )
