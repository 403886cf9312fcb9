"""Documents that are text already: Markdown, JSON, XML, source code."""

from __future__ import annotations

import re

from centgate.pages.addresses import absolute
from centgate.pages.marks import fenced, tidy
from centgate.text import legible

LONGEST_LINE = 200
"""Of JSON: a longer line is taken apart."""
LONGEST_TAKEN_APART = 256 * 1024
DEEPEST = 20
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s{}\[\],:"]+')
_EMPTY = {"{": "}", "[": "]"}
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CODE = re.compile(
    r"(^[ >]*(?P<fence>`{3,}|~{3,}).*?(?:^[ >]*(?P=fence)[`~]*[ \t]*$|\Z))|(`[^`\n]+`)",
    re.DOTALL | re.MULTILINE,
)
_INLINE = re.compile(r"(\]\()\s*<?([^\s()<>]+)>?")
_DEFINED = re.compile(r"^( {0,3}\[[^\]\n]+\]:[ \t]*)<?([^\s<>]+)>?", re.MULTILINE)
_TITLE = re.compile(r"^#[ \t]+(.+)$", re.MULTILINE)
_FRONT = re.compile(r"\A---\n(.*?)\n(?:---|\.\.\.)\n", re.DOTALL)


def text_of(text: str) -> str:
    """Plain text as it stands."""
    return tidy(text)


def markdown_text(text: str, url: str) -> str:
    """Markdown as it stands, its links made absolute and its comments, which no reader sees, left out."""
    text = legible(text)
    parts: list[str] = []
    at = 0
    for code in _CODE.finditer(text):
        parts += (_linked(text[at : code.start()], url), code[0])
        at = code.end()
    return tidy("".join((*parts, _linked(text[at:], url))))


def _linked(text: str, url: str) -> str:
    text = _COMMENT.sub("", text)
    for pattern in (_INLINE, _DEFINED):
        text = pattern.sub(lambda found: found[1] + (absolute(url, found[2]) or "#"), text)
    return text


def title_of(markdown: str) -> str | None:
    """The first heading of a Markdown document."""
    found = _TITLE.search(_FRONT.sub("", markdown[:20_000]))
    return found[1].rstrip(" \t#") if found else None


def json_text(text: str) -> str:
    """JSON in a code block: as it stands, or one member a line where its lines are long."""
    text = legible(text).strip()
    longest = max(map(len, text.split("\n")))
    packed = longest > LONGEST_LINE and len(text) <= LONGEST_TAKEN_APART
    return fenced("\n".join(_taken_apart(text)) if packed else text, "json")


def _taken_apart(text: str) -> list[str]:
    """The same tokens, so that no number and no text changes; only white space does."""
    lines, line, depth = [""], "", 0
    before = ""
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in "}]" and token:
            depth -= 1
            if before != token.translate({125: "{", 93: "["}):
                lines.append(line)
                line = "  " * min(max(depth, 0), DEEPEST)
            line += token
        else:
            if (before in ("{", "[") and before) or before == ",":
                lines.append(line)
                line = "  " * min(max(depth, 0), DEEPEST)
            elif before and token not in ",:" and before != ":":
                line += " "  # one value after another: lines of JSON
            line += token + (" " if token == ":" else "")
        depth += token in ("{", "[")
        before = token
    return [each.rstrip() for each in [*lines[1:], line]]
