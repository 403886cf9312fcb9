"""Decoding of bytes as text: declared, detected and wrong charsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.web.extract.charset import decode_text

GERMAN = "Die Br\u00fccke \u00fcber den Flu\u00df \u2013 \u201ealt\u201c und sch\u00f6n. "
JAPANESE = (
    "\u5409\u8f29\u306f\u732b\u3067\u3042\u308b\u3002\u540d\u524d\u306f\u307e\u3060\u7121\u3044"
    "\u3002\u3069\u3053\u3067\u751f\u308c\u305f\u304b\u3068\u3093\u3068\u898b\u5f53\u304c\u3064"
    "\u304b\u306c\u3002"
)
CHINESE = (
    "\u5b78\u800c\u6642\u7fd2\u4e4b\uff0c\u4e0d\u4ea6\u8aaa\u4e4e\u3002\u6709\u670b\u81ea\u9060"
    "\u65b9\u4f86\uff0c\u4e0d\u4ea6\u6a02\u4e4e\u3002"
)
RUSSIAN = (
    "\u0412\u0441\u0435 \u0441\u0447\u0430\u0441\u0442\u043b\u0438\u0432\u044b\u0435 \u0441\u0435"
    "\u043c\u044c\u0438 \u043f\u043e\u0445\u043e\u0436\u0438 \u0434\u0440\u0443\u0433 \u043d\u0430"
    " \u0434\u0440\u0443\u0433\u0430. "
)
POLISH = (
    "\u017b\u00f3\u0142ty \u017arebak pi\u0142 wod\u0119 ze \u017ar\u00f3d\u0142a, a \u015bnieg spad\u0142."
)
KOREAN = (
    "\ub098\ub77c\uc758 \ub9d0\uc774 \uc911\uad6d\uacfc \ub2ec\ub77c \ubb38\uc790\uc640 \uc11c"
    "\ub85c \ud1b5\ud558\uc9c0 \uc544\ub2c8\ud558\ubbc0\ub85c. "
)


@pytest.mark.parametrize(
    ("text", "charset", "label"),
    [
        (GERMAN, "cp1252", "ISO-8859-1"),
        (GERMAN, "cp1252", "windows-1252"),
        (JAPANESE, "shift_jis", "Shift_JIS"),
        (JAPANESE, "cp932", "x-sjis"),
        (JAPANESE, "euc_jp", "EUC-JP"),
        (JAPANESE, "iso2022_jp", "ISO-2022-JP"),
        (CHINESE, "gb18030", "gb2312"),
        (CHINESE, "big5", "Big5"),
        (RUSSIAN, "koi8-r", "KOI8-R"),
        (RUSSIAN, "cp1251", "windows-1251"),
        (KOREAN, "cp949", "ks_c_5601-1987"),
        (KOREAN, "utf-8", "utf8"),
    ],
)
def test_charset_is_declared_by_header_or_page(text: str, charset: str, label: str) -> None:
    page = f'<html><head><meta charset="{label}"></head><body>{text}'
    old = f'<meta http-equiv="Content-Type" content="text/html; charset={label}">{text}'
    xml = f'<?xml version="1.0" encoding="{label}"?><a>{text}</a>'

    assert decode_text(text.encode(charset), f"text/html; charset={label}") == text
    for document in (page, old, xml):
        assert decode_text(document.encode(charset), "text/html") == document


@pytest.mark.parametrize("charset", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_unicode_is_detected_by_bom_or_zeros(charset: str) -> None:
    document = f"<html><body>{GERMAN}{JAPANESE}"

    assert decode_text(document.encode(charset), "text/html; charset=iso-8859-1") == document


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [RUSSIAN, JAPANESE, KOREAN])
def test_unicode_is_detected_by_its_markup(text: str, charset: str) -> None:
    document = f"\n<!doctype html><p>{text * 20}"

    assert decode_text(document.encode(charset), "text/html; charset=utf-16") == document


@pytest.mark.parametrize(
    ("text", "charset"),
    [(GERMAN, "cp1252"), (RUSSIAN, "cp1251"), (JAPANESE, "cp932"), (CHINESE, "gb18030"), (KOREAN, "cp949")],
)
def test_undeclared_charset_is_guessed_from_text(text: str, charset: str) -> None:
    document = f"<html><body><p>{text * 20}</p>"

    assert decode_text(document.encode(charset), None) == document


@pytest.mark.parametrize(
    ("language", "text", "charset"),
    [
        (
            "pt-BR",
            "A educa\u00e7\u00e3o n\u00e3o \u00e9 s\u00f3 um direito; voc\u00ea est\u00e1 \u00e0 espera.",
            "cp1252",
        ),
        ("sv", "P\u00e5 l\u00f6rdag \u00e5ker vi till sj\u00f6n f\u00f6r att f\u00e5nga \u00e5l.", "cp1252"),
        ("pl", POLISH, "cp1250"),
        ("en", POLISH, "cp1250"),
        ("it", RUSSIAN * 3, "cp1251"),
    ],
)
@pytest.mark.parametrize("declaration", ["", "<meta charset=utf-8>"])
def test_language_decides_between_latin_charsets(
    language: str, text: str, charset: str, declaration: str
) -> None:
    page = f'<!doctype html><html lang="{language}">{declaration}<p>{text}</p>'.encode(charset)

    assert text in decode_text(page, "text/html")


def test_utf_8_is_detected_despite_declaration() -> None:
    assert decode_text(GERMAN.encode(), "text/html; charset=iso-8859-1") == GERMAN


def test_one_invalid_byte_does_not_change_charset() -> None:
    body = GERMAN.encode() * 40 + b"\xff" + GERMAN.encode() * 40

    assert decode_text(body, "text/html; charset=utf-8").count("Br\u00fccke") == 80


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "text/html", None])
@pytest.mark.parametrize("text", [RUSSIAN, JAPANESE, CHINESE, KOREAN])
def test_invalid_bytes_in_short_text_do_not_change_charset(text: str, content_type: str | None) -> None:
    body = f"<p>{text}".encode() + b"\xff\xfe" + f"{text}</p>".encode()

    assert decode_text(body, content_type) == f"<p>{text}\ufffd\ufffd{text}</p>"


def test_truncated_last_character_does_not_change_charset() -> None:
    body = (JAPANESE * 20).encode("cp932")[:-1]

    assert decode_text(body, "text/html; charset=shift_jis").startswith(JAPANESE)


@pytest.mark.parametrize(
    "label", ["utf-7", "rot13", "base64", "punycode", "unicode_escape", "nonsense", "\x00", "x" * 500]
)
def test_unknown_charset_names_are_ignored(label: str) -> None:
    assert decode_text(GERMAN.encode(), f"text/html; charset={label}") == GERMAN


@given(
    st.binary(max_size=300),
    st.sampled_from([None, "text/html", "text/html; charset=utf-16", "x; charset=gbk"]),
)
def test_any_bytes_are_decoded(body: bytes, content_type: str | None) -> None:
    assert isinstance(decode_text(body, content_type), str)
