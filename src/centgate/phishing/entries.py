"""Which entries of a published list are taken, and in which spelling."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from ada_url import URL

from centgate.phishing.address import UnreadableAddress, read_address, with_scheme
from centgate.phishing.paths import PathTree, host_and_components
from centgate.phishing.rules import CID

Reason = Literal[
    "unreadable", "port", "path", "wildcard", "single label", "hosting platform", "too short", "repeated"
]

CANONICAL: Final = re.compile(r"(?:[a-z0-9_-]+\.)+[a-z_-][a-z0-9_-]*", re.ASCII)

# Anyone may open a site below these: an entry for such a host would speak of every site on it.
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
# Here it is the path that tells one author from another, so only a path may be blocked.
SHARED_HOSTS: Final = frozenset(
    """
    arweave.mainnet.irys.xyz arweave.net cdpn.io cf-ipfs.com cloudflare-ipfs.com docs.google.com dweb.link
    github.com google.com ipfs.io irys.xyz medium.com script.google.com sites.google.com t.me twitter.com
    uploader.irys.xyz x.com
    """.split()  # noqa: SIM905 - one name a line would fill two pages
)


@dataclass(frozen=True, slots=True)
class Dropped:
    """An entry that was not taken."""

    entry: str
    reason: Reason


class Unfit(Exception):
    """An entry cannot be taken as a name."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


class Intake:
    """Takes entries one list at a time, and remembers what it dropped."""

    def __init__(self, *, keep: Collection[str] = ()) -> None:
        self.keep = frozenset(keep)
        """Single labels known to be no top-level domains."""
        self.paths = PathTree()
        self.dropped: list[Dropped] = []

    def allowed(self, entries: Iterable[str]) -> tuple[str, ...]:
        """The names of an allowlist."""
        return self.names(entries, refused=PLATFORMS)

    def blocked(self, entries: Iterable[str]) -> tuple[str, ...]:
        """The names of a blocklist; an entry with a path becomes a blocked path."""
        hosts: list[str] = []
        for entry in entries:
            if "/" in entry and host_and_components(entry)[1]:
                self.paths.add(entry)
            else:
                hosts.append(entry)
        return self.names(hosts, refused=PLATFORMS | SHARED_HOSTS)

    def protected(self, entries: Iterable[str], tolerance: int) -> tuple[str, ...]:
        """The names of a fuzzylist; short ones are dropped, since half the web would resemble them."""
        names = self.names(entries, refused=frozenset())
        short = [name for name in names if len(name.rpartition(".")[0]) < tolerance + 3]
        self.dropped += [Dropped(name, "too short") for name in short]
        return tuple(name for name in names if name not in short)

    def blocked_paths(self, entries: Iterable[str]) -> None:
        """Paths written `host/path`; they end up in `paths`."""
        for entry in entries:
            if host_and_components(entry)[1]:
                self.paths.add(entry)
            else:
                self.dropped.append(Dropped(entry, "unreadable"))

    def names(self, entries: Iterable[str], *, refused: frozenset[str]) -> tuple[str, ...]:
        taken: dict[str, None] = {}
        for entry in entries:
            try:
                name = entry if CANONICAL.fullmatch(entry) and "xn--" not in entry else self.canonical(entry)
                if name in refused:
                    raise Unfit("hosting platform")
                if name in taken:
                    raise Unfit("repeated")
            except Unfit as unfit:
                self.dropped.append(Dropped(entry, unfit.reason))
            else:
                taken[name] = None
        return tuple(taken)

    def canonical(self, entry: str) -> str:
        if CID.fullmatch(entry):
            return entry
        if "*" in entry:
            raise Unfit("wildcard")
        try:
            address = read_address(entry)
        except UnreadableAddress:
            raise Unfit("unreadable") from None
        url = URL(with_scheme(entry))
        if url.port:
            raise Unfit("port")
        if url.pathname != "/" or url.search or url.hash:
            raise Unfit("path")
        single = "." not in address.domain and not address.domain.startswith("[")
        if single and address.domain not in self.keep:
            raise Unfit("single label")
        return address.domain
