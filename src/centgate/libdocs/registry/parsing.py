"""Parsing rules that the package registries share.

Neither PyPI nor npm has a search that may be used here, so a package is requested by its exact name.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from centgate.errors import AnswerTooLong, ProviderError
from centgate.libdocs.registry.packages import Archive
from centgate.upstream import Upstream, UpstreamResponse
from centgate.web.fetch.url import DEFAULT_PORTS, parse_target

MAX_ARCHIVE_BYTES = 60 << 20
MAX_METADATA_BYTES = 12 << 20
MAX_SUMMARY = 400
"""Maximum characters of a description."""
MAX_SITE_LENGTH = 300
_NO_SITES = frozenset(
    ("github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "pypi.org", "npmjs.com", "docs.rs")
)
"""Hosts of many projects, which have no documentation of one at their root."""
T = TypeVar("T")
Digest: TypeAlias = tuple[Literal["sha256", "sha512", "sha1"], bytes]

_DIGEST_LENGTHS: Mapping[Literal["sha512", "sha256"], int] = {"sha512": 64, "sha256": 32}
"""Length in bytes of the accepted digests, the strongest first."""
_NAME = re.compile(r"@?[A-Za-z0-9_~-][\w.~-]*(?:/[A-Za-z0-9_~-][\w.~-]*)?", re.ASCII)
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,99}")
_REPOSITORY_URL = re.compile(
    r"(?P<host>github\.com|gitlab\.com|bitbucket\.org|codeberg\.org)[/:]"
    r"(?!(?:sponsors|orgs)/)(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?(?=[/?#]|$)",
    re.ASCII | re.IGNORECASE,
)
_STABLE = re.compile(r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,5})(?:\.post([0-9]{1,9}))?")
_SHORT = re.compile(r"[vV]?([0-9]{1,9}(?:\.[0-9]{1,9})?)(?:\.[xX]){0,2}")
_RELEASE = re.compile(r"v?([0-9]*(?:\.[0-9]+)*)(.*)", re.DOTALL)


def stable_version_key(version: str) -> tuple[int, ...] | None:
    """Return the sort key of a stable release; None for a pre-release and for other notations."""
    found = _STABLE.fullmatch(version)
    return (*map(int, found[1].split(".")), -1, int(found[2] or 0)) if found else None


async def download_archive(upstream: Upstream, archive: Archive, max_bytes: int = MAX_ARCHIVE_BYTES) -> bytes:
    """Return the bytes of an archive, unchanged. Raises AnswerTooLong if there are more than `max_bytes`."""
    reply = await upstream.get(archive.url, headers={"Accept": "*/*"}, max_bytes=max_bytes)
    return reply.body


def decode_reply(reply: UpstreamResponse, kind: type[T]) -> T:
    """Decode the needed members of a large response. Raises ProviderError if it is not JSON.

    Raises AnswerTooLong for a response so large that decoding it would block all other work.
    """
    if len(reply.body) > MAX_METADATA_BYTES:
        message = f"{reply.label} answered with more than {MAX_METADATA_BYTES >> 20} MB"
        raise AnswerTooLong(reply.name, message)
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        reply.parse_json()  # its error describes the response
        raise


def parse_package_name(reply: UpstreamResponse, value: Any, requested_name: str) -> str:
    """Return the name that a package gives itself; it must equal the requested name, apart from spelling."""
    if (
        not isinstance(value, str)
        or not _NAME.fullmatch(value)
        or _normalize_name(value) != _normalize_name(requested_name)
    ):
        raise ProviderError(reply.name, f"{reply.label} returned another package than the requested one")
    return value


def parse_version(value: Any) -> str:
    """Return a version as written. Raises ValueError for an invalid one."""
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise ValueError("not a version")
    return value


def parse_short_version(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a version that stands for all releases which begin with them: `4`, `v4.1`, `4.x`.

    Returns None for any other version.
    """
    found = _SHORT.fullmatch(version)
    return tuple(map(int, found[1].split("."))) if found else None


