"""Tokens of collectors, and what was done with them."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0002"
down_revision = "0001"

WITHOUT_ROWID = {"sqlite_with_rowid": False}


def upgrade() -> None:
    """Create the tables of access control."""
    op.create_table(
        "token",
        sql.Column("hash", sql.LargeBinary, primary_key=True),
        sql.Column("kind", sql.Text, nullable=False),
        sql.Column("role", sql.Text, nullable=False),
        sql.Column("label", sql.Text, nullable=False),
        sql.Column("made", sql.Text, nullable=False),
        sql.Column("expires", sql.Text),
        **WITHOUT_ROWID,
    )
    op.create_table(
        "action",
        sql.Column("day", sql.Text, primary_key=True),
        sql.Column("label", sql.Text, primary_key=True),
        sql.Column("what", sql.Text, primary_key=True),
        sql.Column("times", sql.BigInteger, nullable=False),
        **WITHOUT_ROWID,
    )


def downgrade() -> None:
    """Remove them; surveys and reports stay."""
    op.drop_table("action")
    op.drop_table("token")
