"""Pieces as they are handed on: counted, within the budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from centgate.facts.libraries import Snippet
from centgate.libdocs.rows import Row
from centgate.libdocs.splitting import code_cut, text_parts
from centgate.tokens import fitting, snippet_tokens

SMALLEST = 40
"""Tokens left of a budget below which nothing more is looked for."""
PASSED_OVER = 12
"""Pieces too long for what is left after which nothing more is looked for."""
SHARES = (0.6, 0.35, 0.2, 0.1, 0.05)
"""How much of a piece is tried until it fits the budget."""
CUT = "(The rest of this passage is cut to fit the token budget.)"


def snippets_within(pieces: Iterable[Row], budget: int) -> list[Snippet]:
    """As many as fit, whole and in their order; the first is cut rather than left out."""
    snippets: list[Snippet] = []
    left, over = budget, 0
    for row in pieces:
        snippet = _snippet(row, row.code, row.text)
        if not snippets and snippet.tokens > budget:
            snippet = _cut(row, budget)
        if snippet.tokens <= left:
            snippets.append(snippet)
            left -= snippet.tokens
        else:
            over += 1
        if left < SMALLEST or over > PASSED_OVER:
            break
    return fitting(snippets, budget)


def _snippet(row: Row, code: str | None, text: str | None) -> Snippet:
    tokens = snippet_tokens(code, text, row.shown)
    return Snippet(row.shown, row.source_url, row.language if code else None, code, text, tokens)


def _cut(row: Row, budget: int) -> Snippet:
    """A piece brought within the budget: its text is shortened before its code is."""
    for code, text in _shortened(row):
        snippet = _snippet(row, code, text)
        if snippet.tokens <= budget:
            return snippet
    return _snippet(row, None, CUT)


def _shortened(row: Row) -> Iterator[tuple[str | None, str | None]]:
    for share in SHARES:
        text = _start(row.text, share)
        yield row.code, text
        yield (
            code_cut(row.code, max(200, int(len(row.code) * share)), row.language) if row.code else None,
            text,
        )


def _start(text: str | None, share: float) -> str | None:
    if not text:
        return None
    parts = text_parts(text, max(120, int(len(text) * share)))
    return f"{parts[0]}\n\n{CUT}" if len(parts) > 1 else text
