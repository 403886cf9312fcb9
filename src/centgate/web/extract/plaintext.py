"""Convert documents that are text already: Markdown, JSON, XML, source code."""

from __future__ import annotations

import re

from centgate.sanitize import strip_invisible
from centgate.web.extract.links import resolve_link
from centgate.web.extract.markdown_syntax import format_code_block, normalize_markdown

MAX_LINE_LENGTH = 200
"""Characters of a JSON line above which the document is reformatted."""
MAX_REFORMAT_LENGTH = 256 * 1024
MAX_INDENT_LEVEL = 20
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s{}\[\],:"]+')
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CODE = re.compile(
    r"(^[ >]*(?P<fence>`{3,}|~{3,}).*?(?:^[ >]*(?P=fence)[`~]*[ \t]*$|\Z))|(`[^`\n]+`)",
    re.DOTALL | re.MULTILINE,
)
_INLINE_LINK = re.compile(r"(\]\()\s*<?([^\s()<>]+)>?")
_LINK_DEFINITION = re.compile(
    r"""^( {0,3}\[(?!\^)[^\]\n]+\]:[ \t]*)<?([^\s<>]+)>?(?=[ \t]*$|[ \t]+["'(])""", re.MULTILINE
)
"""An address that may have a title; a footnote, and a sentence after a colon, are none."""
_TITLE = re.compile(r"^#[ \t]+(.+)$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n(?:---|\.\.\.)\n", re.DOTALL)


def convert_text(text: str) -> str:
    """Return plain text with normalised blank lines."""
    return normalize_markdown(text)


def convert_markdown(text: str, url: str) -> str:
    """Return Markdown with absolute links, and without comments, which a reader would not see."""
    text = strip_invisible(text)
    parts: list[str] = []
    at = 0
    for code in _CODE.finditer(text):
        parts += (_resolve_links(text[at : code.start()], url), code[0])
        at = code.end()
    return normalize_markdown("".join((*parts, _resolve_links(text[at:], url))))


def _resolve_links(text: str, url: str) -> str:
    text = _COMMENT.sub("", text)
    for pattern in (_INLINE_LINK, _LINK_DEFINITION):
        text = pattern.sub(lambda match: match[1] + (resolve_link(url, match[2]) or "#"), text)
    return text


def find_heading(markdown: str) -> str | None:
    """Return the first level-one heading of a Markdown document."""
    match = _TITLE.search(_FRONT_MATTER.sub("", markdown[:20_000]))
    return match[1].rstrip(" \t#") if match else None


def convert_json(text: str) -> str:
    """Return JSON in a code block: unchanged, or one member per line if its lines are long."""
    text = strip_invisible(text).strip()
    longest = max(map(len, text.split("\n")))
    is_packed = longest > MAX_LINE_LENGTH and len(text) <= MAX_REFORMAT_LENGTH
    return format_code_block("\n".join(_reformat_json(text)) if is_packed else text, "json")


def _reformat_json(text: str) -> list[str]:
    """Reformat the same tokens: only white space changes, no number and no text does."""
    lines, line, depth = [""], "", 0
    previous = ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "}]" and token:
            depth -= 1
            if previous != token.translate({125: "{", 93: "["}):
                lines.append(line)
                line = "  " * min(max(depth, 0), MAX_INDENT_LEVEL)
            line += token
        else:
            if (previous in ("{", "[") and previous) or previous == ",":
                lines.append(line)
                line = "  " * min(max(depth, 0), MAX_INDENT_LEVEL)
            elif previous and token not in ",:" and previous != ":":
                line += " "  # consecutive values: JSON Lines
            line += token + (" " if token == ":" else "")
        depth += token in ("{", "[")
        previous = token
    return [each.rstrip() for each in [*lines[1:], line]]
