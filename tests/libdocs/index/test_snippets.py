"""Snippets that are cut to fit a budget."""

from __future__ import annotations

import pytest

from centgate.libdocs.index.rows import ChunkRow
from centgate.libdocs.index.snippets import CUT_NOTE, take_snippets
from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.markdown import split_markdown

HANDLERS = "\n\n".join(
    f"def handler_{number}(request):\n"
    f"    value = request.get('field_{number}')\n"
    f"    if value is None:\n"
    f"        raise KeyError('field_{number} is missing from the request')\n"
    f"    return value"
    for number in range(8)
)
README = (
    "# Usage\n\nInstall it, and write handlers, which take a request and return a value.\n\n"
    f"```bash\npip install quill\n```\n\n```python\n{HANDLERS}\n```\n"
)


@pytest.mark.parametrize("budget", [150, 200, 300])
def test_code_in_cut_text_is_closed_fragment(budget: int) -> None:
    (chunk,) = split_markdown(PackageDocument("README.md", README, "markdown", None))
    trail = "\n".join((*chunk.breadcrumb, chunk.title))
    row = ChunkRow(
        1, chunk.path, chunk.title, "", chunk.code, chunk.language, chunk.text, None, 1.0, trail, None, 0
    )

    (snippet,) = take_snippets([row], budget)

    assert snippet.tokens <= budget
    assert snippet.text
    prose, opening, code = snippet.text.partition("```python fragment\n")
    assert "```" not in prose
    assert opening
    assert code.endswith(f"\n```\n\n{CUT_NOTE}")
