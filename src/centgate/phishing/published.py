"""Published phishing lists: who publishes them, under which licence, and the formats that they are in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import orjson
from msgspec import Struct

from centgate.phishing.rules import InvalidPhishingList, is_array, is_object

ListName: TypeAlias = Literal["metamask", "polkadot", "phantom", "scamsniffer"]


class PublishedList(Struct, frozen=True):
    """A phishing list that others publish."""

    name: ListName
    label: str
    licence: str
    url: str
    is_default: bool = False
    """True if `centgate serve` fetches it unless the operator chooses otherwise."""


PUBLISHED_LISTS: Final[Mapping[str, PublishedList]] = {
    each.name: each
    for each in (
        PublishedList(
            "metamask",
            "eth-phishing-detect",
            "DBAD",
            "https://raw.githubusercontent.com/MetaMask/eth-phishing-detect/main/src/config.json",
            is_default=True,
        ),
        PublishedList(
            "polkadot",
            "polkadot-js phishing",
            "Apache-2.0",
            "https://polkadot.js.org/phishing/all.json",
            is_default=True,
        ),
        # MIT by its package.json, without a licence file, and not updated since May 2025
        PublishedList(
            "phantom",
            "Phantom blocklist",
            "MIT",
            "https://raw.githubusercontent.com/phantom/blocklist/master/blocklist.yaml",
        ),
        # the GPL is the operator's decision, so it is loaded only by the operator
        PublishedList(
            "scamsniffer",
            "ScamSniffer",
            "GPL-3.0",
            "https://raw.githubusercontent.com/scamsniffer/scam-database/main/blacklist/domains.json",
        ),
    )
}
"""The known lists, in the order in which they are consulted; the first one leads."""

LEAD: Final[ListName] = "metamask"
HOTLIST: Final = "hotlist"
"""Name of the address of MetaMask's hotlist, which changes the list `metamask` if that is a stalelist."""
SECURE_URL: Final = re.compile(r"https://[^/\s]|http://(?:127\.0\.0\.1|localhost|\[::1\])[:/]")
"""A list changes verdicts, so it is not fetched unencrypted from elsewhere."""
TEXT_LINE: Final = re.compile(r"(?:- (?:url: *)?)?['\"]?([^\s'\"<>{}\[\],;()]+\.[^\s'\"<>{}\[\],;()]+)['\"]?")
"""A host on a line of its own, plain or as a YAML item (`- url: host`, the form of Phantom's list)."""


def parse_document(text: bytes | str) -> dict[str, Any]:
    """Parse a published list of any known format into the keys of a stalelist.

    Formats: `config.json` of eth-phishing-detect; the stalelist of MetaMask's wallets, with or without its
    `data` envelope; `all.json` of polkadot-js (allow and deny); a JSON array of hosts; one host a line, plain
    or as YAML items. Raises `InvalidPhishingList`.
    """
    try:
        # it limits the nesting, which the parser of the standard library leaves to the size of the stack
        document: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"blocklist": list(parse_lines(text))}
    if is_object(document) and is_object(document.get("data")):
        document = document["data"]
    if is_array(document) and document and all(isinstance(entry, str) for entry in document):
        return {"blocklist": document}
    if is_object(document):
        if is_array(document.get("blocklist")) or is_array(document.get("blacklist")):
            return document
        if is_array(document.get("allow")) and is_array(document.get("deny")):
            return {"allowlist": document["allow"], "blocklist": document["deny"]}
    raise InvalidPhishingList(
        "the file is neither a config.json of eth-phishing-detect (whitelist and blacklist, or allowlist and"
        " blocklist), a stalelist (allowlist, blocklist, fuzzylist, tolerance), an all.json of polkadot-js"
        " (allow and deny), an array of hosts nor a host a line"
    )


def parse_lines(text: bytes | str) -> Iterator[str]:
    """Yield the hosts of a text list; comments start with `#`. Raises `InvalidPhishingList`."""
    try:
        content = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise InvalidPhishingList("the file is neither JSON nor text in UTF-8") from None
    lines = [line for line in map(str.strip, content.splitlines()) if line and not line.startswith("#")]
    if not lines:
        raise InvalidPhishingList("the file is neither JSON nor a list of hosts: it is empty")
    for line in lines:
        host = TEXT_LINE.fullmatch(line)
        # one line that is not a host shows that it is another kind of file, such as a web page
        if host is None:
            raise InvalidPhishingList("the file is neither JSON nor a list with one host a line")
        yield host[1]


def parse_list_urls(items: Sequence[str]) -> dict[str, str]:
    """Parse the addresses of the lists to fetch: by the names of lists, and `hotlist`.

    An item is `<list>=<url>`, a list's name for its usual address, a bare address for the list `metamask`,
    `default` for all lists that are fetched by default, or `off` for none. Raises ValueError.
    """
    urls: dict[str, str] = {}
    for item in items:
        if item == "default":
            urls |= {name: each.url for name, each in PUBLISHED_LISTS.items() if each.is_default}
        elif item in PUBLISHED_LISTS:
            urls[item] = PUBLISHED_LISTS[item].url
        elif item != "off":
            name, url = parse_list_url(item)
            urls[name] = url
    if HOTLIST in urls and LEAD not in urls:
        raise ValueError(f"{HOTLIST} needs the address of a stalelist, as {LEAD}=<url>")
    return urls


def parse_list_url(item: str) -> tuple[str, str]:
    name, equals, url = item.partition("=") if not item.startswith(("http:", "https:")) else (LEAD, "=", item)
    known = (*PUBLISHED_LISTS, HOTLIST)
    if name not in known:
        raise ValueError(f"{name!r} is not a phishing list; known are {', '.join(known)}, default and off")
    if not equals or not SECURE_URL.match(url):
        raise ValueError(f"{url!r} is not an https address of the phishing list {name}")
    return name, url
