"""Find the declarations of a JavaScript or TypeScript file by brackets and comments, without a parser."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

MAX_DEPTH = 4
"""Maximum nesting of namespaces that are searched."""
CONTEXT_LENGTH = 200
"""Characters before and after the end of a line that decide if a statement ends there."""
MAX_HEAD = 20_000
"""Characters of a statement after which no brace opens its body."""
MAX_TRIED_BRACES = 30
"""Braces of a statement that are looked at: each costs time by the length of what is before it."""
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
_NON_SPACE = re.compile(r"\S")
_OPEN = frozenset("{([")
_CLOSE = frozenset("})]")
_CONTAINER = re.compile(
    r"(?:export\s+)?(?:declare\s+)?(?:namespace\s+[\w$.]+|module\s+(?:[\w$.]+|[\"'][^\"']*[\"'])|global)\s*$"
)
_TYPED_DECLARATION = re.compile(
    r"\s*(?:(?:export|default|declare|abstract|async)\s+)*(?P<keyword>function|class|interface|type)\b"
)
_INCOMPLETE = re.compile(
    r"(?:[,(\[<|&=:?+]|=>|\b(?:extends|implements|keyof|typeof|return|new|is|in|of|infer))\s*$"
)
_CONTINUATION = re.compile(r"\s*(?:[|&?:.=,)<>+]|(?:extends|implements)\b)")


class Declaration(Struct, frozen=True):
    """A statement with the comment above it."""

    comment: str | None
    """The whole JSDoc comment, including `/**`."""
    head: str
    """Text before the body, without comments."""
    body: str | None
    """Text between the braces; None without a body."""
    line: int
    last_line: int
    container: str
    """The enclosing namespace, with dots; empty outside namespaces."""


def parse_declarations(
    text: str, *, first_line: int = 1, container: str = "", depth: int = 0
) -> Iterator[Declaration]:
    """Yield the top-level statements of a text and of its namespaces, in order."""
    line, counted_to = first_line, 0
    for start, brace, end, comment in _StatementScanner(text).iter_statements():
        head = _strip_comments(text[start : brace if brace is not None else end]).strip(" \t\n;,")
        if not head:
            continue
        body = text[brace + 1 : end].rstrip(" ;\n").removesuffix("}") if brace is not None else None
        first_character = _NON_SPACE.search(text, start, end)
        at = first_character.start() if first_character else start
        line, counted_to = line + text.count("\n", counted_to, at), at
        if body is not None and _CONTAINER.match(head) and depth < MAX_DEPTH:
            inner = _namespace_name(head)
            name = f"{container}.{inner}" if container and inner else container or inner
            inside = line + text.count("\n", at, brace)
            yield from parse_declarations(body, first_line=inside, container=name, depth=depth + 1)
        else:
            last = line + text.count("\n", at, end)
            yield Declaration(comment, head, body, line, last, container)


class _StatementScanner:
    """Finds where statements begin, where the brace of their body stands and where they end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._statement, self._tried_braces = -1, 0
        """Start of a statement, and the number of its braces that could have opened its body."""
        self._start, self._first = -1, 0
        """A place, and that of the first character after it that is no space."""

    def iter_statements(self) -> Iterator[tuple[int, int | None, int, str | None]]:
        text = self._text
        depth = start = 0
        brace: int | None = None
        comment: str | None = None
        for token in _TOKEN.finditer(text):
            mark = token[0][0]
            if depth == 0 and token[0][:2] in ("/*", "//") and not self._has_text(start, token.start()):
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
            elif depth == 0 and (mark == ";" or (mark == "\n" and self._is_complete(start, token.start()))):
                if self._has_text(start, token.start()):
                    yield start, brace, token.end(), comment
                    comment = None
                start, brace = token.end(), None
        if text[start:].strip():
            yield start, brace, len(text), comment

    def _opens_body(self, start: int, at: int) -> bool:
        """Return True if a brace opens the body of a declaration, not a value or a type in its head."""
        if at - start >= MAX_HEAD:
            return False
        head = self._text[start:at].rstrip()
        if head.endswith(("|", "&", "<", ",", "(")):
            return False
        self._tried_braces = self._tried_braces + 1 if start == self._statement else 1
        self._statement = start
        if self._tried_braces > MAX_TRIED_BRACES or _is_inside_type(head):
            return False
        return not head.endswith("=") or head.count("<") <= head.replace("=>", "").count(">")

    def _has_text(self, start: int, end: int) -> bool:
        """Return True if there is more than spaces; these are searched once for each start."""
        if start != self._start:
            found = _NON_SPACE.search(self._text, start)
            self._start, self._first = start, found.start() if found else len(self._text)
        return self._first < end

    def _ends_line(self, at: int) -> bool:
        rest = self._text[at : at + 200].lstrip(" \t")
        return not rest or (rest[0] in "\n;}" and not _CONTINUATION.match(rest.lstrip("\n")))

    def _is_complete(self, start: int, end: int) -> bool:
        tail = self._text[max(start, end - CONTEXT_LENGTH) : end].rstrip()
        if not tail or _INCOMPLETE.search(tail[-12:]):
            return False
        following = _NON_SPACE.search(self._text, end, end + CONTEXT_LENGTH)
        opens_brace = following is not None and following[0] == "{"
        if opens_brace and _TYPED_DECLARATION.match(self._text, start, start + CONTEXT_LENGTH):
            return False  # some formatters put the brace of a long head on a line of its own
        return not _CONTINUATION.match(self._text[end : end + CONTEXT_LENGTH])


def _is_inside_type(head: str) -> bool:
    """Return True if what follows the head of a function, class or type is still part of a type."""
    declared = _TYPED_DECLARATION.match(head)
    if declared is None:
        return False
    if declared["keyword"] == "function" and head.endswith(":"):
        return True
    rest = _strip_comments(head[declared.end() :]).replace("=>", "")
    return rest.count("<") > rest.count(">")


_COMMENTS = re.compile(r"/\*.*?(?:\*/|\Z)|(?<![:'\"`])//[^\n]*", re.DOTALL)


def _strip_comments(text: str) -> str:
    return re.sub(r"\n\s*\n+", "\n", _COMMENTS.sub("", text)) if "/*" in text or "//" in text else text


def _namespace_name(head: str) -> str:
    name = re.search(r"namespace\s+([\w$.]+)", head)
    return name[1] if name else ""
