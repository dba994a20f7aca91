"""Surveys, their reports, invitations and tallies."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None

KEYED = {"sqlite_with_rowid": False}


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
    for name in ("arrival", "report"):
        op.create_table(
            name,
            sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
            sql.Column("id", sql.LargeBinary, primary_key=True),
            sql.Column("question", sql.BigInteger, nullable=False),
            sql.Column("value", sql.LargeBinary, nullable=False),
            **KEYED,
        )
    op.create_table(
        "withdrawn",
        sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
        sql.Column("id", sql.LargeBinary, primary_key=True),
        **KEYED,
    )
    op.create_table(
        "invitation",
        sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
        sql.Column("hash", sql.LargeBinary, primary_key=True),
        sql.Column("spent", sql.BigInteger, nullable=False),
        **KEYED,
    )
    fresh = sql.text("spent = 1")
    op.create_index(
        "invitation_fresh",
        "invitation",
        ["survey", "hash"],
        sqlite_where=fresh,
        postgresql_where=fresh,
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
        **KEYED,
    )
    op.create_table(
        "sheet",
        sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
        sql.Column("question", sql.BigInteger, primary_key=True, autoincrement=False),
        sql.Column("value", sql.LargeBinary, primary_key=True),
        sql.Column("times", sql.BigInteger, nullable=False),
        **KEYED,
    )
    op.create_table(
        "refusal",
        sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
        sql.Column("kind", sql.Text, primary_key=True),
        sql.Column("times", sql.BigInteger, nullable=False),
        **KEYED,
    )


def downgrade() -> None:
    """Remove everything."""
    tables = ("refusal", "sheet", "tally", "invitation", "withdrawn", "report", "arrival", "survey")
    for name in tables:
        op.drop_table(name)
