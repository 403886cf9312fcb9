"""Decode text in the charset that is declared or detected."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.IGNORECASE)
_WIDE_MARKUP = {
    "utf-16-le": re.compile(rb"(?:[ \t\r\n]\0)*<\0[!?a-zA-Z]\0"),
    "utf-16-be": re.compile(rb"(?:\0[ \t\r\n])*\0<\0[!?a-zA-Z]"),
}
"""Beginnings of markup, which no other charset has."""
_LANGUAGE = re.compile(rb"<html[^>]{0,500}?\slang\s*=\s*[\"']?([a-z]{2})", re.IGNORECASE)
_WESTERN_LANGUAGES = frozenset(b"ca da de es eu fi fr gl is it nb nl nn no pt sv".split())
"""Languages that are written in Windows-1252. Without English, which pages in any language declare."""
_DECLARATION_BYTES = 4096
_GUESS_BYTES = 24 * 1024
_TAGS = re.compile(rb"<[^<>]{0,2000}>|[\s\0]+")
_SUPERSETS = {
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
"""Charsets that browsers use in place of the declared one (labels of the Encoding Standard)."""
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
_NOT_CHARSETS = frozenset({"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
_WIDE_CHARSETS = ("utf-16-le", "utf-16-be", "utf-32-le")
_MAX_INVALID_SHARE = 0.01
"""Share of characters that may be invalid in the charset that a page declares."""


def decode_text(body: bytes, content_type: str | None) -> str:
    """Decode a body by its byte order mark, its header, its own declaration, else by detection."""
    for bom, charset in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(charset, "replace")
    candidates = list(dict.fromkeys(_candidate_charsets(body, content_type)))
    if (
        "utf-8" not in candidates[:1]
        and not body.isascii()
        and (text := _decode_strict(body, "utf-8")) is not None
    ):
        return text  # text in another charset is almost never valid UTF-8
    for charset in candidates:
        if (text := _decode_tolerant(body, charset)) is not None:
            return text
    if (text := _decode_utf8(body)) is not None:
        return text
    return body.decode(_guess_charset(body) or "cp1252", "replace")


def is_wide(beginning: bytes) -> bool:
    """True if a body is in UTF-16 or UTF-32, by its byte order mark, its markup or its zero bytes."""
    has_mark = beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return has_mark or bool(_detect_wide_markup(beginning)) or beginning.count(b"\0") * 5 > len(beginning) * 2


def decode_wide(beginning: bytes) -> str:
    """Decode the beginning of a body in UTF-16 or UTF-32, by its byte order mark, else by its zero bytes."""
    for bom, charset in _BOMS:
        if beginning.startswith(bom):
            return beginning[len(bom) :].decode(charset, "replace")
    return beginning.decode(_detect_utf16(beginning) or "utf-16-le", "replace")


def _candidate_charsets(body: bytes, content_type: str | None) -> Iterator[str]:
    """Yield the declared charsets under their Python names, without those that the bytes contradict."""
    if utf16 := _detect_utf16(body):
        yield utf16
        return
    beginning = body[:_DECLARATION_BYTES]
    header = _HEADER_CHARSET.search(content_type or "")
    for label in (
        header[1].encode() if header else b"",
        *_META_CHARSET.findall(beginning)[:1],
        *_XML_CHARSET.findall(beginning)[:1],
    ):
        charset = _python_charset(label.decode("ascii", "replace").lower())
        if charset and charset not in _WIDE_CHARSETS:
            yield charset


def _detect_utf16(body: bytes) -> str | None:
    """Detect UTF-16 without a byte order mark: every other byte of its markup is zero."""
    if charset := _detect_wide_markup(body):
        return charset
    beginning = body[:512]
    if len(beginning) < 8 or beginning.count(b"\0") < len(beginning) // 4:
        return None
    return "utf-16-le" if beginning[1::2].count(b"\0") >= beginning[::2].count(b"\0") else "utf-16-be"


def _detect_wide_markup(body: bytes) -> str | None:
    return next((charset for charset, markup in _WIDE_MARKUP.items() if markup.match(body)), None)


def _python_charset(label: str) -> str | None:
    try:
        codec = codecs.lookup(_LABELS.get(label, label))
        "".encode(codec.name)
    except (LookupError, ValueError):  # also raised for codecs that are not charsets
        return None
    return None if codec.name in _NOT_CHARSETS else _SUPERSETS.get(codec.name, codec.name)


def _decode_strict(body: bytes, charset: str) -> str | None:
    """Return None if a byte is invalid; a character cut off at the end does not count."""
    try:
        return codecs.getincrementaldecoder(charset)().decode(body)
    except UnicodeError:
        return None


def _decode_tolerant(body: bytes, charset: str) -> str | None:
    """Return None if too many bytes are invalid."""
    if (text := _decode_strict(body, charset)) is not None:
        return text
    text = body.decode(charset, "replace")
    if charset == "utf-8" and _is_mostly_valid(text):
        return text
    invalid = text.count("\ufffd")
    are_few = invalid <= len(text) * _MAX_INVALID_SHARE
    return text if are_few and (invalid < 4 or _is_mostly_valid(text)) else None


def _decode_utf8(body: bytes) -> str | None:
    """Return None if the bytes are not mostly valid: they are hardly ever by chance, also in a short text."""
    if (text := _decode_strict(body, "utf-8")) is not None:
        return text
    text = body.decode("utf-8", "replace")
    return text if _is_mostly_valid(text) else None


def _is_mostly_valid(text: str) -> bool:
    """True if a quarter of the characters outside of ASCII at most are invalid."""
    non_ascii = sum(1 for character in text if character > "\x7f") or 1
    return text.count("\ufffd") * 4 <= non_ascii


def _guess_charset(body: bytes) -> str | None:
    """Detect the charset of the text, ignoring markup."""
    from charset_normalizer import from_bytes  # late, see `runtime.LATE_MODULES`

    sample = _TAGS.sub(b" ", body[: 16 * _GUESS_BYTES])[:_GUESS_BYTES]
    best = from_bytes(sample).best()
    language = _LANGUAGE.search(body[:_DECLARATION_BYTES])
    if best and language and language[1].lower() in _WESTERN_LANGUAGES and _is_latin(str(best)):
        return "cp1252"  # a short text may look more like that of a similar charset
    return _SUPERSETS.get(best.encoding.replace("_", "-"), best.encoding) if best else None


def _is_latin(text: str) -> bool:
    """True if all letters are Latin."""
    return all(letter < "\u0250" or "\u1e00" <= letter < "\u1f00" for letter in set(text) if letter.isalpha())
