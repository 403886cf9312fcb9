"""Code that shows a call, and code that only declares something."""

from __future__ import annotations

import pytest

from centgate.libdocs.index.usage import shows_call

EXAMPLE = "Quill.of('goose').dip(well)"


@pytest.mark.parametrize(
    ("path", "declaration", "names"),
    [
        ("src/quill.js", "static of(bird, { sharp = isSharp() } = {})", ("Quill.of", "of")),
        ("src/quill.js", "dip(well);", ("Quill.dip", "dip")),
        ("src/quill.js", "quill.of = (bird) => make(bird)", ("quill.of", "of")),
        ("src/quill.js", "export default class Quill {\n  dip() {\n    well.open();\n  }\n}", ("Quill",)),
        (
            "quill/pens.py",
            "@dataclass\nclass Pen:\n    ink: list[str] = field(init=False)",
            ("quill.Pen", "Pen"),
        ),
        ("quill/pens.py", "def dip(\n    well: Well = Well(3),\n) -> None: ...", ("quill.dip", "dip")),
        ("src/pens.rs", "pub fn dip(well: Well) -> Pen", ("dip",)),
        ("pens.go", "func (pen *Pen) Dip(well Well) error", ("Pen.Dip", "Dip")),
        ("index.d.ts", "export declare function dip(well: Well): void", ("dip",)),
    ],
)
def test_a_declaration_is_no_call_but_its_example_is(
    path: str, declaration: str, names: tuple[str, ...]
) -> None:
    assert not shows_call(path, declaration, names)
    assert shows_call(path, f"{declaration}\n\n{EXAMPLE}", names)


def test_an_example_may_begin_with_a_declaration() -> None:
    page = "export default function Page() {\n  const quill = useQuill();\n}"

    assert shows_call("docs/quill.md", page, ("useQuill",))
    assert shows_call("src/quill.js", EXAMPLE, ("Quill.of", "of"))
    assert shows_call(
        "quill/app.py", "@app.dip('/')\ndef dip():\n    return well.open()", ("quill.App.dip", "dip")
    )
