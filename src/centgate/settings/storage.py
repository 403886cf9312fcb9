"""Settings of the databases: the journal of payments, and the cache that servers share."""

from __future__ import annotations

from pydantic import Field

from centgate.settings.fields import SettingsGroup


class StorageSettings(SettingsGroup):
    """The journal and the shared cache."""

    database_url: str = Field(
        default="sqlite:///centgate.db",
        pattern=r"^(sqlite:///.+|postgres(ql)?://.+)",
        repr=False,
        description="The payment journal: sqlite:///relative/path or sqlite:////absolute/path for one "
        "machine, postgresql://user:password@host/database for several.",
    )
    database_connections: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Maximum number of connections to PostgreSQL for payments, per server process; reads "
        "open a few more.",
    )
    database_prepared_statements: bool | None = Field(
        default=None,
        description="True if a pooler in front of PostgreSQL keeps prepared statements (PgBouncer from 1.21 "
        "with `max_prepared_statements`, or pooling by session): a statement then takes one round trip, "
        "not two. Default: statements are prepared, but not behind a pooler.",
    )
    cache_url: str | None = Field(
        default=None,
        pattern=r"^(rediss?|unix)://.+",
        repr=False,
        description="A Redis or Valkey that several servers share: redis://user:password@host:6379/0. It "
        "holds cached answers, leases on work in progress and the rate limits of upstreams; without it, or "
        "while it is down, each server has its own.",
    )
