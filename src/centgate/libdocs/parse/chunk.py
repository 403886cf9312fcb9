"""A chunk of documentation, as it is indexed and shown."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from centgate.libdocs.parse.code_check import (
    CHECKED_LANGUAGES,
    close_fences,
    is_complete,
    mark_fragments,
    tidy_code,
)
from centgate.libdocs.parse.text_split import cut_code, split_code, split_text
from centgate.sanitize import clean_line, strip_invisible

PART_OF_CODE = re.compile(r" \(part \d+ of \d+\)$")
"""End of the title of a part of a long example."""
_EMPHASIS = re.compile(r"\*\*|`")
MAX_CODE_PARTS = 12
"""Maximum number of chunks that one block of code is divided into."""
MAX_TITLE = 160
"""Maximum characters of a title or of one heading above it."""
MAX_TEXT = 2400
"""Maximum characters of explanation in one chunk; longer text is split."""
MIN_TEXT = 50
"""Minimum characters of explanation in a chunk without code."""
MAX_CODE = 3600
"""Maximum characters of code in one chunk; longer code is cut."""
MAX_PART_CODE = MAX_CODE * 3 // 4
"""Maximum characters of a part of code that is divided."""
_PARAMETER = re.compile(r"^- `(\w{2,60})", re.MULTILINE)
_SCRIPT = re.compile(r"\.[cm]?[jt]sx?$")
_BLOB = re.compile(r"https://(?P<site>github\.com|gitlab\.com)/[^?#]*?/blob/")
_RENDERED = re.compile(r"\.(?:md|mdx|markdown|rst)(?:$|\?)", re.IGNORECASE)


class Chunk(Struct, frozen=True):
    """An explanation, code, or both, from one file."""

    title: str
    breadcrumb: tuple[str, ...]
    """Headings above the title, or its module and classes."""
    code: str | None
    language: str | None
    text: str | None
    source_url: str | None
    path: str
    names: tuple[str, ...] = ()
    """Names that this chunk defines or has as its heading: `Session.execute` and `execute`."""
    weight: float = 1.0
    """Factor for the score of a match: 1 for examples and guides, less for bare signatures."""
    complete: bool | None = None
    """True if the code parses by itself and nothing of it is cut; None without code, and if unchecked."""


def finalize_chunks(chunk: Chunk) -> list[Chunk]:
    """Sanitise a chunk and split it to sizes that can be shown. Returns an empty list if nothing is left."""
    return [_check_code(each) for each in _split_chunk(chunk)]


def _check_code(chunk: Chunk) -> Chunk:
    """Say if the code of a chunk is complete, and mark fragments of code inside its text."""
    text = mark_fragments(chunk.text) if chunk.text else chunk.text
    if chunk.code is None or chunk.language not in CHECKED_LANGUAGES:
        return replace(chunk, text=text, complete=None)
    if chunk.complete is False:
        return replace(chunk, text=text)
    complete = is_complete(chunk.code, chunk.language)
    if complete is False and chunk.language == "typescript" and is_complete(chunk.code, "tsx"):
        return replace(chunk, text=text, complete=True, language="tsx")
    return replace(chunk, text=text, complete=complete)


def _split_chunk(chunk: Chunk) -> list[Chunk]:
    title = _clean_heading(chunk.title)
    code = strip_invisible(chunk.code).strip("\n").expandtabs(4) if chunk.code else ""
    code = tidy_code(code, chunk.language)
    parts = close_fences(split_text(strip_invisible(chunk.text or "").strip(), MAX_TEXT))
    if not title or not (code.strip() or sum(map(len, parts)) >= MIN_TEXT):
        return []
    whole = replace(
        chunk,
        title=title,
        breadcrumb=tuple(filter(None, map(_clean_heading, chunk.breadcrumb))),
        code=cut_code(code, MAX_CODE, chunk.language) if code.strip() else None,
        language=chunk.language if code.strip() else None,
        complete=False if len(code) > MAX_CODE else chunk.complete,
        text=parts[0] if parts else None,
    )
    if len(code) > MAX_CODE and not chunk.names:
        return _split_code(whole, code, parts)
    if len(parts) < 2:
        return [whole]
    bare = replace(whole, code=None, language=None, complete=None)
    if not chunk.names:
        # prose leads to its code, so the code belongs to the last part of the prose
        return [*(replace(bare, text=part) for part in parts[:-1]), replace(whole, text=parts[-1])]
    return [whole, *(replace(bare, text=part, names=_parameter_names(chunk, part)) for part in parts[1:])]


def _split_code(chunk: Chunk, code: str, texts: list[str]) -> list[Chunk]:
    """Split an example that is too long for one chunk. The end of a very long one is cut."""
    parts = split_code(code, MAX_PART_CODE)
    if len(parts) > MAX_CODE_PARTS:
        parts = [
            *parts[: MAX_CODE_PARTS - 1],
            cut_code("\n".join(parts[MAX_CODE_PARTS - 1 :]), MAX_PART_CODE, chunk.language),
        ]
    chunks = [replace(chunk, code=None, language=None, text=text, complete=None) for text in texts[:-1]]
    for number, part in enumerate(parts, 1):
        text = "\n\n".join(
            [*texts[-1:], f"Part {number} of {len(parts)} of the code."] if number == 1 else []
        )
        title = f"{chunk.title} (part {number} of {len(parts)})"
        chunks.append(replace(chunk, title=title, code=part, text=text or None))
    return chunks


def standalone_title(chunk: Chunk) -> str:
    """Return a title that stands alone: qualified as the name is imported, or below the headings above it."""
    above = [part for part in chunk.breadcrumb if part.lower() != chunk.title.lower()]
    if chunk.names and chunk.path.endswith((".py", ".pyi", ".go")):
        return ".".join([*above, chunk.title])
    return (
        chunk.title if chunk.names and _SCRIPT.search(chunk.path) else " > ".join([*above[-2:], chunk.title])
    )


def link_to_lines(url: str | None, first: int, last: int) -> str | None:
    """Return a link to lines of a file, if the host supports such links."""
    if url is None or "#" in url:
        return url
    host = _BLOB.match(url)
    if host is None:
        return url
    # the hosts show the lines of rendered formats only in the plain view
    plain = "?plain=1" if _RENDERED.search(url) and "?" not in url else ""
    until = f"L{last}" if host["site"] == "github.com" else f"{last}"
    return f"{url}{plain}#L{first}" + (f"-{until}" if last > first else "")


def name_variants(qualified: str) -> tuple[str, ...]:
    """Return a dotted name and its last part."""
    last = re.split(r"[.#]", qualified)[-1]
    return (qualified, last) if last != qualified else (qualified,)


def _clean_heading(text: str) -> str | None:
    return clean_line(_EMPHASIS.sub("", text), MAX_TITLE)


def _parameter_names(chunk: Chunk, text: str) -> tuple[str, ...]:
    """Return the names of the parameters described in a later part of a long description."""
    if not chunk.names:
        return ()
    return tuple(f"{chunk.names[-1]}.{entry}" for entry in _PARAMETER.findall(text))[:40]
