"""How much a match in a piece is worth, by where the piece stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from centgate.libdocs.pieces import Piece

OLDER = 0.2
"""For folders of a major version before this one."""
INNER = 0.6
"""For what is not meant for users, or for few of them."""
LATER = 0.8
"""For pages that few come for: how to upgrade, what is going to be removed."""
DEPRECATED = 0.5
"""For what its own text says not to use any more."""
SLIGHT = 0.7
"""For pieces of less than about three lines."""
PROSE = 0.65
"""For pieces without code."""
README = 0
"""Its prose names everything and explains little."""
_MAJOR = re.compile(r"(?:^|/)v(\d{1,2})/")
_LATER = re.compile(
    r"upgrad|migrat|whatsnew|deprecat|legacy|contribut|internals?|releasing|glossary|codemod"
    r"|(?:^|/)(?:neps?|peps?|rfcs?|adrs?|proposals?|history|historical[-_]\w+)/",
    re.IGNORECASE,
)
_INNER = re.compile(
    r"(?:^|/)(?:_?internals?|_[a-z]\w*|compat|impl|private|testing(?=/)|mypy|plugins?)(?:/|\.\w+$)"
    r"|(?:^|/)(?:core|helpers|utils?)/.*\.[cm]?[jt]s$"
)
_DEEP_TYPES = re.compile(r"(?:/[^/]+){2}\.d\.[cm]?ts$")
_DEPRECATED = re.compile(r"\bdeprecated\b", re.IGNORECASE)
_FAR = 9
"""Folders deep from which a page is as far from the beginning as any."""
_OPENING = (
    re.compile(r"^readme(?:\.\w+)?$", re.IGNORECASE),
    re.compile(
        r"(?:^|/)(?:\d+[-_])?(?:quick[-_]?start|get(?:ting)?[-_]?started|first[-_]?steps|absolute_beginners)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:^|/)(?:\d+[-_])?(?:intro(?:duction)?|overview|tutorial|install(?:ation)?|usage|basics)\b",
        re.IGNORECASE,
    ),
    re.compile(r"(?:^|/)(?:docs?|guides?)/index\.\w+$|(?:^|/)skill\.md$", re.IGNORECASE),
)
_BUSINESS = re.compile(
    r"browser.*|cloning.*|building.*|(?:.*(?:install|build|compil).*|from )source.*"
    r"|(?:running )?(?:the )?tests?|develop(?:ment|ing)|.*development version.*|adding .*documentation"
    r"|.*(?:sponsor|contribut|licen[sc]e|backers|acknowledg|donat|code of conduct|table of contents).*"
    r"|.*(?:team members|triager|emerit|technical committee).*"
    r"|.*(?:testimonial|who uses|migration).*|supporting.*|get(?:ting)? help|discussion.*"
    r"|(?:project |getting )?(?:community|credits?|support|security|authors?|people|opinions|roadmap)"
    r"|changelog|badges?|thanks|related.*|performance|documentation|docs(?: . community)?"
    r"|resources|help.*|links|versioning"
    r"|(?:(?:main|key|quick) )?features|citations?|citing.*|dependencies|background"
    r"|philosophy|faq|alternatives",
    re.IGNORECASE,
)


def weighed(piece: Piece, about: Mapping[str, str], *, guided: bool = False) -> Piece:
    """A piece with its weight lowered where few are looking for it.

    `guided`: there are so many pages for users that what they do not name is mostly not for them.
    """
    weight = piece.weight
    if guided and _DEEP_TYPES.search(piece.path):
        weight *= INNER
    if _is_older(piece.path, about.get("version", "")):
        weight *= OLDER
    if _INNER.search(piece.path):
        weight *= INNER
    if _LATER.search(piece.path):
        weight *= LATER
    if opening(piece) is not None and is_business(piece):
        weight *= INNER
    if piece.code is None:
        weight *= PROSE * (INNER if opening(piece) == README else 1.0)
    if _DEPRECATED.search((piece.text or "")[:300]):
        weight *= DEPRECATED
    if len(piece.code or "") + len(piece.text or "") < 180:
        weight *= SLIGHT
    return piece if weight == piece.weight else replace(piece, weight=weight)


def opening(piece: Piece) -> int | None:
    """Where a piece stands among those that introduce the library, 0 for the README; None for all others.

    The nearer to the top of its documentation a page is, the sooner.
    """
    if (
        _LATER.search(piece.path)
        or _INNER.search(piece.path)
        or not piece.path.lower().endswith((".md", ".mdx", ".markdown", ".rst", ".txt", "readme", ".py"))
    ):
        return None
    for place, pattern in enumerate(_OPENING):
        if found := pattern.search(piece.path):
            return place * (_FAR + 1) + min(piece.path.count("/", 0, found.start()), _FAR)
    return None


def is_business(piece: Piece) -> bool:
    """Whether it is about the project and its people rather than about the library's use."""
    if (piece.text or "").lower().count("sponsor") > 1:
        return True
    return any(_BUSINESS.fullmatch(heading) for heading in (*piece.breadcrumb, piece.title))


def _is_older(path: str, version: str) -> bool:
    major = re.match(r"\d+", version)
    return bool(major) and any(0 < int(found) < int(major[0]) for found in _MAJOR.findall(path))
