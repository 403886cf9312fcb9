"""Ranges of npm's versions; each case was computed by node-semver 7 (npm, `semver.satisfies`) too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.libdocs.registry.npm_ranges import (
    MAX_RANGE,
    find_newest_in,
    is_in_range,
    parse_npm_range,
    parse_npm_version,
)

VERSIONS = ("0.0.3", "0.2.3", "0.2.9", "0.3.0", "1.2.3", "1.2.10", "1.9.0", "2.0.0-beta.2", "2.0.0", "2.1.0")


@pytest.mark.parametrize(
    ("wanted", "newest", "count"),
    [
        *(("^1.2.3", "1.9.0", 3), ("^1", "1.9.0", 3), ("^0.2.3", "0.2.9", 2), ("^0.0.3", "0.0.3", 1)),
        *(("^0", "0.3.0", 4), ("^0.0", "0.0.3", 1), ("~1.2.3", "1.2.10", 2), ("~1", "1.9.0", 3)),
        *(("~>0.2", "0.2.9", 2), ("1.2.x", "1.2.10", 2), ("1", "1.9.0", 3), ("=1.2.3", "1.2.3", 1)),
        *(("v1.2.3", "1.2.3", 1), ("*", "2.1.0", 9), ("", "2.1.0", 9), (">1", "2.1.0", 2)),
        *((">1.2.3 <2", "1.9.0", 2), (">= 1.2 < 1.9", "1.2.10", 2), ("<=1", "1.9.0", 7)),
        *(("1.2.3 - 2.0", "2.0.0", 4), ("<0.3 || ^2.0.0", "2.1.0", 5), ("^2.0.0-beta.1", "2.1.0", 3)),
        *(("2.0.0-beta.2", "2.0.0-beta.2", 1), (">=2.0.0-beta.2 <2.0.0", "2.0.0-beta.2", 1)),
        *(("^3", None, 0), ("<*", None, 0), ("<0.0.3", None, 0), ("1.2.3+build", "1.2.3", 1)),
    ],
)
def test_versions_in_range_are_found(wanted: str, newest: str | None, count: int) -> None:
    parsed = parse_npm_range(wanted)

    assert parsed is not None
    found = find_newest_in(parsed, VERSIONS)
    assert (next(iter(found), None), len(found)) == (newest, count)


def test_pre_releases_are_in_order_of_their_identifiers() -> None:
    # the order of the example in semver.org, 11.4
    ordered = [
        f"1.0.0{end}"
        for end in ("-alpha", "-alpha.1", "-alpha.beta", "-beta", "-beta.2", "-beta.11", "-rc.1", "")
    ]
    wanted = parse_npm_range(">=1.0.0-alpha")

    assert wanted is not None
    assert find_newest_in(wanted, sorted(ordered)) == ordered[::-1]


@pytest.mark.parametrize(
    "text",
    ["next", "latest", "workspace:^", "npm:quill@^1", "file:../ink", "^1.2 beta", "1" * (MAX_RANGE + 1)],
)
def test_other_specifiers_are_no_range(text: str) -> None:
    assert parse_npm_range(text) is None


@given(st.text(alphabet="0123.x*^~<>=|- vab", max_size=60))
def test_any_text_is_range_or_not(text: str) -> None:
    wanted, version = parse_npm_range(text), parse_npm_version("1.2.3")

    assert version is not None
    assert wanted is None or is_in_range(version, wanted) in (True, False)
