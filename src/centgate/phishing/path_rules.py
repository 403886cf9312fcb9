"""Blocked paths: pages on hosts that are legitimate as a whole, such as sites.google.com."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from centgate.phishing.url import InvalidAddress, WebAddress, parse_address

Tree: TypeAlias = "dict[str, Tree]"
"""A host, then one path component per level; an empty dict ends a blocked path."""

BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


class PathTree:
    """Blocked paths by host. A blocked path also blocks the paths below it, by whole components."""

    def __init__(self, tree: Tree | None = None) -> None:
        self.tree: Tree = {} if tree is None else tree

    @classmethod
    def from_entries(cls, texts: Iterable[str]) -> PathTree:
        """Build the tree from entries written `host/path`; unreadable ones are skipped."""
        paths = cls()
        for text in texts:
            paths.add(text)
        return paths

    def __bool__(self) -> bool:
        return bool(self.tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathTree) and self.tree == other.tree

    __hash__ = None  # type: ignore[assignment]

    def add(self, text: str) -> None:
        """Block a path and drop the blocked paths below it, as it covers them."""
        host, components = split_host_and_path(text)
        if not components:
            return
        node = self.tree.setdefault(host, {})
        for component in components[:-1]:
            if node.get(component) == {}:
                return  # an ancestor is blocked already
            node = node.setdefault(component, {})
        node[components[-1]] = {}

    def discard(self, text: str) -> None:
        """Unblock a path and the paths below it; nodes that become empty are removed."""
        host, components = split_host_and_path(text)
        trail = [self.tree]
        for key in (host, *components):
            if not components or key not in trail[-1]:
                return
            trail.append(trail[-1][key])
        for node, key in zip(reversed(trail[:-1]), reversed([host, *components]), strict=True):
            del node[key]
            if node:
                return

    def match(self, address: WebAddress) -> str | None:
        """Return the blocked path that covers the address, decoded, as `host/path`; None without any."""
        node = self.tree.get(address.domain)
        if node is None:
            return None
        matched = [address.domain]
        for component in split_path(address.pathname):
            if component not in node:
                return None
            matched.append(component)
            node = node[component]
            if not node:
                return "/".join(matched)
        return None

    def iter_lines(self) -> Iterator[str]:
        """Yield every blocked path, percent-encoded so that it stays on one line."""
        for host, node in self.tree.items():
            for components in iter_branches(node):
                yield "/".join([host, *(quote(component, safe="") for component in components)])


def iter_branches(node: Tree) -> Iterator[list[str]]:
    for component, children in node.items():
        if children:
            yield from ([component, *rest] for rest in iter_branches(children))
        else:
            yield [component]


def split_host_and_path(text: str) -> tuple[str, list[str]]:
    try:
        address = parse_address(text)
    except InvalidAddress:
        return "", []
    return address.domain, split_path(address.pathname)


def split_path(pathname: str) -> list[str]:
    """Return the components of a path, decoded after splitting; none if one of them cannot be decoded."""
    if BAD_ESCAPE.search(pathname):
        return []
    try:
        return [unquote_to_bytes(component).decode() for component in pathname.split("/") if component]
    except UnicodeDecodeError:
        return []
