"""Bytes as text, in the charset they say or show."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from charset_normalizer import from_bytes

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEADER = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.IGNORECASE)
_DECLARED_WITHIN = 4096
_GUESSED_FROM = 24 * 1024
_TAGS = re.compile(rb"<[^<>]{0,2000}>|[\s\0]+")
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
    "utf-32": "utf-32-le",
}
"""What browsers read where a page names the charset on the left (the Encoding Standard's labels)."""
_LABELS = {
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "x-gbk": "gb18030",
    "ks_c_5601-1987": "cp949",
    "windows-949": "cp949",
    "x-euc-jp": "euc_jp",
    "x-mac-roman": "mac-roman",
    "utf8mb4": "utf-8",
    "unicode": "utf-8",
}
_NO_CHARSETS = frozenset({"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le")
_TOLERATED = 0.01
"""The share of characters that may be broken where a page says its charset."""


def decoded(body: bytes, content_type: str | None) -> str:
    """The text of a body: by its mark, its header, its own declaration, else by what its bytes look like."""
    for mark, charset in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, "replace")
    said = list(dict.fromkeys(_said(body, content_type)))
    if "utf-8" not in said[:1] and not body.isascii() and (text := _strictly(body, "utf-8")) is not None:
        return text  # text in another charset is next to never valid UTF-8
    for charset in said:
        if (text := _nearly(body, charset)) is not None:
            return text
    if (text := _strictly(body, "utf-8")) is not None:
        return text
    return body.decode(_guess(body) or "cp1252", "replace")


def _said(body: bytes, content_type: str | None) -> Iterator[str]:
    """What header and declaration name, as Python calls it; those that show otherwise are left out."""
    if wide := _wide(body):
        yield wide
        return
    start = body[:_DECLARED_WITHIN]
    header = _HEADER.search(content_type or "")
    for label in (header[1].encode() if header else b"", *_META.findall(start)[:1], *_XML.findall(start)[:1]):
        charset = _known(label.decode("ascii", "replace").lower())
        if charset and charset not in _WIDE:
            yield charset


def _wide(body: bytes) -> str | None:
    """UTF-16 without a mark: every other byte of its markup is zero."""
    start = body[:512]
    if len(start) < 8 or start.count(b"\0") < len(start) // 4:
        return None
    return "utf-16-le" if start[1::2].count(b"\0") >= start[::2].count(b"\0") else "utf-16-be"


def _known(label: str) -> str | None:
    try:
        found = codecs.lookup(_LABELS.get(label, label))
        "".encode(found.name)
    except (LookupError, ValueError):  # also for codecs that are no charsets
        return None
    return None if found.name in _NO_CHARSETS else _WIDER.get(found.name, found.name)


def _strictly(body: bytes, charset: str) -> str | None:
    """None when it does not fit; a character cut off at the end does not count."""
    try:
        return codecs.getincrementaldecoder(charset)().decode(body)
    except UnicodeError:
        return None


def _nearly(body: bytes, charset: str) -> str | None:
    if (text := _strictly(body, charset)) is not None:
        return text
    text = body.decode(charset, "replace")
    high = sum(1 for character in text if character > "\x7f") or 1
    broken = text.count("\ufffd")
    return text if broken <= len(text) * _TOLERATED and (broken * 4 <= high or broken < 4) else None


def _guess(body: bytes) -> str | None:
    """What the bytes of the text look like, markup left out."""
    sample = _TAGS.sub(b" ", body[: 16 * _GUESSED_FROM])[:_GUESSED_FROM]
    best = from_bytes(sample).best()
    return _WIDER.get(best.encoding.replace("_", "-"), best.encoding) if best else None
