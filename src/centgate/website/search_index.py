"""Index of all pages by section, for the search page and the search of every page's script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from centgate.website.markdown import heading_id

MAX_QUERY_WORDS, MAX_QUERY_CHARACTERS = 8, 100
MAX_RESULTS = 30
_MAX_EXCERPT = 140
_WORD = re.compile(r"[a-z0-9][a-z0-9_]{1,31}")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[`*|#>\\<]|\|?\s*-{3,}")


class SearchEntry(Struct, frozen=True):
    """One section of a page, or the beginning of a page."""

    page: str
    """Title of the page."""
    title: str
    """Title of the section; the page's title for its beginning."""
    path: str
    """Path with the section's id: `/paying#caps`."""
    excerpt: str
    words: frozenset[str]
    """All words of the section, in lower case."""


def index_page(title: str, path: str, description: str, markdown: str) -> Iterator[SearchEntry]:
    """Yield an entry for a page and for each of its second- and third-level sections."""
    counts: dict[str, int] = {}
    for at, (heading, lines) in enumerate(_split_markdown(markdown)):
        text = _plain_text(lines)
        if at == 0:
            words = f"{description} {title} {text}"
            yield SearchEntry(title, title, path, description, _words_of(words))
            continue
        name = heading_id(heading)
        counts[name] = counts.get(name, 0) + 1
        anchor = name if counts[name] == 1 else f"{name}-{counts[name]}"
        yield SearchEntry(title, heading, f"{path}#{anchor}", _cut_text(text), _words_of(f"{heading} {text}"))


def drop_repeated(entries: Iterable[SearchEntry]) -> list[SearchEntry]:
    """Return the entries without sections that an earlier page has in the same words, such as the errors."""
    unique: dict[tuple[str, frozenset[str]], SearchEntry] = {}
    for entry in entries:
        unique.setdefault((entry.title, entry.words), entry)
    return list(unique.values())


def _split_markdown(markdown: str) -> Iterator[tuple[str, list[str]]]:
    """Yield heading and lines of every part of a page; the first part is before any such heading."""
    heading, lines, fence = "", list[str](), ""
    for line in markdown.splitlines():
        if mark := _FENCE.match(line):
            fence = "" if fence and line.strip() == fence else fence or mark[1]
        found = None if fence else re.match(r"#{2,3} (.+)", line)
        if found:
            yield heading, lines
            heading, lines = _plain_text([found[1]]), []
        else:
            lines.append(line)
    yield heading, lines


def _cut_text(text: str) -> str:
    """Return the beginning of a text, cut between words."""
    return text if len(text) <= _MAX_EXCERPT else text[:_MAX_EXCERPT].rpartition(" ")[0] + " ..."


def _plain_text(lines: Sequence[str]) -> str:
    text = _MARKS.sub(" ", _LINK.sub(r"\1", " ".join(lines)))
    return " ".join(text.split())


@lru_cache(maxsize=4096)
def _words_of(text: str) -> frozenset[str]:
    """Return the words of a text; names in camelCase also by their parts."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return frozenset(_WORD.findall(f"{text} {spaced}".lower()))


def search(entries: Sequence[SearchEntry], query: str) -> list[SearchEntry]:
    """Return the entries that have a word beginning with each word of the query, best first.

    The script of the page ranks in the same way.
    """
    wanted = _WORD.findall(query[:MAX_QUERY_CHARACTERS].lower())[:MAX_QUERY_WORDS]
    scored = [(score, entry) for entry in entries if wanted and (score := _score_entry(entry, wanted))]
    scored.sort(key=lambda each: -each[0])
    return [entry for _, entry in scored[:MAX_RESULTS]]


def _score_entry(entry: SearchEntry, wanted: Sequence[str]) -> int:
    """Return the score of an entry: titles count most; 0 if a word is missing."""
    title, page = _words_of(entry.title), _words_of(entry.page)
    scores = [
        next(
            (
                points
                for points, words in ((9, title), (4, page), (1, entry.words))
                if any(each.startswith(word) for each in words)
            ),
            0,
        )
        for word in wanted
    ]
    return sum(scores) + (entry.title == entry.page) * 3 if all(scores) else 0
