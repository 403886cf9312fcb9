"""Extract the text of a PDF."""

from __future__ import annotations

import io
import logging
import re
import time
from collections.abc import Iterator

from pypdf import PdfReader
from pypdf.errors import FileNotDecryptedError, PyPdfError

from centgate.sanitize import clean_line
from centgate.web.extract.content_type import PARSER_ERRORS, Unreadable
from centgate.web.extract.markdown_syntax import escape_block_starts, normalize_markdown
from centgate.web.extract.metadata import MAX_NAME_LENGTH, MAX_TITLE_LENGTH, DocumentMetadata
from centgate.web.extract.pdf_tables import insert_tables, may_have_table

MAX_PAGES = 200
MAX_CHARACTERS = 400_000
"""Characters of text after which no further page is started."""
MAX_SECONDS = 3.0
"""Seconds of processor time after which no further page is started."""
_HYPHENATION = re.compile(r"(?<=[a-z])-\n(?=[a-z])")
_SPACES = re.compile(r"[ \t\xa0]+")
_READ_ERRORS = (PyPdfError, OSError, NotImplementedError, *PARSER_ERRORS)
"""Errors that pypdf raises for a broken file."""
_DRAWING = re.compile(rb"\b(?:Do|BI)\b")
"""Operators that draw an image (ISO 32000-1, 8.8 and 8.9.7)."""


def convert_pdf(body: bytes) -> tuple[str, DocumentMetadata, tuple[str, ...]]:
    """Return Markdown, metadata and warnings. Raises Unreadable if there is no text."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(body), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("the PDF is locked with a password")
        count = len(reader.pages)
        pages = list(_iter_page_texts(reader, count))
        metadata = _read_metadata(reader)
    except FileNotDecryptedError:
        raise Unreadable("the PDF is locked with a password") from None
    except _READ_ERRORS as error:
        raise Unreadable("the PDF is broken") from error
    text = normalize_markdown("\n\n".join(page for page in pages if page))
    if not text.strip():
        raise Unreadable("the PDF has no text: its pages are images")
    warnings: list[str] = []
    if len(pages) < count:
        warnings.append(f"only the first {len(pages)} of the PDF's {count:,} pages were read")
    if scanned := sum(page is None for page in pages):
        warnings.append(
            f"on {scanned} of the PDF's pages there are images and no text: text in images is not read"
        )
    return text, metadata, tuple(warnings)


def _iter_page_texts(reader: PdfReader, count: int) -> Iterator[str | None]:
    """Yield the text of each page; None for a page that has images alone."""
    deadline, remaining = time.process_time() + MAX_SECONDS, MAX_CHARACTERS
    for number in range(min(count, MAX_PAGES)):
        if time.process_time() > deadline or remaining <= 0:
            return
        # a page is not cut here but with the whole text, which then says so
        text = _extract_page_text(reader, number, has_time=time.process_time() < deadline - MAX_SECONDS / 2)
        remaining -= len(text)
        yield text if text.strip() or not _has_image(reader, number) else None


def _extract_page_text(reader: PdfReader, number: int, *, has_time: bool) -> str:
    """Return a page's lines, with hyphenated words joined, and with its tables if there is time for them."""
    text = _HYPHENATION.sub("", reader.pages[number].extract_text() or "")
    plain = "\n".join(_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    escaped = escape_block_starts(plain)
    if not has_time or not may_have_table(plain):
        return escaped
    return insert_tables(plain, escaped, _extract_layout(reader, number))


def _extract_layout(reader: PdfReader, number: int) -> str:
    """Return a page with spaces for the distances between its parts; empty if they cannot be found."""
    try:
        return reader.pages[number].extract_text(extraction_mode="layout") or ""
    except _READ_ERRORS:
        return ""


def _has_image(reader: PdfReader, number: int) -> bool:
    """True if a page draws an image. It is not decoded."""
    try:
        page = reader.pages[number]
        contents = page.get_contents()
        # an empty page can have the images of all the others among its resources
        return contents is not None and bool(_DRAWING.search(contents.get_data()) and page.images.keys())
    except _READ_ERRORS:
        return False  # a broken image does not cost the text of other pages


def _read_metadata(reader: PdfReader) -> DocumentMetadata:
    try:
        info = reader.metadata
        if info is None:
            return DocumentMetadata()
        created, modified = info.creation_date, info.modification_date
        return DocumentMetadata(
            title=clean_line(info.title, MAX_TITLE_LENGTH),
            author=clean_line(info.author, MAX_NAME_LENGTH),
            description=clean_line(info.subject, MAX_TITLE_LENGTH),
            published=created.replace(microsecond=0).isoformat() if created else None,
            modified=modified.replace(microsecond=0).isoformat() if modified else None,
        )
    except _READ_ERRORS:
        return DocumentMetadata()
