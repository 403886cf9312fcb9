"""A piece of documentation, as it is indexed and shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from centgate.libdocs.splitting import code_cut, code_parts, text_parts
from centgate.text import cleaned, legible

_EMPHASIS = re.compile(r"\*\*|`")
PARTS = 12
"""Pieces that one block of code is divided into at most."""
TITLE = 160
"""Characters of a title or of one heading above it."""
TEXT = 2400
"""Characters of explanation in one piece; what is longer is split."""
SHORTEST = 50
"""Characters of explanation below which a piece without code says nothing."""
CODE = 3600
"""Characters of code in one piece; what is longer is cut."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An explanation, code, or both, from one file."""

    title: str
    breadcrumb: tuple[str, ...]
    """What the title stands below: headings, or a module and classes."""
    code: str | None
    language: str | None
    text: str | None
    source_url: str | None
    path: str
    names: tuple[str, ...] = ()
    """Names of the library that this piece defines or is headed by, `Session.execute` beside `execute`."""
    weight: float = 1.0
    """How much a match is worth: examples and guides 1, bare signatures less."""


def finished(piece: Piece) -> list[Piece]:
    """A piece made legible and brought to a size that can be shown; empty when nothing is left of it."""
    title = _heading(piece.title)
    code = legible(piece.code).strip("\n").expandtabs(4) if piece.code else ""
    parts = text_parts(legible(piece.text or "").strip(), TEXT)
    if not title or not (code.strip() or sum(map(len, parts)) >= SHORTEST):
        return []
    whole = replace(
        piece,
        title=title,
        breadcrumb=tuple(filter(None, map(_heading, piece.breadcrumb))),
        code=code_cut(code, CODE, piece.language) if code.strip() else None,
        language=piece.language if code.strip() else None,
        text=parts[0] if parts else None,
    )
    if len(code) > CODE and not piece.names:
        return _in_parts(whole, code, parts)
    if len(parts) < 2:
        return [whole]
    bare = replace(whole, code=None, language=None)
    if not piece.names:
        # prose leads to its code, so it is the last part that the code belongs to
        return [*(replace(bare, text=part) for part in parts[:-1]), replace(whole, text=parts[-1])]
    return [whole, *(replace(bare, text=part, names=_entries(piece, part)) for part in parts[1:])]


def _in_parts(piece: Piece, code: str, texts: list[str]) -> list[Piece]:
    """An example too long for one piece, a part of its code in each; the end of a very long one is cut."""
    parts = code_parts(code, CODE * 3 // 4)
    if len(parts) > PARTS:
        parts = [*parts[: PARTS - 1], code_cut("\n".join(parts[PARTS - 1 :]), CODE * 3 // 4, piece.language)]
    pieces = [replace(piece, code=None, language=None, text=text) for text in texts[:-1]]
    for number, part in enumerate(parts, 1):
        text = "\n\n".join(
            [*texts[-1:], f"Part {number} of {len(parts)} of the code."] if number == 1 else []
        )
        title = f"{piece.title} (part {number} of {len(parts)})"
        pieces.append(replace(piece, title=title, code=part, text=text or None))
    return pieces


def titled(piece: Piece) -> str:
    """A title that stands alone: qualified as a name is imported, or below the headings above it."""
    above = [part for part in piece.breadcrumb if part.lower() != piece.title.lower()]
    if piece.names and piece.path.endswith((".py", ".pyi")):
        return ".".join([*above, piece.title])
    return (
        piece.title if piece.names and _SCRIPT.search(piece.path) else " > ".join([*above[-2:], piece.title])
    )


def anchored(url: str | None, first: int, last: int) -> str | None:
    """A link to lines of a file, where the host is known to have such links."""
    if url is None or "#" in url:
        return url
    host = _BLOB.match(url)
    if host is None:
        return url
    # rendered files show their lines only when asked for plainly
    plain = "?plain=1" if _RENDERED.search(url) and "?" not in url else ""
    until = f"L{last}" if host["site"] == "github.com" else f"{last}"
    return f"{url}{plain}#L{first}" + (f"-{until}" if last > first else "")


def names_of(qualified: str) -> tuple[str, ...]:
    """A dotted name and its last part."""
    last = re.split(r"[.#]", qualified)[-1]
    return (qualified, last) if last != qualified else (qualified,)


def _heading(text: str) -> str | None:
    return cleaned(_EMPHASIS.sub("", text), TITLE)


def _entries(piece: Piece, text: str) -> tuple[str, ...]:
    """The parameters that a later part of a long description is about."""
    if not piece.names:
        return ()
    return tuple(f"{piece.names[-1]}.{entry}" for entry in _ENTRY.findall(text))[:40]


_ENTRY = re.compile(r"^- `(\w{2,60})", re.MULTILINE)
_SCRIPT = re.compile(r"\.[cm]?[jt]sx?$")
_BLOB = re.compile(r"https://(?P<site>github\.com|gitlab\.com)/[^?#]*?/blob/")
_RENDERED = re.compile(r"\.(?:md|mdx|markdown|rst)(?:$|\?)", re.IGNORECASE)
