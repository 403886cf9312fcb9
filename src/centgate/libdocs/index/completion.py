"""Complete the first chunks of an answer with what the index has beside them.

A chunk alone is often half an answer: a signature without a call, code without what it needs, or without the
line that uses it. Everything that is added is text of the library, and names the place it is from unless this
is the page of the chunk.
"""

from __future__ import annotations

import re
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from centgate.libdocs.index.code_context import find_context
from centgate.libdocs.index.code_names import find_defined, mentions
from centgate.libdocs.index.declarations import DeclarationPart, find_fields, find_usage
from centgate.libdocs.index.rows import ChunkRow, find_own_names, read_chunks, section_trail
from centgate.libdocs.parse.code_check import CHECKED_LANGUAGES, FRAGMENT_WORD
from centgate.libdocs.token_count import count_tokens, snippet_tokens

PLACES = 3
"""Number of first chunks that are completed."""
MAX_TOKENS = 700
"""Maximum tokens of a completed chunk; a longer one stays as it is."""
BUDGET_SHARE = 3
"""Part of the remaining budget that a completed chunk may take: a third."""
CONTEXT_SHARE = 8
"""Part of these tokens that imports may take in addition: an eighth."""
MAX_UNRELATED = 350
"""Tokens up to which neighbours are added that share no names with a chunk."""
MAX_NEIGHBOURS = 6
"""Number of chunks of its section on each side of a chunk that are read."""
MAX_TYPES = 2
"""Maximum number of types whose fields are added."""
CHARACTERS_PER_TOKEN = 3.4
"""Characters of English and code that count as a token; the median of snippets is 3.6."""
CONTEXT_NOTE = "From the code above on this page:"
CODE_NOTE = "(The code of this snippet stands here.)"
_LINES = re.compile(r"#L(?P<first>\d+)(?:-L?(?P<last>\d+))?$|$")


