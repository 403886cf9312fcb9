"""What a JavaScript or TypeScript file declares, found by its brackets and comments rather than parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

DEEPEST = 4
"""Namespaces inside each other that are looked into."""
TAIL = 200
"""Characters before the end of a line, and after it, that tell whether a statement ends there."""
_TOKEN = re.compile(
    r"""/\*.*?(?:\*/|\Z)            # comment
      |//[^\n]*
      |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'
      |`(?:[^`\\]|\\.)*(?:`|\Z)
      |(?<=[(=:,!&|?\[\ ])/(?![*/\s])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.){0,100}\]){1,300}/[a-z]*   # pattern
      |[{}()\[\];\n]
    """,
    re.DOTALL | re.VERBOSE,
)
_INK = re.compile(r"\S")
_OPEN = frozenset("{([")
_CLOSE = frozenset("})]")
_CONTAINER = re.compile(
    r"(?:export\s+)?(?:declare\s+)?(?:namespace\s+[\w$.]+|module\s+(?:[\w$.]+|[\"'][^\"']*[\"'])|global)\s*$"
)
_UNFINISHED = re.compile(
    r"(?:[,(\[<|&=:?+]|=>|\b(?:extends|implements|keyof|typeof|return|new|is|in|of|infer))\s*$"
)
_GOES_ON = re.compile(r"\s*(?:[|&?:.=,)<>+]|(?:extends|implements)\b)")


@dataclass(frozen=True, slots=True)
class Declaration:
    """A statement with the comment above it."""

    comment: str | None
    """The JSDoc comment, `/**` and all."""
    head: str
    """Up to the body, without comments."""
    body: str | None
    """Between the braces; None without any."""
    line: int
    last: int
    container: str
    """The namespace it is in, with dots; empty for none."""


def declarations(
    text: str, *, first_line: int = 1, container: str = "", depth: int = 0
) -> Iterator[Declaration]:
    """Statements at the margin of a text and in its namespaces, in order."""
    line, counted = first_line, 0
    for start, brace, end, comment in _Scan(text).statements():
        head = _uncommented(text[start : brace if brace is not None else end]).strip(" \t\n;,")
        if not head:
            continue
        body = text[brace + 1 : end].rstrip(" ;\n").removesuffix("}") if brace is not None else None
        ink = _INK.search(text, start, end)
        at = ink.start() if ink else start
        line, counted = line + text.count("\n", counted, at), at
        if body is not None and _CONTAINER.match(head) and depth < DEEPEST:
            inner = _namespace(head)
            name = f"{container}.{inner}" if container and inner else container or inner
            inside = line + text.count("\n", at, brace)
            yield from declarations(body, first_line=inside, container=name, depth=depth + 1)
        else:
            last = line + text.count("\n", at, end)
            yield Declaration(comment, head, body, line, last, container)


class _Scan:
    """Where statements begin, where their body's brace stands and where they end."""

    def __init__(self, text: str) -> None:
        self._text = text

    def statements(self) -> Iterator[tuple[int, int | None, int, str | None]]:
        text = self._text
        depth = start = 0
        brace: int | None = None
        comment: str | None = None
        for token in _TOKEN.finditer(text):
            mark = token[0][0]
            if depth == 0 and token[0][:2] in ("/*", "//") and not _INK.search(text, start, token.start()):
                comment = token[0] if token[0].startswith("/**") else comment
                start = token.end()
            elif mark in _OPEN:
                if depth == 0 and mark == "{" and brace is None and self._opens_body(start, token.start()):
                    brace = token.start()
                depth += 1
            elif mark in _CLOSE:
                depth = max(depth - 1, 0)
                if depth == 0 and mark == "}" and self._ends_line(token.end()):
                    yield start, brace, token.end(), comment
                    start, brace, comment = token.end(), None, None
            elif depth == 0 and (mark == ";" or (mark == "\n" and self._is_whole(start, token.start()))):
                if _INK.search(text, start, token.start()):
                    yield start, brace, token.end(), comment
                    comment = None
                start, brace = token.end(), None
        if text[start:].strip():
            yield start, brace, len(text), comment

    def _opens_body(self, start: int, at: int) -> bool:
        """Whether a brace opens the body of a declaration rather than a value or a type in its head."""
        head = self._text[start:at].rstrip()
        return not head.endswith(("|", "&", "<", ",", "(")) and len(head) < 20_000

    def _ends_line(self, at: int) -> bool:
        rest = self._text[at : at + 200].lstrip(" \t")
        return not rest or (rest[0] in "\n;}" and not _GOES_ON.match(rest.lstrip("\n")))

    def _is_whole(self, start: int, end: int) -> bool:
        tail = self._text[max(start, end - TAIL) : end].rstrip()
        if not tail or _UNFINISHED.search(tail[-12:]):
            return False
        return not _GOES_ON.match(self._text[end : end + TAIL])


_COMMENTS = re.compile(r"/\*.*?(?:\*/|\Z)|(?<![:'\"`])//[^\n]*", re.DOTALL)


def _uncommented(text: str) -> str:
    return re.sub(r"\n\s*\n+", "\n", _COMMENTS.sub("", text)) if "/*" in text or "//" in text else text


def _namespace(head: str) -> str:
    name = re.search(r"namespace\s+([\w$.]+)", head)
    return name[1] if name else ""
