"""The tree of blocked paths: coverage, addition and removal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from centgate.phishing.path_rules import PathTree


def test_blocked_ancestor_replaces_descendants() -> None:
    assert PathTree.from_entries(["x.com/a/b", "x.com/a/c", "x.com/a"]).tree == {"x.com": {"a": {}}}


def test_path_below_blocked_ancestor_is_not_added() -> None:
    assert PathTree.from_entries(["x.com/a", "x.com/a/b/c"]).tree == {"x.com": {"a": {}}}


@pytest.mark.parametrize("text", ["x.com", "x.com/", "", "mailto:a", "x.com/%ff", "x.com/%"])
def test_entry_without_valid_path_is_ignored(text: str) -> None:
    assert not PathTree.from_entries([text])


def test_entry_may_have_scheme_and_trailing_slash() -> None:
    assert PathTree.from_entries(["https://X.com/a/"]) == PathTree.from_entries(["x.com/a"])


def test_discarded_path_removes_empty_parents() -> None:
    paths = PathTree.from_entries(["x.com/a/b", "y.com/c/d", "y.com/e"])

    paths.discard("x.com/a/b")
    paths.discard("y.com/c/d")

    assert paths.tree == {"y.com": {"e": {}}}


def test_discarding_unknown_path_changes_nothing() -> None:
    paths = PathTree.from_entries(["x.com/a/b"])

    paths.discard("x.com/a/c")
    paths.discard("x.com")

    assert paths == PathTree.from_entries(["x.com/a/b"])


COMPONENTS = st.lists(
    st.text(min_size=1, max_size=4).filter(lambda text: text not in (".", "..")), min_size=1
)


@pytest.mark.extended
@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["x.com", "y.com"]), COMPONENTS))
def test_tree_is_restored_from_its_lines(branches: dict[str, list[str]]) -> None:
    paths = PathTree()
    for host, components in branches.items():
        node = paths.tree.setdefault(host, {})
        for component in components:
            node = node.setdefault(component, {})

    lines = list(paths.iter_lines())

    assert PathTree.from_entries(lines) == paths
    assert not any(line.splitlines() != [line] for line in lines)
