"""Convert ranked chunks to snippets within a token budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from centgate.libdocs.index.index_file import REPOSITORY_FOLDER, SITE_FOLDER
from centgate.libdocs.index.rows import ChunkRow
from centgate.libdocs.libraries import DocSnippet, SnippetOrigin
from centgate.libdocs.parse.code_check import close_fences
from centgate.libdocs.parse.text_split import cut_code, split_text
from centgate.libdocs.token_count import snippet_tokens

MIN_REMAINING = 40
"""Tokens left of a budget below which the search stops."""
MAX_SKIPPED = 12
"""Number of chunks too long for the rest of the budget above which the search stops."""
CUT_SHARES = (0.6, 0.35, 0.2, 0.1, 0.05)
"""Shares of a chunk that are tried until it fits the budget."""
CUT_NOTE = "(The rest of this passage is cut to fit the token budget.)"


def take_snippets(chunks: Iterable[ChunkRow], budget: int) -> list[DocSnippet]:
    """Return as many snippets as fit, whole and in order. The first is cut rather than dropped."""
    snippets: list[DocSnippet] = []
    remaining, skipped = budget, 0
    for row in chunks:
        snippet = _make_snippet(row, row.code, row.text)
        if not snippets and snippet.tokens > budget:
            snippet = _cut_to_budget(row, budget)
        if snippet.tokens <= remaining:
            snippets.append(snippet)
            remaining -= snippet.tokens
        else:
            skipped += 1
        if remaining < MIN_REMAINING or skipped > MAX_SKIPPED:
            break
    return snippets


def _make_snippet(row: ChunkRow, code: str | None, text: str | None) -> DocSnippet:
    tokens = snippet_tokens(code, text, row.title)
    return DocSnippet(
        row.title,
        row.source_url,
        row.language if code else None,
        code,
        text,
        tokens,
        complete=_is_complete(row, code),
        headings=tuple(row.trail.split("\n")),
        origin=_find_origin(row.page),
    )


def _find_origin(path: str) -> SnippetOrigin:
    if path.startswith(SITE_FOLDER):
        return "website"
    return "repository" if path.startswith(REPOSITORY_FOLDER) else "package"


def _is_complete(row: ChunkRow, code: str | None) -> bool | None:
    """Return the fact from the index; code that is cut here is no longer complete."""
    if code is None or row.complete is None:
        return None
    return bool(row.complete) and code == row.code


def _cut_to_budget(row: ChunkRow, budget: int) -> DocSnippet:
    """Fit a chunk into the budget: its text is shortened before its code."""
    for code, text in _iter_shortened(row):
        snippet = _make_snippet(row, code, text)
        if snippet.tokens <= budget:
            return snippet
    return _make_snippet(row, None, CUT_NOTE)


def _iter_shortened(row: ChunkRow) -> Iterator[tuple[str | None, str | None]]:
    for share in CUT_SHARES:
        text = _cut_text(row.text, share)
        yield row.code, text
        yield (
            cut_code(row.code, max(200, int(len(row.code) * share)), row.language) if row.code else None,
            text,
        )


def _cut_text(text: str | None, share: float) -> str | None:
    if not text:
        return None
    parts = split_text(text, max(120, int(len(text) * share)))
    if len(parts) < 2:
        return text
    return "\n\n".join([*close_fences(parts[:1]), CUT_NOTE])
