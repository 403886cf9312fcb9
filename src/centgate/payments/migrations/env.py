"""What alembic runs: the migrations, on the connection it is given, inside that connection's transaction."""

from alembic import context

from centgate.payments.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
