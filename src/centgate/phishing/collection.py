"""Several phishing lists together: one verdict, and what each list says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Literal, NamedTuple

from msgspec import Struct

from centgate.phishing.detector import MatchedList, PhishingDetector, PhishingStatus, PhishingVerdict
from centgate.phishing.homograph import HomographIndex
from centgate.phishing.published import ListName
from centgate.phishing.rules import WELL_KNOWN_NAMES, PhishingRules
from centgate.phishing.snapshot import SHIPPED_LICENCE, Snapshot, SnapshotHeader
from centgate.phishing.url import WebAddress

PhishingRisk = Literal["high", "medium", "low", "unknown"]


class ListVerdict(NamedTuple):
    """Verdict of one list on an address."""

    loaded: LoadedList
    verdict: PhishingVerdict


class CollectionVerdict(NamedTuple):
    """The verdict of all lists."""

    domain: str
    status: PhishingStatus
    matched_list: MatchedList | None
    match: str | None
    homograph_of: str | None
    risk: PhishingRisk
    by_list: Sequence[ListVerdict]


class LoadedList(Struct, frozen=True):
    """A list in memory, with its provenance."""

    name: ListName
    header: SnapshotHeader
    detector: PhishingDetector
    is_shipped: bool = False

    @property
    def licence(self) -> str | None:
        return self.header.licence or (SHIPPED_LICENCE if self.is_shipped else None)

    def age_days(self) -> int | None:
        """Return the age of the list in days; None without a date. A date in the future counts as today."""
        day = self.header.date
        return max(0, (datetime.now(UTC).date() - date.fromisoformat(day[:10])).days) if day else None


def load_list(name: ListName, snapshot: Snapshot, *, is_shipped: bool = False) -> LoadedList:
    """Index a list for checks."""
    return LoadedList(name, snapshot.header, PhishingDetector(snapshot.rules), is_shipped)


class ListCollection:
    """Lists in the order in which they are consulted; the first one leads.

    The lead's allowlist decides first, as in MetaMask's detector, so that no other list can block a site
    that the lead vouches for. Then a block by any list decides, then a lookalike, and last the allowlist of
    another list, which therefore cannot hide what the lead blocks.
    """

    def __init__(self, lists: Sequence[LoadedList], protected: PhishingRules | None = None) -> None:
        """`protected` are rules whose allowlist and fuzzylist also count as worth imitating.

        So do the best-known names, some of which no list allows.
        """
        self.lists = tuple(lists)
        self._protected = protected

    def check(self, address: WebAddress) -> CollectionVerdict:
        """Return the verdict of all lists, and that of each."""
        by_list = [ListVerdict(loaded, loaded.detector.check(address)) for loaded in self.lists]
        verdict = self._combine([each.verdict for each in by_list])
        imitated = self._find_homograph(address) if verdict.status != "allowed" else None
        return CollectionVerdict(
            verdict.domain,
            verdict.status,
            verdict.matched_list,
            verdict.match,
            imitated,
            rate_risk(verdict.status, imitated),
            by_list,
        )

    def _combine(self, verdicts: Sequence[PhishingVerdict]) -> PhishingVerdict:
        lead = verdicts[0]
        if lead.status in ("allowed", "blocked"):
            return lead
        for status in ("blocked", "lookalike", "allowed"):
            for verdict in verdicts:
                if verdict.status == status:
                    return verdict
        return lead

    def _find_homograph(self, address: WebAddress) -> str | None:
        if "xn--" not in address.host:
            return None
        return self._homograph_index.find_imitated(address.unicode_domain)

    @cached_property
    def _homograph_index(self) -> HomographIndex:
        rules = [each for loaded in self.lists for each in loaded.detector.lists]
        others = [self._protected] if self._protected else []
        return HomographIndex([*rules, *others, PhishingRules(WELL_KNOWN_NAMES)])


def rate_risk(status: PhishingStatus, homograph_of: str | None) -> PhishingRisk:
    """Return the risk of visiting an address; `unknown` is never a sign of safety."""
    if status == "allowed":
        return "low"
    if status == "blocked" or homograph_of:
        return "high"
    return "medium" if status == "lookalike" else "unknown"
