"""The phishing list mirrored in the server: the one in the package, or one the operator imported."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from centgate.phishing.address import WebAddress
from centgate.phishing.detector import Detector, Verdict
from centgate.phishing.snapshot import load, shipped
from centgate.provider import About, Provider
from centgate.settings import Settings

if TYPE_CHECKING:
    from centgate.resources import Resources

STALE_DAYS = 30
"""Days after which a list is said to be old: wallets refresh theirs as often."""


class PhishingList(Provider):
    """A list of known phishing domains, known good ones, and names that are imitated. No network."""

    about = About(
        "phishinglist",
        "eth-phishing-detect (local snapshot)",
        docs_url="https://github.com/MetaMask/eth-phishing-detect",
        terms="The data has a licence of its own (DBAD), which stands beside it; answers are "
        "verdicts, not the list.",
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        snapshot = load(settings.phishing_list) if settings.phishing_list else shipped()
        self._header = snapshot.header
        self._detector = Detector(snapshot.rules)

    def verdict(self, address: WebAddress) -> Verdict:
        """What the list knows of an address; warns of an old list and of imitating characters."""
        self.report("ok", list=self._header.source, version=self._header.version, date=self._header.date)
        if (age := self._age()) is None or age > STALE_DAYS:
            of = f"of {self._header.date}, {age} days old" if age is not None else "without a date"
            self.record.warn(
                f"the phishing list is {of}: sites that appeared since are not on it, so `unknown` "
                "says little"
            )
        if imitated := self._detector.homograph(address):
            self.record.warn(
                f"{address.unicode_domain} ({address.domain}) is written with characters that make it read "
                f"like {imitated}"
            )
        return self._detector.check(address)

    def _age(self) -> int | None:
        """Days since the list was made."""
        made = self._header.date
        return (datetime.now(UTC).date() - date.fromisoformat(made[:10])).days if made else None
