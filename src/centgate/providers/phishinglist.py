"""Local phishing list: the one in the package, or one imported by the operator."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING

from centgate.phishing.detector import PhishingDetector, PhishingVerdict
from centgate.phishing.snapshot import Snapshot, SnapshotHeader, load_shipped, load_snapshot
from centgate.phishing.url import WebAddress
from centgate.provider import Provider, ProviderInfo
from centgate.settings import Settings

if TYPE_CHECKING:
    from centgate.resources import Resources

STALE_DAYS = 30
"""Days after which a list is reported as old; wallets refresh theirs as often."""


class PhishingList(Provider):
    """List of known phishing domains, known good ones, and names that are imitated. No network."""

    info = ProviderInfo(
        "phishinglist",
        "eth-phishing-detect (local snapshot)",
        docs_url="https://github.com/MetaMask/eth-phishing-detect",
        resale="permitted",
        terms="The data has a licence of its own (DBAD), which stands beside it; answers are "
        "verdicts, not the list.",
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        imported = settings.phishing_list
        self._header, self._detector = _open_list(load_snapshot(imported)) if imported else _open_shipped()

    def check_address(self, address: WebAddress) -> PhishingVerdict:
        """Check an address against the list; warn of an old list and of lookalike characters."""
        self.record_status(
            "ok", list=self._header.source, version=self._header.version, date=self._header.date
        )
        if (age := self._age_days()) is None or age > STALE_DAYS:
            age_text = f"is {age:,} days old" if age is not None else "has no date"
            self.trace.add_warning(
                f"the phishing list {age_text}; newer phishing sites are missing, "
                "so `unknown` is weak evidence"
            )
        if imitated := self._detector.find_homograph(address):
            self.trace.add_warning(
                f"{address.unicode_domain} ({address.domain}) contains lookalike characters "
                f"that imitate {imitated}"
            )
        return self._detector.check(address)

    def _age_days(self) -> int | None:
        """Return the age of the list in days; None without a date."""
        date_text = self._header.date
        return (datetime.now(UTC).date() - date.fromisoformat(date_text[:10])).days if date_text else None


def _open_list(snapshot: Snapshot) -> tuple[SnapshotHeader, PhishingDetector]:
    return snapshot.header, PhishingDetector(snapshot.rules)


@cache
def _open_shipped() -> tuple[SnapshotHeader, PhishingDetector]:
    """Open the shipped list once: it takes longer to unpack than everything else at the start."""
    return _open_list(load_shipped())