def complete_chunks(
    database: sqlite3.Connection, ranked: Iterable[ChunkRow], budget: int
) -> Iterator[ChunkRow]:
    """Yield ranked chunks, the first ones completed; what was added to them does not follow again."""
    rows = list(ranked)
    completion = _Completion(database, [row.id for row in rows])
    remaining, places = budget, 0
    for row in rows:
        if row.id in completion.given:
            continue
        if places < PLACES:
            completed = completion.complete(row, min(MAX_TOKENS, remaining // BUDGET_SHARE))
            fitting = [each for each in (completed, row) if _count_exactly(each) <= remaining]
            row = fitting[0] if fitting else row
            # the first is cut to the budget; another one that does not fit is left out, and takes none of it
            if fitting or not places:
                remaining -= _count_exactly(row)
            places += 1
        yield row


class _Completion(Struct):
    """Completes the chunks of one answer; knows what the answer has already."""

    database: sqlite3.Connection
    ranked: Sequence[int]
    """IDs of the chunks that answer the question, best first."""
    given: set[int] = field(default_factory=set[int])
    """IDs of the chunks in the answer."""

    def complete(self, row: ChunkRow, limit: int) -> ChunkRow:
        """Return a chunk with what belongs to it, of at most about `limit` tokens."""
        self.given.add(row.id)
        if _count(row) >= limit:
            return self._add_context(row, _count(row) + limit // CONTEXT_SHARE)
        completed = self._add_section(row, limit)
        names = find_own_names(self.database, row)
        if names and not completed.shows_call:
            usage = find_usage(self.database, row, names, self.ranked)
            completed = self._add_parts(completed, usage, limit, most=1)
        if names and row.language in ("typescript", "tsx"):
            fields = find_fields(self.database, row)
            completed = self._add_parts(completed, fields, limit, most=MAX_TYPES)
        return self._add_context(completed, limit + limit // CONTEXT_SHARE)

    def _add_context(self, row: ChunkRow, limit: int) -> ChunkRow:
        """Add the imports and objects that code uses, from the code above it."""
        context = "\n".join(find_context(self.database, row))
        longer = _append(row, f"{CONTEXT_NOTE}\n\n```{row.language}\n{context}\n```")
        return longer if context and _count(longer) <= limit else row

    def _add_section(self, row: ChunkRow, limit: int) -> ChunkRow:
        """Return a chunk with those of its section that use its names, or define what it uses; in a short
        section with the others too.
        """
        before, after = self._read_section(row)
        group = deque([row])
        for is_related, most in ((True, limit), (False, min(limit, MAX_UNRELATED))):
            while side := _choose_side(group, before, after, related=is_related):
                if sum(map(_count, group)) + _count(side[0]) > most:
                    side.clear()
                elif side is before:
                    group.appendleft(before.popleft())
                else:
                    group.append(after.popleft())
        self.given.update(each.id for each in group)
        return _merge_section(row, group)

    def _read_section(self, row: ChunkRow) -> tuple[deque[ChunkRow], deque[ChunkRow]]:
        """Return the chunks before and after a chunk in its section, the nearest first."""
        numbers_before = range(row.id - 1, row.id - MAX_NEIGHBOURS - 1, -1)
        numbers_after = range(row.id + 1, row.id + MAX_NEIGHBOURS + 1)
        found = {each.id: each for each in read_chunks(self.database, (*numbers_before, *numbers_after))}
        before, after = (
            deque(self._iterate_section(row, map(found.get, numbers)))
            for numbers in (numbers_before, numbers_after)
        )
        return before, after

    def _iterate_section(self, row: ChunkRow, neighbours: Iterable[ChunkRow | None]) -> Iterator[ChunkRow]:
        for each in neighbours:
            if each is None or not self._can_add(each) or _section(each) != _section(row):
                return
            yield each

    def _add_parts(
        self, row: ChunkRow, parts: Iterable[DeclarationPart], limit: int, *, most: int
    ) -> ChunkRow:
        """Add the first parts that fit."""
        added = 0
        for part in parts:
            longer = _append(row, f"{part.label}:\n\n{_fence(part.row)}")
            is_short = _estimate_tokens(part.row.code or "") <= part.max_tokens and _count(longer) <= limit
            if is_short and self._can_add(part.row):
                row, added = longer, added + 1
                self.given.add(part.row.id)
            if added == most:
                break
        return row

    def _can_add(self, row: ChunkRow) -> bool:
        return row.id not in self.given and "```" not in (row.code or "")


def _choose_side(
    group: Sequence[ChunkRow], before: deque[ChunkRow], after: deque[ChunkRow], *, related: bool
) -> deque[ChunkRow] | None:
    """Return the side whose nearest chunk belongs to the group; None if there is none."""
    if not related:
        # what precedes introduces, what follows is more special
        return before or after or None
    if after and not any(each.code for each in group):
        return after
    code = "\n".join(each.code or "" for each in group)
    if before and mentions(code, find_defined(before[0].code or "") - find_defined(code)):
        return before
    if after and mentions(after[0].code or "", find_defined(code)):
        return after
    return None


def _merge_section(row: ChunkRow, group: Sequence[ChunkRow]) -> ChunkRow:
    """Return a chunk with the text of the others around its own, and their code in this text.

    A note stands where its own code does on the page, if something follows.
    """
    main = row if row.code else next((each for each in group if each.code), row)
    parts: list[str] = []
    for each in group:
        parts += [each.text] if each.text else []
        if each is not main:
            parts += [_fence(each)] if each.code else []
        elif each.code and each is not group[-1]:
            parts.append(CODE_NOTE)
    return replace(
        row,
        code=main.code,
        language=main.language,
        complete=main.complete,
        shows_call=max(each.shows_call for each in group),
        text="\n\n".join(parts) or None,
        source_url=_join_links([each.source_url for each in group]),
    )


def _join_links(links: Sequence[str | None]) -> str | None:
    """Return a link to the lines from the first link to the last one, if all are of one file."""
    first, last = links[0] or "", links[-1] or ""
    start, end = _LINES.search(first), _LINES.search(last)
    if not (start and end and start["first"] and end["first"]):
        return links[0]
    file = first[: start.start()]
    if file != last[: end.start()]:
        return links[0]
    mark = "-L" if "github.com" in file else "-"
    return f"{file}#L{start['first']}{mark}{end['last'] or end['first']}"


def _append(row: ChunkRow, text: str) -> ChunkRow:
    return replace(row, text=f"{row.text}\n\n{text}" if row.text else text)


def _fence(row: ChunkRow) -> str:
    """Return the code of a chunk in a fence, which says if it is a fragment."""
    mark = f" {FRAGMENT_WORD}" if row.language in CHECKED_LANGUAGES and row.complete == 0 else ""
    return f"```{row.language or ''}{mark}\n{row.code}\n```"


def _section(row: ChunkRow) -> tuple[str, str]:
    return row.page, section_trail(row.trail)


def _count(row: ChunkRow) -> int:
    return _estimate_tokens(f"{row.text or ''}{row.code or ''}")


def _count_exactly(row: ChunkRow) -> int:
    return snippet_tokens(row.code, row.text, row.title)


def _estimate_tokens(text: str) -> int:
    """Return about the number of tokens in a text; to count them takes longer than all else here."""
    return int(len(text) / CHARACTERS_PER_TOKEN) if text.isascii() else count_tokens(text)
