"""Ranges of versions in the manifests of npm packages (github.com/npm/node-semver, "Range Grammar")."""

# node-semver comes without types
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_RANGE = 300
"""Characters of a range; longer ones are not read."""
_NUMBER = r"(?:0|[1-9][0-9]{0,14})"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_MAX_VERSION = 256
"""Characters of a version that node-semver accepts."""


def is_range(text: str) -> bool:
    """True for a range such as `^1.2 || >=2.0.1 <3`, not for a tag, an address or another package."""
    import nodesemver  # late, see `runtime.LATE_MODULES`

    return len(text) <= MAX_RANGE and nodesemver.valid_range(text, loose=False) is not None


def find_newest_in(wanted: str, versions: Iterable[str]) -> str | None:
    """Return the newest version in a range, None if there is none.

    A pre-release is in a range only if the range names one of the same numbers.
    """
    import nodesemver

    readable = [each for each in versions if len(each) <= _MAX_VERSION and _VERSION.fullmatch(each)]
    return nodesemver.max_satisfying(readable, wanted)
