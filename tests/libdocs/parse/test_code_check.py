"""Check of code in snippets: complete code, and fragments that are marked."""

from __future__ import annotations

import textwrap

import pytest

from centgate.libdocs.parse.chunk import Chunk, finalize_chunks
from centgate.libdocs.parse.code_check import close_fences, is_complete, mark_fragments, tidy_code
from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.markdown import split_markdown


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("python", "await client.get(url)", True),
        ("python", "$ pip install quill", False),
        ("javascript", "const pen = await dip('ink')", True),
        ("javascript", "function dip(pen: string) {}", False),
        ("jsx", "<Pen ink={black} />", True),
        ("typescript", "export function dip(pen: string): boolean", True),
        ("typescript", "dip(pen: string): boolean", False),
        ("tsx", "const pen = <Pen<Ink> ink={black} />", True),
        ("bash", "dip (", None),
        (None, "dip(", None),
    ],
)
def test_code_is_checked_by_its_grammar(language: str | None, code: str, *, expected: bool | None) -> None:
    assert is_complete(code, language) is expected


DUPLICATES = [
    "const pen = dip()\nconst pen = dip()",
    "let pen\nvar pen",
    "class Pen {}\nclass Pen {}",
    "function dip() {}\nconst dip = 1",
    "export const pen = 1\nexport class pen {}",
    "const { pen, ink: [first = 1, ...others] } = dip()\nconst others = 2",
    "function dip() {\n  let { pen = 1 } = {}\n  const pen = 2\n}",
    "switch (pen) {\n  case 1:\n    const ink = 1\n  default:\n    const ink = 2\n}",
    "import pen from 'pen'\nimport { dip as pen } from 'ink'",
    "import * as pen from 'pen'\nimport pen from 'ink'",
]
UNIQUE = [
    "var pen = 1\nvar pen = 2\nfunction pen() {}\nfunction pen() {}",
    "const pen = 1\n{\n  const pen = 2\n}\nif (pen) {\n  let pen\n}",
    "function dip() {\n  const pen = 1\n}\nconst pen = (ink) => {\n  const dip = 2\n}",
    "const { pen: ink } = dip()\nconst pen = ink",
    "const [pen = ink] = dip()\nconst { [pen]: nib = ink } = dip()\nconst ink = 1",
    "import { pen as ink } from 'pen'\nconst pen = ink",
    "for (const pen of pens) dip(pen)\nfor (const pen of pens) dip(pen)",
    "const Pen = class Pen {}\nconst Ink = function Ink() {}",
    "class Pen {\n  static { const ink = 1 }\n  dip() { const ink = 2 }\n}",
    "let pen = 1\npen = 2\nconst pens = { pen, pen: 3 }",
]
UNIQUE_IN_TYPESCRIPT = [
    "function dip(pen: string): void\nfunction dip(pen: number): void\nfunction dip(pen: unknown) {}",
    "interface Pen {}\ninterface Pen {}\nclass Pen {}\nnamespace Pen {}",
    "type Pen = string\nconst Pen = 1",
    "import { Pen } from 'pen'\nconst Pen = 1",
    "import type { Pen } from 'pen'\nimport { type Ink, Pen } from 'ink'\nimport { Ink } from 'ink'",
    "declare const pen: string\ndeclare function dip(pen: string): void\nnamespace dip {}",
    "namespace A { export const pen = 1 }\nnamespace A { export const ink = 1 }",
]


@pytest.mark.parametrize("language", ["javascript", "jsx", "typescript", "tsx"])
def test_name_declared_twice_in_one_scope_is_no_complete_code(language: str) -> None:
    assert [code for code in DUPLICATES if is_complete(code, language)] == []
    assert [code for code in UNIQUE if not is_complete(code, language)] == []


def test_declarations_that_typescript_merges_are_complete() -> None:
    assert [code for code in UNIQUE_IN_TYPESCRIPT if not is_complete(code, "typescript")] == []
    assert is_complete("import { pen } from 'pen'\nconst pen = 1", "javascript") is False


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (">>> dip(1)\n2\n", "dip(1)\n# 2\n"),
        (
            ">>> for pen in pens:\n...     dip(pen)\n...\nTrue\n\nthe pen is wet now",
            "for pen in pens:\n    dip(pen)\n\n# True\n\n# the pen is wet now",
        ),
        ("In [1]: dip(1)\nOut[1]: 2", "dip(1)\n# Out[1]: 2"),
        (">>> dip(1)\n\ndip(2)", "dip(1)\n\ndip(2)"),
        ("    dip(1)\n    dip(2)", "dip(1)\ndip(2)"),
        (">>> dip(\n", ">>> dip(\n"),
    ],
)
def test_sessions_become_parsable_code(code: str, expected: str) -> None:
    assert tidy_code(code, "python") == expected


