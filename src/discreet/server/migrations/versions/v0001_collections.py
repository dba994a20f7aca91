"""Surveys, their reports, invitations and tallies."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None

WITHOUT_ROWID = {"sqlite_with_rowid": False}


def upgrade() -> None:
    """Create the tables of surveys."""
    op.create_table(
        "survey",
        sql.Column("number", sql.Integer, primary_key=True),
        sql.Column("slug", sql.Text, nullable=False, unique=True),
        sql.Column("document", sql.LargeBinary, nullable=False),
        sql.Column("announcement", sql.Text, nullable=False),
        sql.Column("state", sql.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    for table_name in ("arrival", "report"):
        op.create_table(
            table_name,
            sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
            sql.Column("id", sql.LargeBinary, primary_key=True),
            sql.Column("question", sql.BigInteger, nullable=False),
            sql.Column("value", sql.LargeBinary, nullable=False),
            **WITHOUT_ROWID,
        )
    op.create_table(
        "withdrawn",
        sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
        sql.Column("id", sql.LargeBinary, primary_key=True),
        **WITHOUT_ROWID,
    )
    op.create_table(
        "invitation",
        sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
        sql.Column("hash", sql.LargeBinary, primary_key=True),
        sql.Column("spent", sql.BigInteger, nullable=False),
        **WITHOUT_ROWID,
    )
    is_newly_spent = sql.text("spent = 1")
    op.create_index(
        "invitation_fresh",
        "invitation",
        ["survey", "hash"],
        sqlite_where=is_newly_spent,
        postgresql_where=is_newly_spent,
    )
    op.create_table(
        "tally",
        sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
        sql.Column("version", sql.BigInteger, nullable=False),
        sql.Column("counted", sql.LargeBinary, nullable=False),
        sql.Column("sums", sql.LargeBinary, nullable=False),
        sql.Column("settled", sql.BigInteger, nullable=False),
        sql.Column("repeated", sql.BigInteger, nullable=False),
        sql.Column("withdrawn", sql.BigInteger, nullable=False),
        **WITHOUT_ROWID,
    )
    op.create_table(
        "sheet",
        sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
        sql.Column("question", sql.BigInteger, primary_key=True, autoincrement=False),
        sql.Column("value", sql.LargeBinary, primary_key=True),
        sql.Column("times", sql.BigInteger, nullable=False),
        **WITHOUT_ROWID,
    )
    op.create_table(
        "refusal",
        sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
        sql.Column("kind", sql.Text, primary_key=True),
        sql.Column("times", sql.BigInteger, nullable=False),
        **WITHOUT_ROWID,
    )


def downgrade() -> None:
    """Remove everything."""
    table_names = (
        "refusal",
        "sheet",
        "tally",
        "invitation",
        "withdrawn",
        "report",
        "arrival",
        "survey",
    )
    for table_name in table_names:
        op.drop_table(table_name)
