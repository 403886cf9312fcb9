"""Decide if code is complete by its language's grammar, and turn interpreter sessions into plain code.

Runs where packages are parsed: in a process that may be killed.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from functools import cache
from typing import Final

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Parser

from centgate.libdocs.parse.js_bindings import has_duplicate_binding
from centgate.libdocs.parse.python_syntax import parse_source

SCRIPT_LANGUAGES: Final = ("javascript", "jsx", "typescript", "tsx")
CHECKED_LANGUAGES: Final = ("python", *SCRIPT_LANGUAGES)
"""Languages whose code is checked; for all others nothing is said."""
FRAGMENT_WORD: Final = "fragment"
"""Word after the language in the fence of code inside a text that is no complete code."""
_OPENING = re.compile(r"(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<word>[^\s`]*).*")
"""First line of a fence; what follows backticks has none (CommonMark 4.5)."""
_PROMPT = re.compile(r"(?P<indent>[ \t]*)(?:>>>|In \[\d+\]:)(?: |$)")
_IPYTHON_PROMPT = re.compile(r"[ \t]*In \[\d+\]:(?: |$)")
_CONTINUED = re.compile(r"[ \t]*(?:\.\.\.|\.{3,9}:)(?: |$)")
_FENCE = re.compile(
    r"^(?P<mark>```+|~~~+)(?P<language>[a-z]+)\n(?P<code>.*?)(?P<end>^(?P=mark)[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)


def is_complete(code: str, language: str | None) -> bool | None:
    """True if code parses by itself, False if it does not; None for a language that is not checked.

    JavaScript and TypeScript that declare a name twice do not.
    """
    if language == "python":
        return _is_python(code)
    if language in SCRIPT_LANGUAGES:
        root = _script_parser(language).parse(code.encode("utf-8", "replace")).root_node
        is_typescript = language in ("typescript", "tsx")
        return not (root.has_error or has_duplicate_binding(root, code, is_typescript=is_typescript))
    return None


def tidy_code(code: str, language: str | None) -> str:
    """Return Python without common indentation and prompts if it parses so; other code is returned as it is.

    The output of an interpreter becomes comments: `>>> 1 + 1` and `2` become `1 + 1` and `# 2`.
    """
    if language != "python":
        return code
    dedented = textwrap.dedent(code)
    # `In [1]: dip(1)` would parse, as an annotation; `>>>` parses only inside a string, as in a docstring
    if not any(map(_IPYTHON_PROMPT.match, code.splitlines())):
        for candidate in (code, dedented):
            if _is_python(candidate):
                return candidate
    tidied = _strip_prompts(dedented)
    return tidied if _is_python(tidied) else code


def mark_fragments(text: str) -> str:
    """Return a text whose fenced fragments of a checked language say so in their first line."""
    return _FENCE.sub(_mark_fence, text) if "```" in text or "~~~" in text else text


def close_fences(parts: Sequence[str]) -> list[str]:
    """Return the parts of a text with fences of their own where a block of code was divided between them.

    Divided code of a checked language is marked as a fragment.
    """
    closed: list[str] = []
    opening: list[str] = []
    for part in parts:
        lines = [*opening, *part.split("\n")]
        start = _find_open_fence(lines)
        opening = [] if start is None else [_mark_opening(lines[start])]
        if start is not None:
            is_empty = start == len(lines) - 1
            mark = opening[0][: len(opening[0]) - len(opening[0].lstrip(opening[0][0]))]
            lines = lines[:start] if is_empty else [*lines[:start], *opening, *lines[start + 1 :], mark]
        closed.append("\n".join(lines).rstrip("\n"))
    return [part for part in closed if part]


def _find_open_fence(lines: Sequence[str]) -> int | None:
    """Return the number of the line whose fence is not closed; None if all are."""
    start, mark = None, ""
    for number, line in enumerate(lines):
        if start is None and (fence := _OPENING.fullmatch(line)):
            start, mark = number, fence["mark"]
        elif start is not None and line.startswith(mark) and not line.strip(f"{mark[0]} \t"):
            start = None
    return start


def _mark_opening(line: str) -> str:
    fence = _OPENING.fullmatch(line)
    is_checked = fence is not None and fence["word"] in CHECKED_LANGUAGES
    return f"{line} {FRAGMENT_WORD}" if is_checked and FRAGMENT_WORD not in line.split() else line


def comment_out(code: str) -> str:
    """Return code of JavaScript or TypeScript as comments."""
    return "\n".join(f"// {line}".rstrip() for line in code.splitlines())


def _mark_fence(fence: re.Match[str]) -> str:
    if fence["end"] and is_complete(fence["code"], fence["language"]) is not False:
        return fence[0]
    if fence["language"] not in CHECKED_LANGUAGES:
        return fence[0]
    return f"{fence['mark']}{fence['language']} {FRAGMENT_WORD}\n{fence['code']}{fence['end']}"


def _strip_prompts(code: str) -> str:
    """Return the statements of a session; what follows them is output, apart from paragraphs of Python."""
    paragraphs: list[str] = []
    is_session = False
    for paragraph in re.split(r"\n[ \t]*\n", code):
        lines = paragraph.split("\n")
        is_session = is_session or any(map(_PROMPT.match, lines))
        if is_session and (any(map(_PROMPT.match, lines)) or not _is_python(paragraph)):
            lines = _comment_output(lines)
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def _comment_output(lines: list[str]) -> list[str]:
    has_prompts = any(map(_PROMPT.match, lines))
    result: list[str] = []
    is_after_prompt = not has_prompts
    for line in lines:
        if prompt := _PROMPT.match(line):
            is_after_prompt = True
            result.append(line[prompt.end() :])
        elif is_after_prompt and (continued := _CONTINUED.match(line)):
            result.append(line[continued.end() :])
        elif is_after_prompt and line.strip():
            result.append(f"# {line.rstrip()}")
        else:
            result.append(line)
    return result


def _is_python(code: str) -> bool:
    try:
        parse_source(code)
    except SyntaxError:
        return False
    return True


@cache
def _script_parser(language: str) -> Parser:
    if language == "typescript":
        return Parser(Language(tree_sitter_typescript.language_typescript()))
    if language == "tsx":
        return Parser(Language(tree_sitter_typescript.language_tsx()))
    return Parser(Language(tree_sitter_javascript.language()))