@pytest.mark.parametrize("indent", ["", "    "])
def test_doctest_in_docstring_stays_code(indent: str) -> None:
    code = 'def dip(pen):\n    """Dip a pen.\n\n    >>> dip(1)\n    True\n    """\n    return bool(pen)\n'

    assert tidy_code(textwrap.indent(code, indent), "python") == code


def test_fragments_in_text_are_marked() -> None:
    text = "Either:\n\n```python\ndip(\n```\n\nor\n\n```python\ndip()\n```\n\nor\n\n```js\ndip(\n"

    marked = mark_fragments(text)

    assert marked == text.replace("```python\ndip(\n", "```python fragment\ndip(\n")
    assert mark_fragments(text.replace("```", "~~~")) == marked.replace("```", "~~~")


def test_cut_code_is_a_fragment() -> None:
    page = "# Pens\n\n```python\n" + "dip(pen)\n" * 1_000 + "```\n\n```python\ndip(ink)\n```\n"

    chunks = split_markdown(PackageDocument("docs/pens.md", page, "markdown", None))

    assert {each.complete for each in chunks[:-1]} == {False}
    assert chunks[-1].complete is True


@pytest.mark.parametrize(
    ("word", "code", "language"),
    [
        *((word, "print 'dip'", "python") for word in ("py2", "python2", "ipython", "ipython3", "Py3")),
        ("pycon", ">>> dip(", "python"),
        *((word, "const pen = {", "javascript") for word in ("es6", "node", "nodejs", "mjs", "cjs")),
        *((word, "let pen: = 1", "typescript") for word in ("cts", "mts")),
        *(("jsx", "<Pen>", "jsx"), ("tsx", "<Pen>", "tsx"), ("typescriptreact", "<Pen>", "tsx")),
    ],
)
def test_all_names_of_checked_languages_are_checked(word: str, code: str, language: str) -> None:
    page = f"# Pens\n\nInstall it first.\n\n```bash\npip install quill\n```\n\n```{word}\n{code}\n```\n"
    only = f"# Pens\n\n```{word}\n{code}\n```\n"

    (below,) = split_markdown(PackageDocument("docs/pens.md", page, "markdown", None))
    (alone,) = split_markdown(PackageDocument("docs/pens.md", only, "markdown", None))

    assert below.text == f"Install it first.\n\n```{language} fragment\n{code}\n```"
    assert (alone.language, alone.complete) == (language, False)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["Dip:", "```python\ndip()\n```"], ["Dip:", "```python\ndip()\n```"]),
        (
            ["Dip:\n\n```python\ndip()", "wipe()", "dry()\n```\n\nThen go."],
            [
                "Dip:\n\n```python fragment\ndip()\n```",
                "```python fragment\nwipe()\n```",
                "```python fragment\ndry()\n```\n\nThen go.",
            ],
        ),
        (["Dip:\n\n```js", "dip()\n```"], ["Dip:", "```js\ndip()\n```"]),
        (["````\n```\ndip()"], ["````\n```\ndip()\n````"]),
        (["```tsx fragment\n<Pen>"], ["```tsx fragment\n<Pen>\n```"]),
        (
            ["Dip:\n\n~~~python\ndip()", "wipe()\n~~~\n\nThen go."],
            ["Dip:\n\n~~~python fragment\ndip()\n~~~", "~~~python fragment\nwipe()\n~~~\n\nThen go."],
        ),
        (["~~~~\n```\ndip()\n```\n~~~"], ["~~~~\n```\ndip()\n```\n~~~\n~~~~"]),
        (["```\n~~~\ndip()\n~~~"], ["```\n~~~\ndip()\n~~~\n```"]),
        (["~~~ `a` ~b~\ndip()"], ["~~~ `a` ~b~\ndip()\n~~~"]),
        (["```code``` is no fence"], ["```code``` is no fence"]),
    ],
)
def test_divided_code_has_separate_fences(parts: list[str], expected: list[str]) -> None:
    assert close_fences(parts) == expected


def test_divided_code_of_long_text_is_marked_as_fragments() -> None:
    code = "\n\n".join(f"def dip_{number}(pen):\n    return pen.dip({number})" for number in range(90))
    chunk = Chunk("Pens", (), None, None, f"Dip it:\n\n```python\n{code}\n```", None, "docs/pens.md")

    texts = [each.text or "" for each in finalize_chunks(chunk)]

    assert len(texts) > 1
    assert all(text.endswith("\n```") and text.count("```") == 2 for text in texts)
    assert all("```python fragment\n" in text for text in texts)


def test_deeply_nested_pattern_is_checked() -> None:
    code = f"let b;\nconst {'[' * 1200}a{']' * 1200} = x;\n"

    assert is_complete(code, "javascript")
