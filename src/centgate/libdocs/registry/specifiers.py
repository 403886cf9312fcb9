"""Split what a buyer writes after a library's name: a version, a range or extras."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPECIFIER = re.compile(
    r"(?P<name>(?:/npm/)?@?[^\s@<>=!^;,\[\]]+)"
    r"(?: ?(?P<extras>\[[\w., -]*\]))?"
    r"(?P<version>@(?:[\w-]+|[\^~<>=v]*\d[\w.<>=*+ -]*|\*)| ?(?:~=|===?|!=|[<>]=?|\^) ?v?\d[^;]*)?"
    r"(?: ?;.*)?"
)
"""`react@18`, `numpy>=1.20,<2`, `uvicorn[standard]==0.30; python_version > "3.9"`."""
_TRAILING_VERSION = re.compile(r" (?P<version>v?\d+(?:\.(?:\d+|x))*)$")
_TAGS_OF_NEWEST = frozenset({"@latest", "@stable", "@*"})


@dataclass(frozen=True, slots=True)
class LibrarySpecifier:
    """A library's name as a buyer wrote it, and the version beside it."""

    name: str
    """The name without what no package's name can contain: `pydantic 1.10` stays as it is."""
    version: str | None
    """The version or range; None without one, and if the newest release is what it asks for."""


def parse_specifier(text: str) -> LibrarySpecifier:
    """Parse a name with what package managers accept after it; links stay as they are."""
    text = " ".join(text.split())
    match = None if "://" in text else _SPECIFIER.fullmatch(text)
    if match and (match["extras"] or match["version"]):
        return LibrarySpecifier(match["name"], _wanted_version(match["version"]))
    trailing = _TRAILING_VERSION.search(text)
    return LibrarySpecifier(text, trailing["version"] if trailing else None)


def admits(version: str, newest: str | None) -> bool:
    """True if the newest release is surely of a version that is written without a range: `18`, `==18.2`."""
    wanted = version.lstrip("@=^~v ").removesuffix(".x").removesuffix(".*")
    return newest is not None and (newest == wanted or newest.startswith(f"{wanted}."))


def plain_version(version: str) -> str:
    """Return a version as an ID has it; "<version>" for a range of several."""
    plain = version.lstrip("@=^~v ").removesuffix(".x").removesuffix(".*")
    return plain if re.fullmatch(r"[0-9]+(?:\.[0-9]+)*", plain) else "<version>"


def _wanted_version(written: str | None) -> str | None:
    """Return a version that may not be the newest: a lower bound or an exception alone admits that one."""
    if written is None or written in _TAGS_OF_NEWEST:
        return None
    version = written.lstrip("@").strip()
    is_open = version.startswith((">", "!")) and not any(each in version for each in ",<")
    return None if is_open else version
