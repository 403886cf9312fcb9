"""Tell code that shows a call from declarations."""

from __future__ import annotations

import re

_DECLARATION_LINE = re.compile(
    r"\s*(?:@[\w.]+(?:\(.*\))?\s*$|(?:export|declare|default|abstract|async)\s+(?!\{)|(?:def|class|interface|type"
    r"|function|namespace|enum)\b)"
)
_DECLARATION_FILE = re.compile(r"\.d\.[cm]?ts$|\.pyi$")
_CALL = re.compile(r"[\w$\])]\s*\(|<[A-Z]\w*[\s/>]")


def shows_call(path: str, code: str | None) -> bool:
    """True if the code of a chunk shows a call in its context, not only declarations.

    Examples follow the declaration that they belong to after an empty line.
    """
    blocks = re.split(r"\n\s*\n", code or "")
    if _DECLARATION_FILE.search(path):
        blocks = blocks[1:] if _DECLARATION_LINE.match(blocks[0]) else blocks
    lines = [line for block in blocks for line in block.splitlines()]
    calls = [line for line in lines if not _DECLARATION_LINE.match(line) and _CALL.search(line)]
    return bool(calls)
