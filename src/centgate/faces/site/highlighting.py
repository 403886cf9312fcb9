"""Code as HTML, its words classed by what they are: five classes, coloured by the style sheet."""

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
def highlighted(code: str, language: str) -> Markup:
    """The code escaped, with `<span class>` around what is coloured; plain when the language is not known."""
    lexer = _lexer(language)
    if lexer is None:
        return escape(code)
    classed = ((_class(kind), text) for kind, text in lex(code, lexer))
    runs = groupby(classed, key=lambda each: each[0])
    return Markup("").join(_span(name, "".join(text for _, text in run)) for name, run in runs)


def language_name(language: str) -> str:
    """What a language is called: `sh` is Bash."""
    lexer = _lexer(language)
    return lexer.name if lexer else language


def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _class(kind: Any) -> str:
    return next((name for parent, name in _CLASSES if kind in parent), "")


def _span(name: str, text: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format(name, text) if name and text.strip() else escape(text)
