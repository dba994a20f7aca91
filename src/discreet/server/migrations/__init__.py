"""Alembic migrations of the tables, with their content, between versions of the program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import FormatError

if TYPE_CHECKING:
    from discreet.server.database import Database

__all__ = ["make_config", "migrate"]

MIGRATIONS_FOLDER = Path(__file__).parent


def make_config(connection: Any) -> Any:
    """Make Alembic's settings for an open connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def migrate(database: Database, revision: str = "head") -> None:
    """Upgrade or downgrade to a revision, in one transaction."""
    from alembic import command
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from alembic.util.exc import CommandError

    from discreet.server.database import lock_survey

    with database.write() as connection:
        lock_survey(connection, -1)  # one server at a time changes tables
        config = make_config(connection)
        scripts = ScriptDirectory.from_config(config)
        known_revisions = [script.revision for script in scripts.walk_revisions()][::-1]
        current_revision = MigrationContext.configure(connection).get_current_revision()
        if current_revision is not None and current_revision not in known_revisions:
            raise FormatError(
                f"{database.location}: its tables have version {current_revision}, which this "
                "program does not know; a newer discreet made them. Update discreet"
            )
        target_revision = known_revisions[-1] if revision == "head" else revision
        if target_revision != "base" and target_revision not in known_revisions:
            raise FormatError(
                f"there is no version {revision!r} of the tables; {', '.join(known_revisions)}"
            )
        if target_revision == current_revision:
            return
        is_downgrade = current_revision is not None and (
            target_revision == "base"
            or known_revisions.index(target_revision) < known_revisions.index(current_revision)
        )
        try:
            (command.downgrade if is_downgrade else command.upgrade)(config, target_revision)
        except CommandError as error:
            raise FormatError(f"{database.location}: {error}") from None
