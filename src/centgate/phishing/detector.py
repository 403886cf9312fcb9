"""Check addresses against phishing lists, with the same verdicts as MetaMask's phishing detector.

The order of the checks is part of the contract: content identifiers, blocked paths, every allowlist, then for
each list its blocklist and its lookalikes. No list is scanned: a domain has few parents, and each is looked
up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from centgate.phishing.lookalikes import LookalikeIndex, strip_last_label
from centgate.phishing.rules import CID, PhishingRules
from centgate.phishing.url import WebAddress

PhishingStatus = Literal["allowed", "blocked", "lookalike", "unknown"]
MatchedList = Literal["allowlist", "blocklist", "fuzzylist"]

SHORTEST_CID: Final = 46
LONGEST_NAME: Final = 253  # characters, in the domain name system
UNRANKED: Final = 1 << 62
NAMES_PER_PART: Final = 5000
"""Number of names that are indexed in one call, which takes less than a millisecond."""


class PhishingVerdict(NamedTuple):
    """Result of checking a domain. `unknown` means that it is on no list, not that it is safe."""

    domain: str
    status: PhishingStatus = "unknown"
    matched_list: MatchedList | None = None
    match: str | None = None
    """The entry, blocked path, content identifier or imitated name that matched."""
    rules: PhishingRules | None = None
    """The list that matched."""


class Stage(NamedTuple):
    """The checks of one list after the allowlists: entries ranked below `end`, then lookalikes."""

    end: int
    lookalikes: LookalikeIndex
    rules: PhishingRules


class PhishingDetector:
    """Checks addresses against several lists; the first list with a match decides."""

    def __init__(self, *lists: PhishingRules) -> None:
        self.lists = lists
        self.allowed = sum(len(rules.allowlist) for rules in lists)
        self.rank = rank_names([rules.allowlist for rules in lists] + [rules.blocklist for rules in lists])
        self.deepest = max((name.count(".") for name in self.rank), default=0)
        self.stages = tuple(build_stages(lists, self.allowed))
        self.cids = {cid: rules for rules in reversed(lists) for cid in rules.blocklist if CID.fullmatch(cid)}
        self.with_paths = tuple(rules for rules in lists if rules.paths)

    def check(self, address: WebAddress) -> PhishingVerdict:
        """Return the verdict of the first check that matches."""
        if self.cids and len(address.text) >= SHORTEST_CID:
            # the identifier may be in the path or in the host; only the first one counts
            cid = CID.search(address.text)
            if cid and (rules := self.cids.get(cid[0])):
                return PhishingVerdict(address.domain, "blocked", "blocklist", cid[0], rules)
        for rules in self.with_paths:
            if path := rules.paths.match(address):
                return PhishingVerdict(address.domain, "blocked", "blocklist", path, rules)
        return self.check_domain(address.domain)

    def check_domain(self, domain: str) -> PhishingVerdict:
        """Return the verdict on a canonical host without its trailing dot."""
        rank, entry = self.find_best_entry(domain)
        if rank < self.allowed:
            return PhishingVerdict(domain, "allowed", "allowlist", entry, self.allowlist_at(rank))
        for end, lookalikes, rules in self.stages:
            if rank < end:
                return PhishingVerdict(domain, "blocked", "blocklist", entry, rules)
            imitated = lookalikes.find_imitated(domain)
            if imitated is not None:
                return PhishingVerdict(domain, "lookalike", "fuzzylist", imitated, rules)
        return PhishingVerdict(domain)

    def find_best_entry(self, domain: str) -> tuple[int, str | None]:
        """Return the best-ranked entry among the domain and its parents, with its rank."""
        # a hostile address may have a thousand labels, but no entry has so many
        suffix = domain if len(domain) <= LONGEST_NAME else last_labels(domain, self.deepest)
        rank = self.rank
        best, entry, dot = UNRANKED, None, "."
        while dot:
            if suffix in rank and rank[suffix] < best:
                best, entry = rank[suffix], suffix
            _, dot, suffix = suffix.partition(".")
        return best, entry

    def allowlist_at(self, rank: int) -> PhishingRules:
        for rules in self.lists:
            rank -= len(rules.allowlist)
            if rank < 0:
                return rules
        raise IndexError(rank)


def rank_names(lists: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the rank of each name in all lists together; the first rank if a name is repeated."""
    rank: dict[str, int] = {}
    end = sum(map(len, lists))
    for names in reversed(lists):
        start = end - len(names)
        # in parts, since one call holds the interpreter's lock and a list is reloaded beside requests
        for last in range(end, start, -NAMES_PER_PART):
            first = max(start, last - NAMES_PER_PART)
            part = names[first - start : last - start]
            rank.update(zip(reversed(part), range(last - 1, first - 1, -1), strict=True))
        end = start
    return rank


def build_stages(lists: Sequence[PhishingRules], end: int) -> Iterator[Stage]:
    for rules in lists:
        end += len(rules.blocklist)
        forms = [(strip_last_label(name), name) for name in rules.fuzzylist]
        yield Stage(end, LookalikeIndex(forms, rules.tolerance), rules)


def last_labels(domain: str, dots: int) -> str:
    return ".".join(domain.rsplit(".", dots + 1)[1:])
