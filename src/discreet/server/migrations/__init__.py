"""Alembic migrations of the tables, with their content, between versions of the program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import FormatError

if TYPE_CHECKING:
    from discreet.server.database import Database

__all__ = ["config_of", "migrate"]

FOLDER = Path(__file__).parent


def config_of(connection: Any) -> Any:
    """Make Alembic's settings for an open connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def migrate(database: Database, revision: str = "head") -> None:
    """Upgrade or downgrade to a revision, in one transaction."""
    from alembic import command
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from alembic.util.exc import CommandError

    from discreet.server.database import exclusive

    with database.write() as connection:
        exclusive(connection, -1)  # one server at a time changes tables
        config = config_of(connection)
        scripts = ScriptDirectory.from_config(config)
        known = [one.revision for one in scripts.walk_revisions()][::-1]
        now = MigrationContext.configure(connection).get_current_revision()
        if now is not None and now not in known:
            raise FormatError(
                f"{database.place}: its tables have version {now}, which this program does not "
                "know; a newer discreet made them. Update discreet"
            )
        target = known[-1] if revision == "head" else revision
        if target != "base" and target not in known:
            raise FormatError(f"there is no version {revision!r} of the tables; {', '.join(known)}")
        if target == now:
            return
        down = now is not None and (target == "base" or known.index(target) < known.index(now))
        try:
            (command.downgrade if down else command.upgrade)(config, target)
        except CommandError as error:
            raise FormatError(f"{database.place}: {error}") from None
