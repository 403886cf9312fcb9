"""Tell code that shows a call from declarations."""

from __future__ import annotations

import re
from collections.abc import Sequence

_DECLARATION_LINE = re.compile(
    r"\s*(?:@[\w.]+(?:\(.*\))?\s*$|(?:export|declare|default|abstract|async|pub)\s+(?!\{)|(?:def|class|interface"
    r"|type|function|namespace|enum|func|fn)\b)"
)
_DECLARATION_FILE = re.compile(r"\.d\.[cm]?ts$|\.pyi$")
SOURCE_FILE = re.compile(r"\.(?:pyi?|[cm]?[jt]sx?|go|rs)$")
_SIGNATURE_DECORATORS = re.compile(r"\A(?:@\w+(?:\(.*\))?\n)+")
OPTIONS_NAME = re.compile(
    r"(?:Options?|Opts|Config(?:uration)?|Props|Params|Parameters|Init|Settings|Args|Input)$"
)
"""End of the name of a type whose fields are what a function can be told."""
_TYPE = re.compile(r"(?:(?:export|declare|default)\s+)*(?:interface|type)\b")
_ERROR = re.compile(
    r"(?:@[^\n]*\n)*class (?:\w*(?:Error|Exception|Warning)\b|\w+\([^()\n]*(?:Error|Exception|Warning)\))"
)
_CALL = re.compile(r"[\w$\])]\s*\(|<[A-Z]\w*[\s/>]")


def shows_call(path: str, code: str | None, names: Sequence[str] = ()) -> bool:
    """True if the code of a chunk shows a call in its context, not only declarations.

    `names` are those that the chunk defines. Examples follow the declaration that they belong to after an
    empty line.
    """
    blocks = re.split(r"\n\s*\n", code or "")
    if _is_declaration(blocks[0], path, names):
        blocks = blocks[1:]
    lines = [line for block in blocks for line in block.splitlines()]
    calls = [line for line in lines if not _DECLARATION_LINE.match(line) and _CALL.search(line)]
    return bool(calls)


def declares_bare_type(title: str, code: str) -> bool:
    """True if code declares a type that nothing can be done with by itself, or an exception.

    The fields of options, and members, whose titles are qualified by their type, say what can be done.
    """
    if declares_error(code):
        return True
    return "." not in title and not OPTIONS_NAME.search(title) and _TYPE.match(code) is not None


def declares_error(code: str) -> bool:
    """True if code declares an exception of Python."""
    return _ERROR.match(code) is not None


def _is_declaration(block: str, path: str, names: Sequence[str]) -> bool:
    """True if a block of a source file declares what its chunk is about."""
    if not _DECLARATION_FILE.search(path) and not (names and SOURCE_FILE.search(path)):
        return False
    declaration = _SIGNATURE_DECORATORS.sub("", block)
    return bool(_DECLARATION_LINE.match(declaration)) or _defines_member(declaration, names)


def _defines_member(block: str, names: Sequence[str]) -> bool:
    """True if a block is a member without its class, `static of(zone)`, or an assignment, `app.get = ...`."""
    if not names:
        return False
    qualified, last = re.escape(names[0]), re.escape(names[-1])
    member = rf"(?:(?:static|get|set)\s+)*{last}\s*[(:<=?]"
    return re.match(rf"{member}|(?:[\w$]+\.)*{qualified}\s*=(?!=)", block) is not None
