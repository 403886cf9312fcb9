"""Replace include directives of a page with the files that they name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from msgspec.structs import replace

from centgate.libdocs.parse.documents import PackageDocument

MAX_INCLUDED_LENGTH = 6000
"""Maximum characters of an included file."""
MAX_INCLUDES = 60
"""Maximum number of files included in one page."""
_MARKDOWN = re.compile(
    r"^[ \t]*(?:\{\*[ ]*(?P<mkdocs>[^\s{}*]{1,300})[^{}\n]{0,200}\*\}"
    r"|--8<--[ ]*[\"'](?P<snippet>[^\"'\n:]{1,300})[^\n]*"
    r"|\{!>?[ ]*(?P<older>[^\s{}!]{1,300})[ ]*!\})[ \t]*$",
    re.MULTILINE,
)
_RST = re.compile(r"^(?P<indent>[ \t]*)\.\. literalinclude::[ ]*(?P<path>\S{1,300})[ \t]*$", re.MULTILINE)
_LANGUAGES = {
    "py": "python",
    "js": "javascript",
    "ts": "typescript",
    "tsx": "tsx",
    "jsx": "jsx",
    "sh": "bash",
}


def expand_includes(document: PackageDocument, by_path: Mapping[str, PackageDocument]) -> PackageDocument:
    """Return a page with the files that it includes, as far as the package contains them."""
    if document.kind == "markdown" and (
        "{*" in document.text or "--8<--" in document.text or "{!" in document.text
    ):
        text = _MARKDOWN.sub(
            lambda found: _include_as_fence(document, found, by_path), document.text, count=MAX_INCLUDES
        )
        return replace(document, text=text)
    if document.kind == "rst" and "literalinclude::" in document.text:
        text = _RST.sub(
            lambda found: _include_as_code_block(document, found, by_path), document.text, count=MAX_INCLUDES
        )
        return replace(document, text=text)
    return document


def _include_as_fence(
    page: PackageDocument, found: re.Match[str], by_path: Mapping[str, PackageDocument]
) -> str:
    name = found["mkdocs"] or found["snippet"] or found["older"]
    included = _find_included(page.path, name, by_path)
    if included is None:
        return ""
    language = _LANGUAGES.get(name.rsplit(".", 1)[-1], "")
    return f"```{language}\n{included.text[:MAX_INCLUDED_LENGTH].strip()}\n```"


def _include_as_code_block(
    page: PackageDocument, found: re.Match[str], by_path: Mapping[str, PackageDocument]
) -> str:
    included = _find_included(page.path, found["path"], by_path)
    if included is None:
        return found[0]
    language = _LANGUAGES.get(found["path"].rsplit(".", 1)[-1], "text")
    lines = [
        f"{found['indent']}    {line}".rstrip()
        for line in included.text[:MAX_INCLUDED_LENGTH].strip().splitlines()
    ]
    return f"{found['indent']}.. code-block:: {language}\n\n" + "\n".join(lines) + "\n"


def _find_included(page: str, name: str, by_path: Mapping[str, PackageDocument]) -> PackageDocument | None:
    """Find a file by its path from the page, from the root, or below the package's own folder."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(page), name))
    bare = re.sub(r"^(?:\.{1,2}/)+|^/", "", name)
    root = page.split("/", 1)[0]
    for path in (beside, bare, f"{root}/{bare}", re.sub(r"^(?:\.{2}/)+", "", beside)):
        if path in by_path:
            return by_path[path]
    return None
