"""Sites to index: from an address, from a list of them, or from the list that comes with the package."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path

from msgspec import Struct

from centgate.web.index.crawl_state import normalize_site

SEEDS_NAME = "seeds"
"""Word for the list in the package; `seeds:<group>` is one of its groups."""
MAX_LIST_BYTES = 4 << 20
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")


class UnknownSite(ValueError):
    """Neither an address, nor a list of addresses; the message says why."""


class Seed(Struct, frozen=True):
    """Site of the list in the package."""

    url: str
    group: str


class SeedList(Struct, frozen=True):
    """The list in the package."""

    origin: str
    seeds: tuple[Seed, ...]

    @property
    def groups(self) -> list[str]:
        """Names of its groups."""
        return list(dict.fromkeys(seed.group for seed in self.seeds))


@cache
def load_seeds() -> SeedList:
    """Load the list in the package."""
    text = files("centgate.web.index").joinpath("data/seeds.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    seeds = (Seed(url, group) for group, sites in data["groups"].items() for url in sites)
    return SeedList(data["origin"], tuple(seeds))


def resolve_sites(text: str) -> list[str]:
    """Return the sites that an argument names: an address, a file of addresses, `seeds`, `seeds:<group>`.

    Raises UnknownSite or OSError.
    """
    name, _, group = text.partition(":")
    if name == SEEDS_NAME:
        return _select_seeds(group)
    file = Path(text)
    if "://" not in text and file.is_file():
        return _read_list(file)
    if (url := normalize_site(text)) is None or not ("://" in text or _begins_with_host(text)):
        raise UnknownSite(f"{text[:200]!r} is neither an address nor a file of addresses")
    return [url]


def _begins_with_host(text: str) -> bool:
    """True for the address of a site without its scheme; False for the path of a file that is missing."""
    host = text.partition("/")[0].strip(".")
    return "." in host and not host.endswith(".txt")


def _select_seeds(group: str) -> list[str]:
    seeds = load_seeds()
    if group and group not in seeds.groups:
        raise UnknownSite(f"{group[:60]!r} is no group of the list; its groups are {', '.join(seeds.groups)}")
    return _normalize_all(seed.url for seed in seeds.seeds if group in ("", seed.group))


def _read_list(file: Path) -> list[str]:
    """Read a file with an address a line; a comment begins with `#`, after white space if not the line."""
    if file.stat().st_size > MAX_LIST_BYTES:
        raise UnknownSite(f"{file} is larger than {MAX_LIST_BYTES >> 20} MB")
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    lines = (_COMMENT.sub("", line).strip() for line in text.splitlines())
    return _normalize_all(filter(None, lines))


def _normalize_all(addresses: Iterable[str]) -> list[str]:
    sites: dict[str, None] = {}
    for address in addresses:
        url = normalize_site(address)
        if url is None:
            raise UnknownSite(f"{address[:200]!r} is not an http or https address")
        sites.setdefault(url)
    return list(sites)
