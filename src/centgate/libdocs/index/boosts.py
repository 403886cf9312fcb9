"""Adjust the weight of a chunk by its location in the package and its content."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from centgate.libdocs.index.usage import SOURCE_FILE
from centgate.libdocs.parse.chunk import Chunk

OLDER_FACTOR = 0.2
"""Factor for folders of an earlier major version."""
INTERNAL_FACTOR = 0.6
"""Factor for content that is meant for few users, or for none."""
SPECIAL_PAGE_FACTOR = 0.8
"""Factor for pages that few users need: glossaries, legacy interfaces."""
OTHER_RELEASE_FACTOR = 0.35
"""Factor for pages about other releases than this one: upgrades to it, proposals for later ones."""
DEPRECATED_FACTOR = 0.5
"""Factor for content whose own text says not to use it any more."""
SHORT_FACTOR = 0.7
"""Factor for chunks of less than about three lines."""
PROSE_FACTOR = 0.65
"""Factor for chunks without code."""
README_FACTOR = 1.1
TUTORIAL_FACTOR = 1.25
"""Factors for examples in the README, and in quick starts and tutorials, which show what most users do."""
README_RANK = 0
"""Introduction rank of the README. Its prose names everything and explains little."""
_MAJOR_FOLDER = re.compile(r"(?:^|/)v(\d{1,2})/")
_SPECIAL_PAGE = re.compile(
    r"upgrad|migrat|whatsnew|deprecat|legacy|contribut|internals?|releasing|glossary|codemod"
    r"|(?:^|/)(?:neps?|peps?|rfcs?|adrs?|proposals?|history|historical[-_]\w+)/",
    re.IGNORECASE,
)
_OTHER_RELEASE = re.compile(
    r"(?:(?:^|/)(?:neps?|peps?|rfcs?|adrs?|proposals?|history|historical[-_]\w+|whatsnew)/.*"
    r"|(?:^|/)(?:upgrad(?:e|ing)(?![a-z])|migrat(?:e|ing)[-_]|migration[-_](?:guide|to|from))[^/]*)"
    r"\.(?:mdx?|markdown|rst|txt)$",
    re.IGNORECASE,
)
"""Pages of prose: an example or a module of such a name is about a history, or about what is upgraded."""
_INTERNAL_PATH = re.compile(
    r"(?:^|/)(?:_?internals?|_[a-z]\w*|compat|deprecated|impl|private|testing(?=/)|mypy|plugins?)(?:/|\.\w+$)"
    r"|(?:^|/)(?:core|helpers|utils?)/.*\.[cm]?[jt]s$"
)
_DEEP_TYPES = re.compile(r"(?:/[^/]+){2}\.d\.[cm]?ts$")
_DEPRECATED = re.compile(r"\bdeprecated\b", re.IGNORECASE)
_OLD_HEADING = re.compile(r"\b(?:deprecated|legacy)\b", re.IGNORECASE)
_MAX_DEPTH = 9
"""Folder depth from which all pages rank the same."""
_INTRODUCTION_PATHS = (
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
_PROJECT_HEADING = re.compile(
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


def apply_boosts(chunk: Chunk, metadata: Mapping[str, str], *, has_guides: bool = False) -> Chunk:
    """Return a chunk with another weight: lower if few users search for it, higher if a guide's example.

    `has_guides`: there are so many guides that content which they do not name is mostly not meant for users.
    """
    # the names in source are no headings: a function `deprecated` is not old
    headings = () if SOURCE_FILE.search(chunk.path) else (*chunk.breadcrumb, chunk.title)
    weight = chunk.weight
    if has_guides and _DEEP_TYPES.search(chunk.path):
        weight *= INTERNAL_FACTOR
    if _is_older_major(chunk.path, metadata.get("version", "")):
        weight *= OLDER_FACTOR
    if _INTERNAL_PATH.search(chunk.path):
        weight *= INTERNAL_FACTOR
    if _OTHER_RELEASE.search(chunk.path):
        weight *= OTHER_RELEASE_FACTOR
    elif _SPECIAL_PAGE.search(chunk.path):
        weight *= SPECIAL_PAGE_FACTOR
    if introduction_rank(chunk) is not None and is_about_project(chunk):
        weight *= INTERNAL_FACTOR
    elif chunk.code is not None and (rank := introduction_rank(chunk)) is not None:
        weight *= README_FACTOR if rank == README_RANK else TUTORIAL_FACTOR
    if chunk.code is None:
        weight *= PROSE_FACTOR * (INTERNAL_FACTOR if introduction_rank(chunk) == README_RANK else 1.0)
    if _DEPRECATED.search((chunk.text or "")[:300]) or any(map(_OLD_HEADING.search, headings)):
        weight *= DEPRECATED_FACTOR
    if len(chunk.code or "") + len(chunk.text or "") < 180:
        weight *= SHORT_FACTOR
    return chunk if weight == chunk.weight else replace(chunk, weight=weight)


def introduction_rank(chunk: Chunk) -> int | None:
    """Return the rank of a chunk in the library's introduction, 0 for the README; None if it is no part of
    it.

    Pages nearer to the top of the documentation come first.
    """
    if (
        _SPECIAL_PAGE.search(chunk.path)
        or _INTERNAL_PATH.search(chunk.path)
        or not chunk.path.lower().endswith((".md", ".mdx", ".markdown", ".rst", ".txt", "readme", ".py"))
    ):
        return None
    for group, pattern in enumerate(_INTRODUCTION_PATHS):
        if found := pattern.search(chunk.path):
            return group * (_MAX_DEPTH + 1) + min(chunk.path.count("/", 0, found.start()), _MAX_DEPTH)
    return None


def is_about_project(chunk: Chunk) -> bool:
    """True if a chunk is about the project and its people, not about the use of the library."""
    if (chunk.text or "").lower().count("sponsor") > 1:
        return True
    return any(_PROJECT_HEADING.fullmatch(heading) for heading in (*chunk.breadcrumb, chunk.title))


def _is_older_major(path: str, version: str) -> bool:
    major = re.match(r"\d+", version)
    return bool(major) and any(0 < int(found) < int(major[0]) for found in _MAJOR_FOLDER.findall(path))
