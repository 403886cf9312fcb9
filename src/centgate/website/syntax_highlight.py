"""Syntax highlighting: code as HTML with five token classes, coloured by the style sheet."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape
from pygments import lex
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
from pygments.token import Comment, Keyword, Name, Number, String
from pygments.util import ClassNotFound

_CLASSES = (
    (Comment, "c"),
    (Keyword, "k"),
    (Name.Tag, "p"),
    (Name.Builtin, "k"),
    (String, "s"),
    (Number, "n"),
)


@lru_cache(maxsize=256)
def highlight_code(code: str, language: str) -> Markup:
    """Return the code escaped, with `<span class>` around tokens; without spans for an unknown language."""
    lexer = _find_lexer(language)
    if lexer is None:
        return escape(code)
    tokens = ((_class_of(kind), text) for kind, text in lex(code, lexer))
    runs = groupby(tokens, key=lambda each: each[0])
    return Markup("").join(_wrap_span(name, "".join(text for _, text in run)) for name, run in runs)


def language_name(language: str) -> str:
    """Return the display name of a language: `sh` is Bash."""
    lexer = _find_lexer(language)
    return lexer.name if lexer else language


def _find_lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _class_of(kind: Any) -> str:
    return next((name for parent, name in _CLASSES if kind in parent), "")


def _wrap_span(name: str, text: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format(name, text) if name and text.strip() else escape(text)
