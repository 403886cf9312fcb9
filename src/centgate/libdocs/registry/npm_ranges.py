"""Ranges of versions in the manifests of npm packages (github.com/npm/node-semver, "Range Grammar")."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import eq, ge, gt, le, lt
from typing import TypeAlias

MAX_RANGE = 300
"""Characters of a range; longer ones are not read."""
MAX_NUMBER = 9
"""Digits of a number in a version."""
Identifier: TypeAlias = tuple[int, int, str]
VersionKey: TypeAlias = tuple[int, int, int, tuple[Identifier, ...]]
"""Numbers of a version, and the identifiers of a pre-release in their order (semver.org, 11)."""
Comparator: TypeAlias = tuple[Callable[[VersionKey, VersionKey], bool], VersionKey]
NpmRange: TypeAlias = list[list[Comparator]]
"""Alternatives, of each of which all comparators must hold."""

_RELEASE: tuple[Identifier, ...] = ((2, 0, ""),)
"""In place of the identifiers of a pre-release: a release is above its pre-releases."""
_LOWEST: tuple[Identifier, ...] = ()
"""Below all pre-releases of a version."""
_NUMBER = rf"(?:[0-9]{{1,{MAX_NUMBER}}})"
_BUILD = r"(?:\+[0-9A-Za-z.-]+)?"
_VERSION = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})(?:-(?P<pre>[0-9A-Za-z.-]+))?{_BUILD}"
)
_PARTIAL = re.compile(
    rf"(?P<operator>[<>]=?|=|\^|~>?|)v?(?P<major>{_NUMBER}|[xX*])(?:\.(?P<minor>{_NUMBER}|[xX*]))?"
    rf"(?:\.(?P<patch>{_NUMBER}|[xX*])(?:-(?P<pre>[0-9A-Za-z.-]+))?{_BUILD})?"
)
_SPACE_AFTER_OPERATOR = re.compile(r"(?<=[<>=^~])\s+")
_HYPHEN = re.compile(r"\s*(\S+)\s+-\s+(\S+)\s*")
_COMPARISONS: Mapping[str, Callable[[VersionKey, VersionKey], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}


def parse_npm_version(text: str) -> VersionKey | None:
    """Return the sort key of a version of three numbers; None for any other text."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    return int(found["major"]), int(found["minor"]), int(found["patch"]), _parse_pre_release(found["pre"])


def parse_npm_range(text: str) -> NpmRange | None:
    """Parse a range such as `^1.2 || >=2.0.1 <3`; None for a tag, an address or another package."""
    if len(text) > MAX_RANGE:
        return None
    alternatives = [_parse_alternative(each) for each in text.split("||")]
    parsed = [each for each in alternatives if each is not None]
    return parsed if len(parsed) == len(alternatives) else None


def find_newest_in(wanted: NpmRange, versions: Iterable[str]) -> list[str]:
    """Return the versions in a range, newest first."""
    keys = {each: key for each in versions if (key := parse_npm_version(each)) and is_in_range(key, wanted)}
    return sorted(keys, key=keys.__getitem__, reverse=True)


def is_in_range(version: VersionKey, wanted: NpmRange) -> bool:
    """True if a version is in a range; a pre-release only if the range names one of the same numbers."""
    return any(
        all(compare(version, bound) for compare, bound in comparators)
        and (
            version[3] == _RELEASE
            or any(
                bound[:3] == version[:3] and bound[3] not in (_RELEASE, _LOWEST) for _, bound in comparators
            )
        )
        for comparators in wanted
    )


def _parse_alternative(text: str) -> list[Comparator] | None:
    if hyphen := _HYPHEN.fullmatch(text):
        written = [f">={hyphen[1]}", f"<={hyphen[2]}"]
    else:
        written = _SPACE_AFTER_OPERATOR.sub("", text).split() or ["*"]
    comparators: list[Comparator] = []
    for each in written:
        partial = _PARTIAL.fullmatch(each)
        if partial is None:
            return None
        comparators += _expand_partial(partial)
    return comparators


def _expand_partial(partial: re.Match[str]) -> Iterator[Comparator]:
    """Yield the comparators that a comparator stands for, whose version may lack numbers: `^1.2`, `<=2`."""
    operator = partial["operator"]
    numbers = _parse_numbers(partial)
    low = _fill(numbers)
    pre_release = _parse_pre_release(partial["pre"]) if len(numbers) == 3 else _RELEASE
    if not numbers:
        if operator in ("<", ">"):
            yield lt, (0, 0, 0, _LOWEST)  # nothing is below or above any version
    elif operator.startswith("~"):
        yield ge, (*low, pre_release)
        yield lt, _next_after(numbers[:2])
    elif operator == "^":
        yield ge, (*low, pre_release)
        # what is left of the first number that is not zero stays equal
        first = next((place for place, each in enumerate(numbers) if each), len(numbers) - 1)
        yield lt, _next_after(numbers[: first + 1])
    elif len(numbers) == 3:
        yield _COMPARISONS.get(operator, eq), (*low, pre_release)
    elif operator in ("", "="):
        yield ge, (*low, _RELEASE)
        yield lt, _next_after(numbers)
    elif operator in (">", "<="):
        yield (ge if operator == ">" else lt), _next_after(numbers)
    else:
        yield _COMPARISONS[operator], (*low, _RELEASE if operator == ">=" else _LOWEST)


def _parse_numbers(partial: re.Match[str]) -> list[int]:
    """Return the numbers before the first that is missing or any."""
    numbers: list[int] = []
    for each in partial.group("major", "minor", "patch"):
        if each is None or not each.isdecimal():
            break
        numbers.append(int(each))
    return numbers


def _fill(numbers: Sequence[int]) -> tuple[int, int, int]:
    major, minor, patch = [*numbers, 0, 0, 0][:3]
    return major, minor, patch


def _next_after(numbers: Sequence[int]) -> VersionKey:
    """Return the lowest version above all that begin with these numbers."""
    *above, last = numbers
    return (*_fill([*above, last + 1]), _LOWEST)


def _parse_pre_release(written: str | None) -> tuple[Identifier, ...]:
    if written is None:
        return _RELEASE
    return tuple(
        (0, int(each), "") if each.isdecimal() and len(each) <= MAX_NUMBER else (1, 0, each)
        for each in written.split(".")
    )