def find_newest_of(version: str, usable: Iterable[str]) -> str | None:
    """Return the newest stable release that a short version stands for; None if there is none."""
    numbers = parse_short_version(version)
    if numbers is None:
        return None
    stable = {key: each for each in usable if (key := stable_version_key(without_build(each)))}
    return stable.get(max((key for key in stable if key[: len(numbers)] == numbers), default=()))


def find_version(requested: str, published: Mapping[str, Any], usable: Iterable[str] = ()) -> str | None:
    """Return the published version that is meant.

    `v1.0` may be the release `1.0.0`, and the newest of `usable` that begins so comes before it.
    `2.1.0` may be the release `2.1.0+incompatible`.
    """
    if requested in published:
        return requested
    if newest := find_newest_of(requested, usable):
        return newest
    same = (number for number in published if is_same_version(number, requested))
    built = (number for number in published if is_same_version(without_build(number), requested))
    return next(same, None) or next(built, None)


def is_same_version(a: str, b: str) -> bool:
    """True if two versions differ in their notation alone, as `v1.0` and `1.0.0` do."""
    return _normalize_version(a) == _normalize_version(b)


def find_repository(links: list[Any]) -> str | None:
    """Return the first repository on a well-known host that the links lead to, as `<owner>/<name>`."""
    found = _find_repository_link(links)
    return found["name"] if found else None


def is_on_github(links: list[Any]) -> bool:
    """True if the first repository on a well-known host that the links lead to is on GitHub."""
    found = _find_repository_link(links)
    return found is not None and found["host"].lower() == "github.com"


def _find_repository_link(links: list[Any]) -> re.Match[str] | None:
    matches = (_REPOSITORY_URL.search(link[:500]) for link in links if isinstance(link, str))
    return next(filter(None, matches), None)


def find_sites(links: list[Any]) -> tuple[str, ...]:
    """Return the web sites among links, without repository hosts and registries, in order.

    They are read as the fetcher reads them: owners also write addresses that are none.
    """
    sites: dict[str, None] = {}
    for link in links:
        target = parse_target(link) if isinstance(link, str) and len(link) <= MAX_SITE_LENGTH else None
        if target and target.scheme in DEFAULT_PORTS and target.host.removeprefix("www.") not in _NO_SITES:
            sites[target.url.partition("?")[0]] = None
    return tuple(sites)


def resolve_archive_url(url: Any, page: str, official: str) -> str | None:
    """Return an archive's absolute URL if it is on the page's own host or on the public registry's.

    Returns None otherwise: authors of metadata must not choose the hosts that this server connects to.
    """
    if not isinstance(url, str):
        return None
    absolute_url = urljoin(page, url)
    parts, own = urlsplit(absolute_url), urlsplit(page)
    if f"{parts.scheme}://{parts.netloc}" == official:
        return absolute_url
    same_host = parts.netloc == own.netloc and parts.scheme in (own.scheme, "https")
    return absolute_url if same_host and parts.scheme in ("http", "https") else None


def parse_integrity(value: Any) -> Digest | None:
    """Parse a digest in the format of W3C's Subresource Integrity; the strongest of several."""
    digests = dict(part.split("-", 1) for part in str(value or "").split() if "-" in part)
    for algorithm in _DIGEST_LENGTHS:
        if algorithm in digests:
            return _decode_digest(algorithm, digests[algorithm])
    return None


def _decode_digest(algorithm: Literal["sha512", "sha256"], encoded: str) -> Digest | None:
    try:
        digest = base64.b64decode(encoded.split("?")[0], validate=True)
    except binascii.Error:
        return None
    return (algorithm, digest) if len(digest) == _DIGEST_LENGTHS[algorithm] else None


def quote_version(version: str) -> str:
    """Return a version as a segment of a URL path."""
    return quote(version, safe="+!")


def _normalize_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.lower())


def without_build(version: str) -> str:
    """Return a version without what follows its `+`, which does not count in order (semver.org, 10)."""
    return version.partition("+")[0]


def _normalize_version(version: str) -> str:
    parts = _RELEASE.fullmatch(version.lower())
    if parts is None:
        return version.lower()
    return re.sub(r"(\.0+)+$", "", parts[1]) + re.sub(r"[-_.]", "", parts[2])
