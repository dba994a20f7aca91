"""Run by Alembic; the connection comes from :func:`discreet.server.migrations.migrate`."""

from __future__ import annotations

from alembic import context

from discreet.server.database import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
