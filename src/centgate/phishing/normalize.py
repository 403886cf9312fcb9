"""Select the usable entries of a published list and normalise their spelling."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, Literal

from ada_url import URL
from msgspec import Struct

from centgate.phishing.path_rules import PathTree, split_host_and_path
from centgate.phishing.rules import CID
from centgate.phishing.url import InvalidAddress, add_scheme, parse_address

Reason = Literal[
    "unreadable", "port", "path", "wildcard", "single label", "hosting platform", "too short", "repeated"
]

CANONICAL: Final = re.compile(r"(?:[a-z0-9_-]+\.)+[a-z_-][a-z0-9_-]*", re.ASCII)

# Anyone may open a site below these: an entry for such a host would apply to every site on it.
PLATFORMS: Final = frozenset(
    """
    000webhostapp.com appspot.com azurestaticapps.net azurewebsites.net blogspot.com bubbleapps.io carrd.co
    cloudfront.net ddns.net digitaloceanspaces.com duckdns.org eth.limo eth.link firebaseapp.com fly.dev
    framer.app framer.website gitbook.io github.io gitlab.io glitch.me godaddysites.com herokuapp.com
    mypinata.cloud myshopify.com netlify.app ngrok-free.app ngrok.io notion.site ondigitalocean.app
    onrender.com pages.dev r2.dev repl.co replit.app run.app s3.amazonaws.com softr.app square.site
    strikingly.com surge.sh trycloudflare.com tumblr.com vercel.app web.app webflow.io weebly.com wixsite.com
    wordpress.com workers.dev
    """.split()  # noqa: SIM905 - one name a line would fill two pages
)
# On these hosts the path identifies the author, so only a path may be blocked.
SHARED_HOSTS: Final = frozenset(
    """
    arweave.mainnet.irys.xyz arweave.net cdpn.io cf-ipfs.com cloudflare-ipfs.com docs.google.com dweb.link
    github.com google.com ipfs.io irys.xyz medium.com script.google.com sites.google.com t.me twitter.com
    uploader.irys.xyz x.com
    """.split()  # noqa: SIM905 - one name a line would fill two pages
)


class DroppedEntry(Struct, frozen=True):
    """An entry that was not accepted."""

    entry: str
    reason: Reason


class InvalidEntry(Exception):
    """The entry cannot be used as a name."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


def has_path(entry: str) -> bool:
    """True for an entry of a blocklist that is `host/path`, and blocks only that path."""
    return "/" in entry and bool(split_host_and_path(entry)[1])


class EntryNormalizer:
    """Normalises entries, one list at a time, and records the dropped ones."""

    def __init__(self, *, single_labels: Collection[str]) -> None:
        self.single_labels = frozenset(single_labels)
        """Single labels that are known not to be top-level domains."""
        self.paths = PathTree()
        self.dropped: list[DroppedEntry] = []

    def normalize_allowlist(self, entries: Iterable[str]) -> tuple[str, ...]:
        """Return the names of an allowlist."""
        return self.normalize_names(entries, excluded=PLATFORMS)

    def normalize_blocklist(self, entries: Iterable[str]) -> tuple[str, ...]:
        """Return the names of a blocklist. An entry with a path becomes a blocked path."""
        hosts: list[str] = []
        for entry in entries:
            if has_path(entry):
                self.paths.add(entry)
            else:
                hosts.append(entry)
        return self.normalize_names(hosts, excluded=PLATFORMS | SHARED_HOSTS)

    def normalize_fuzzylist(self, entries: Iterable[str], tolerance: int) -> tuple[str, ...]:
        """Return the names of a fuzzylist. Short ones are dropped, because they resemble half of the web."""
        names = self.normalize_names(entries, excluded=frozenset())
        short = [name for name in names if len(name.rpartition(".")[0]) < tolerance + 3]
        self.dropped += [DroppedEntry(name, "too short") for name in short]
        return tuple(name for name in names if name not in short)

    def add_blocked_paths(self, entries: Iterable[str]) -> None:
        """Add paths written `host/path` to `paths`."""
        for entry in entries:
            if split_host_and_path(entry)[1]:
                self.paths.add(entry)
            else:
                self.dropped.append(DroppedEntry(entry, "unreadable"))

    def normalize_names(self, entries: Iterable[str], *, excluded: frozenset[str]) -> tuple[str, ...]:
        names_in_order: dict[str, None] = {}
        for entry in entries:
            try:
                name = (
                    entry
                    if CANONICAL.fullmatch(entry) and "xn--" not in entry
                    else self.normalize_entry(entry)
                )
                if name in excluded:
                    raise InvalidEntry("hosting platform")
                if name in names_in_order:
                    raise InvalidEntry("repeated")
            except InvalidEntry as invalid:
                self.dropped.append(DroppedEntry(entry, invalid.reason))
            else:
                names_in_order[name] = None
        return tuple(names_in_order)

    def normalize_entry(self, entry: str) -> str:
        if CID.fullmatch(entry):
            return entry
        if "*" in entry:
            raise InvalidEntry("wildcard")
        try:
            address = parse_address(entry)
        except InvalidAddress:
            raise InvalidEntry("unreadable") from None
        url = URL(add_scheme(entry))
        if url.port:
            raise InvalidEntry("port")
        if url.pathname != "/" or url.search or url.hash:
            raise InvalidEntry("path")
        is_single_label = "." not in address.domain and not address.domain.startswith("[")
        if is_single_label and address.domain not in self.single_labels:
            raise InvalidEntry("single label")
        return address.domain
