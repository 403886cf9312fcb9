"""What package registries have in common: what is asked of them, and how what they say is read.

Neither PyPI nor npm has a search that may be used here, so a package is asked for by its exact name.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from centgate.errors import AnswerTooLong, ProviderError
from centgate.libdocs.packages import Archive
from centgate.upstream import Reply, Upstream

LARGEST_ARCHIVE = 60 << 20
LARGEST_METADATA = 12 << 20
SUMMARY = 400
"""Characters of a description that are kept."""
T = TypeVar("T")
Digest: TypeAlias = tuple[Literal["sha256", "sha512", "sha1"], bytes]

_LENGTHS: Mapping[Literal["sha512", "sha256"], int] = {"sha512": 64, "sha256": 32}
"""Bytes of the digests that are relied on, the strongest first."""
_NAME = re.compile(r"@?[A-Za-z0-9_~-][\w.~-]*(?:/[A-Za-z0-9_~-][\w.~-]*)?", re.ASCII)
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,99}")
_HOSTED = re.compile(
    r"(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org)[/:]"
    r"(?!(?:sponsors|orgs)/)([\w.-]+)/([\w.-]+?)(?:\.git)?(?=[/?#]|$)",
    re.ASCII | re.IGNORECASE,
)
_RELEASE = re.compile(r"v?([0-9]*(?:\.[0-9]+)*)(.*)", re.DOTALL)


async def fetched(upstream: Upstream, archive: Archive) -> bytes:
    """The bytes of an archive, as they come."""
    reply = await upstream.get(archive.url, headers={"Accept": "*/*"})
    return reply.body


def decoded(reply: Reply, kind: type[T]) -> T:
    """The members of a large answer that are read; ProviderError for what is no JSON.

    AnswerTooLong for one that would hold up everything else while it is read.
    """
    if len(reply.body) > LARGEST_METADATA:
        said = f"{reply.label} answered with more than {LARGEST_METADATA >> 20} MB"
        raise AnswerTooLong(reply.name, said)
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        reply.json()  # says what came in its place
        raise


def called(reply: Reply, value: Any, asked: str) -> str:
    """The name that a package calls itself, which is the one that was asked for but for its spelling."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or _plain(value) != _plain(asked):
        raise ProviderError(reply.name, f"{reply.label} answered with another package than was asked for")
    return value


def version_of(value: Any) -> str:
    """A version as it is written; ValueError for what can be none."""
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise ValueError("not a version")
    return value


def same_version(asked: str, known: Mapping[str, Any]) -> str | None:
    """The version that is meant, however it is written: `v1.0` may be `1.0.0`."""
    if asked in known:
        return asked
    wanted = _numbers(asked)
    return next((number for number in known if _numbers(number) == wanted), None)


def repository(links: list[Any]) -> str | None:
    """The first repository on a well-known host that links lead to, as `<owner>/<name>`."""
    for link in links:
        found = _HOSTED.search(link[:500]) if isinstance(link, str) else None
        if found:
            return f"{found[1]}/{found[2]}"
    return None


def followed(url: Any, page: str, official: str) -> str | None:
    """An archive's address, as a page tells it, on the page's own host or on that of the public registry.

    Elsewhere it is None: whoever writes metadata does not choose what this server connects to.
    """
    if not isinstance(url, str):
        return None
    whole = urljoin(page, url)
    parts, own = urlsplit(whole), urlsplit(page)
    if f"{parts.scheme}://{parts.netloc}" == official:
        return whole
    same_host = parts.netloc == own.netloc and parts.scheme in (own.scheme, "https")
    return whole if same_host and parts.scheme in ("http", "https") else None


def integrity(value: Any) -> Digest | None:
    """A digest in the form of W3C's Subresource Integrity, the strongest of several."""
    known = dict(part.split("-", 1) for part in str(value or "").split() if "-" in part)
    for algorithm in _LENGTHS:
        if algorithm in known:
            return _digest(algorithm, known[algorithm])
    return None


def _digest(algorithm: Literal["sha512", "sha256"], written: str) -> Digest | None:
    try:
        digest = base64.b64decode(written.split("?")[0], validate=True)
    except binascii.Error:
        return None
    return (algorithm, digest) if len(digest) == _LENGTHS[algorithm] else None


def quoted(version: str) -> str:
    """A version as a part of an address."""
    return quote(version, safe="+!")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.lower())


def _numbers(version: str) -> str:
    parts = _RELEASE.fullmatch(version.lower())
    if parts is None:
        return version.lower()
    return re.sub(r"(\.0+)+$", "", parts[1]) + re.sub(r"[-_.]", "", parts[2])
