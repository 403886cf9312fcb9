"""Alembic environment: runs the migrations on the given connection, inside its transaction."""

from alembic import context

from centgate.payments.database.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
