"""Split what a buyer writes after a library's name: a version, a range or extras."""

from __future__ import annotations

import re

from msgspec import Struct

_SPECIFIER = re.compile(
    r"(?P<name>(?:/npm/)?@?[^\s@<>=!^;,\[\]]+)"
    r"(?: ?(?P<extras>\[[\w., -]*\]))?"
    r"(?P<version>@(?:[\w-]+|[\^~<>=v]*\d[\w.<>=*+ -]*|\*)| ?(?:~=|===?|!=|[<>]=?|\^) ?v?\d[^;]*)?"
    r"(?: ?;.*)?"
)
"""`react@18`, `numpy>=1.20,<2`, `uvicorn[standard]==0.30; python_version > "3.9"`."""
_TRAILING_VERSION = re.compile(r" (?P<version>v?\d+(?:\.(?:\d+|x))*)$")
_ONE_RANGE = re.compile(
    r"@?(?P<operator>\^|~[=>]?|={0,3}) ?v?(?P<numbers>[0-9]{1,9}(?:\.[0-9]{1,9})*)(?:\.[xX*])*"
)
"""A version, or a range with one lower bound."""
_NUMBER = re.compile(r"[0-9]{1,9}")
_TAGS_OF_NEWEST = frozenset({"@latest", "@stable", "@*"})


class LibrarySpecifier(Struct, frozen=True):
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
    """True if the newest release is surely of a version or a range: 18.2.0 of `18`, `==18.2` and `^18.1`."""
    written, shared = _ONE_RANGE.fullmatch(version), plain_version(version)
    if newest is None or written is None:
        return newest == version.lstrip("@=^~v ")
    is_of_version = newest == shared or newest.startswith(f"{shared}.")
    # of `^18.9` there may be no release yet
    return is_of_version and (
        written["numbers"] == shared or _find_numbers(newest) >= _find_numbers(written["numbers"])
    )


def plain_version(version: str) -> str:
    """Return a version as an ID has it; of a range the numbers that all its releases begin with.

    `^1.2` is `1` and `~1.2.3` is `1.2` (npm), `~=1.4.2` is `1.4` (PEP 440, "Compatible release"). Returns
    "<version>" if they begin with different numbers.
    """
    written = _ONE_RANGE.fullmatch(version)
    if written is None:
        return "<version>"
    operator, numbers = written["operator"], written["numbers"].split(".")
    shared = len(numbers)
    if operator == "^":
        shared = next((count for count, each in enumerate(numbers, 1) if int(each)), shared)
    elif operator == "~=":
        shared = max(1, shared - 1)
    elif operator in ("~", "~>"):
        shared = 2
    return ".".join(numbers[:shared])


def _find_numbers(version: str) -> list[int]:
    return [int(each) for each in _NUMBER.findall(version)]


def _wanted_version(written: str | None) -> str | None:
    """Return a version that may not be the newest: a lower bound or an exception alone admits that one."""
    if written is None or written in _TAGS_OF_NEWEST:
        return None
    version = written.lstrip("@").strip()
    is_open = version.startswith((">", "!")) and not any(each in version for each in ",<")
    return None if is_open else version
