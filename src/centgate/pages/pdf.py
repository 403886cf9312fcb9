"""The text of a PDF."""

from __future__ import annotations

import io
import logging
import re
import time
from collections.abc import Iterator

from pypdf import PdfReader
from pypdf.errors import FileNotDecryptedError, PyPdfError

from centgate.pages.kinds import Unreadable
from centgate.pages.marks import plain, tidy
from centgate.pages.metadata import LONGEST_NAME, LONGEST_TITLE, Metadata
from centgate.text import cleaned

MOST_PAGES = 200
MOST_CHARACTERS = 400_000
SECONDS = 3.0
"""After which no further page is begun."""
_BROKEN_WORD = re.compile(r"(?<=[a-z])-\n(?=[a-z])")
_SPACES = re.compile(r"[ \t\xa0]+")


def pdf_of(body: bytes) -> tuple[str, Metadata, tuple[str, ...]]:
    """Text as Markdown, metadata and what to know of it; Unreadable when there is no text to be had."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(body), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("the PDF is locked with a password")
        count = len(reader.pages)
        pages = list(_pages(reader, count))
        metadata = _metadata(reader)
    except FileNotDecryptedError:
        raise Unreadable("the PDF is locked with a password") from None
    except (
        PyPdfError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        OSError,
        NotImplementedError,
        AssertionError,
    ) as error:  # a broken file breaks its reader in many ways
        raise Unreadable("the PDF is broken") from error
    text = tidy("\n\n".join(page for page in pages if page))
    if not text.strip():
        raise Unreadable("the PDF has no text in it: its pages are pictures")
    short = (
        (f"only the first {len(pages)} of the PDF's {count} pages were read",) if len(pages) < count else ()
    )
    return text, metadata, short


def _pages(reader: PdfReader, count: int) -> Iterator[str]:
    until, left = time.monotonic() + SECONDS, MOST_CHARACTERS
    for number in range(min(count, MOST_PAGES)):
        if time.monotonic() > until or left <= 0:
            return
        text = _page(reader, number)[:left]
        left -= len(text)
        yield text


def _page(reader: PdfReader, number: int) -> str:
    """A page's lines, words that were broken at their ends joined."""
    text = _BROKEN_WORD.sub("", reader.pages[number].extract_text() or "")
    return plain("\n".join(_SPACES.sub(" ", line).strip() for line in text.split("\n")))


def _metadata(reader: PdfReader) -> Metadata:
    try:
        said = reader.metadata
        if said is None:
            return Metadata()
        created, modified = said.creation_date, said.modification_date
        return Metadata(
            title=cleaned(said.title, LONGEST_TITLE),
            author=cleaned(said.author, LONGEST_NAME),
            description=cleaned(said.subject, LONGEST_TITLE),
            published=created.replace(microsecond=0).isoformat() if created else None,
            modified=modified.replace(microsecond=0).isoformat() if modified else None,
        )
    except (PyPdfError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Metadata()
