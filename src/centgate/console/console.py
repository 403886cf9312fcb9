"""State of the console: settings, journal, sessions, limits on logins, and how its pages are rendered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from typing import TypeVar

from msgspec import Struct, field
from starlette.requests import Request

from centgate.catalog import all_services
from centgate.client_address import ClientAddressReader
from centgate.client_limits import TokenBuckets
from centgate.console.provider_metrics import MetricsHistory
from centgate.console.sessions import OneTimeLink, SessionStore, VisitorTokens
from centgate.findings import CheckResult
from centgate.payments.database.store import Store, UnitFactory
from centgate.payments.journal.descriptions import ViewSettings, create_view
from centgate.payments.journal.process_queries import read_time
from centgate.payments.journal.read_model import LimitedReader
from centgate.payments.reports.console_actions import ConsoleActionName, record_console_action
from centgate.settings import Settings

T = TypeVar("T")

LOGINS_PER_MINUTE = 5
"""Failed logins per minute from one address."""
ALL_LOGINS_PER_MINUTE = 60
"""Failed logins per minute from all addresses together."""
CONCURRENT_READS = 2
"""Reads of the journal at a time, so that a console with many tabs does not load the database."""


class DoctorReport(Struct, frozen=True):
    """Results of all checks, and the time at which they were made, in seconds since 1970."""

    at: float
    results: Sequence[CheckResult]


RunChecks = Callable[[], Awaitable[Sequence[CheckResult]]]
"""Runs the doctor's checks. They are declared above this package, which therefore gets them passed in."""


class Console(Struct, dict=True):
    """Everything that the console's pages need; it lives as long as its process."""

    settings: Settings
    store: Store
    run_checks: RunChecks
    print_line: Callable[[str], None]
    """Prints a line for the operator: the one-time link."""
    base_url: str
    """URL of the console for its operator."""
    metrics: MetricsHistory
    clock: Callable[[], float] = time.monotonic
    report: DoctorReport | None = None
    """The last findings of the doctor's checks; None until they were run."""
    checks_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    reconcile_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    password_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Allows one hash of a password at a time: each needs 32 MB."""

    def __post_init__(self) -> None:
        self.sessions = SessionStore(self.clock)
        self.visitors = VisitorTokens()
        self.clients = ClientAddressReader(self.settings.trusted_proxies)
        each, together = LOGINS_PER_MINUTE, ALL_LOGINS_PER_MINUTE
        self.failed_logins = TokenBuckets[str](each, each, max_keys=10_000, clock=self.clock)
        self.all_failed_logins = TokenBuckets[str](together, together, clock=self.clock)
        self.link = OneTimeLink(self.clock)
        self._reader = LimitedReader(self.store, CONCURRENT_READS)

    @cached_property
    def routes(self) -> dict[str, str]:
        """Paths by service slug."""
        return {service.slug: service.path for service in all_services()}

    @property
    def password_hash(self) -> str | None:
        """Hash of the password, None if logins are by one-time link only."""
        value = self.settings.console_password_hash
        return value.get_secret_value() if value else None

    @property
    def is_encrypted(self) -> bool:
        """True if browsers reach the console by https."""
        return self.base_url.startswith("https:")

    def print_link(self) -> None:
        """Print the one-time link; if it was used or has expired, a new one replaces it."""
        if not self.link.is_valid:
            self.link = OneTimeLink(self.clock)
        self.print_line(f"console {self.base_url}/login?token={self.link.token}")

    async def read(self, unit: UnitFactory[T]) -> T:
        """Run a read-only unit on the journal. Raises JournalUnavailable."""
        return await self._reader.read(unit)

    async def open_view(self) -> ViewSettings:
        """Return how payments are described now, by the database's clock."""
        now = await self.read(read_time) or time.time()
        return create_view(self.settings, now, self.routes)

    async def record_action(
        self, action: ConsoleActionName, request: Request, result: str, *, subject: str | None = None
    ) -> None:
        """Append an action, with the address that it came from, to the log. Raises JournalUnavailable."""
        client = self.clients.read_client_key(request.scope)
        await self.store.run(partial(record_console_action, action, client, result, subject=subject))
