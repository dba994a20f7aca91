"""Deleted surveys are erased from the files, and the planner of PostgreSQL keeps no values."""

from __future__ import annotations

import sqlalchemy as sql
from alembic import op

revision = "0004"
down_revision = "0003"

SURVEY_COLUMNS = {
    "arrival": {"mark": "bytea", "code": "bytea", "batch": "int8", "live": "int8", "body": "bytea"},
    "report": {"id": "bytea", "question": "int8", "value": "bytea"},
    "withdrawn": {"id": "bytea"},
    "invitation": {"hash": "bytea", "spent": "int8"},
    "tally": {
        "version": "int8",
        "counted": "bytea",
        "sums": "bytea",
        "settled": "int8",
        "repeated": "int8",
        "withdrawn": "int8",
    },
    "sheet": {"question": "int8", "value": "bytea", "times": "int8"},
    "refusal": {"kind": "text", "times": "int8"},
}
"""What ANALYZE would sample into ``pg_statistic``, where it outlives its survey."""

EVER_HAD_SURVEY_QUERIES = {
    "sqlite": "SELECT count(*) FROM sqlite_sequence WHERE name = 'survey'",
    "postgresql": "SELECT is_called::int FROM survey_number_seq",
}


def upgrade() -> None:
    """Erase what earlier deletions have left, at the next start."""
    connection = op.get_bind()
    op.create_table(
        "erasure",
        sql.Column("survey", sql.Integer, primary_key=True, autoincrement=False),
        sqlite_with_rowid=False,
    )
    dialect_name = connection.dialect.name
    if connection.exec_driver_sql(EVER_HAD_SURVEY_QUERIES[dialect_name]).scalar():
        op.execute("INSERT INTO erasure VALUES (0)")  # 0 is no survey
    if dialect_name == "postgresql":
        _set_statistics(0)


def _set_statistics(target: int) -> None:
    for table_name, column_types in SURVEY_COLUMNS.items():
        alterations = [
            f"ALTER COLUMN {column_name} SET STATISTICS {target}" for column_name in column_types
        ]
        # the same type once more: it removes the statistics that are there, and rewrites nothing
        alterations += [
            f"ALTER COLUMN {column_name} TYPE {type_name}"
            for column_name, type_name in column_types.items()
        ]
        op.execute(f"ALTER TABLE {table_name} {', '.join(alterations)}")


def downgrade() -> None:
    """Back to deletions that leave their bytes."""
    op.drop_table("erasure")
    if op.get_bind().dialect.name == "postgresql":
        _set_statistics(-1)
