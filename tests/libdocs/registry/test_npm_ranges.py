"""Ranges of npm's versions; each case was computed by node-semver 7 (npm, `semver.satisfies`) too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.libdocs.registry.npm_ranges import MAX_RANGE, find_newest_in, is_range

VERSIONS = ("0.0.3", "0.2.3", "0.2.9", "0.3.0", "1.2.3", "1.2.10", "1.9.0", "2.0.0-beta.2", "2.0.0", "2.1.0")


@pytest.mark.parametrize(
    ("wanted", "newest"),
    [
        *(("^1.2.3", "1.9.0"), ("^1", "1.9.0"), ("^0.2.3", "0.2.9"), ("^0.0.3", "0.0.3")),
        *(("^0", "0.3.0"), ("^0.0", "0.0.3"), ("~1.2.3", "1.2.10"), ("~1", "1.9.0")),
        *(("~>0.2", "0.2.9"), ("1.2.x", "1.2.10"), ("1", "1.9.0"), ("=1.2.3", "1.2.3")),
        *(("v1.2.3", "1.2.3"), ("*", "2.1.0"), ("", "2.1.0"), (">1", "2.1.0")),
        *((">1.2.3 <2", "1.9.0"), (">= 1.2 < 1.9", "1.2.10"), ("<=1", "1.9.0")),
        *(("1.2.3 - 2.0", "2.0.0"), ("<0.3 || ^2.0.0", "2.1.0"), ("^2.0.0-beta.1", "2.1.0")),
        *(("2.0.0-beta.2", "2.0.0-beta.2"), (">=2.0.0-beta.2 <2.0.0", "2.0.0-beta.2")),
        *(("^3", None), ("<*", None), ("<0.0.3", None), ("1.2.3+build", "1.2.3")),
    ],
)
def test_newest_version_in_range_is_found(wanted: str, newest: str | None) -> None:
    assert is_range(wanted)
    assert find_newest_in(wanted, VERSIONS) == newest


def test_versions_that_npm_would_refuse_are_skipped() -> None:
    invalid = ["", "1.2", "01.9.9", "1.9.9.9", "latest", "1.9.9-" + "a." * 400, "9" * 400 + ".1.1"]

    assert find_newest_in("*", [*invalid, "1.2.3"]) == "1.2.3"


@pytest.mark.parametrize(
    "text",
    ["next", "latest", "workspace:^", "npm:quill@^1", "file:../ink", "^1.2 beta", "1" * (MAX_RANGE + 1)],
)
def test_other_specifiers_are_no_range(text: str) -> None:
    assert not is_range(text)


@given(
    st.text(alphabet="0123.x*^~<>=|- vab", max_size=60),
    st.lists(st.text(alphabet="0123.-+ab", max_size=12), max_size=5),
)
def test_any_text_is_range_or_not(text: str, versions: list[str]) -> None:
    newest = find_newest_in(text, versions)

    assert isinstance(is_range(text), bool)
    assert newest is None or newest in versions
