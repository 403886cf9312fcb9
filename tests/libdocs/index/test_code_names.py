"""Names that code defines, imports, creates and calls."""

from __future__ import annotations

import time

import pytest

from centgate.libdocs.index.code_names import (
    find_creations,
    find_defined,
    find_free_names,
    find_imports,
    find_parameter_types,
    has_call,
    imported_names,
)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("well = Well(3)\nink, pen = well.split()", {"well", "ink", "pen"}),
        ("with Well(3) as well:\n    pass", {"well"}),
        ("for goose in geese:\n    pass", {"goose"}),
        ("async def dip(pen, well=None):\n    pass", {"dip", "pen", "well", "None"}),
        ("const { dip, wipe: dry } = pens", {"dip", "wipe", "dry"}),
        ("export default class Quill {}", {"Quill"}),
        ("geese.map(goose => goose.quill)", {"goose"}),
        ("from quill import Nib, Well as Source", {"Nib", "Source"}),
        ("if well == other:\n    pass", set[str]()),
    ],
)
def test_defined_names(code: str, names: set[str]) -> None:
    assert find_defined(code) == names


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("import quill.pens", {"quill"}),
        ("import quill.pens as qp", {"qp"}),
        ("from quill import (\n    Nib,\n    Well as Source,\n)", {"Nib", "Source"}),
        ("import quill, { Nib, type Well } from 'quill'", {"quill", "Nib", "Well"}),
        ("import * as quill from 'quill';", {"quill"}),
        ('const { Nib } = require("quill");', {"Nib"}),
    ],
)
def test_imports_and_their_names(statement: str, names: set[str]) -> None:
    comment = "# as ever" if statement.startswith("from") else ""

    assert find_imports(f"{statement} {comment}\n\ndip()\n") == [statement]
    assert imported_names(statement) == names


def test_imports_inside_functions_are_not_found() -> None:
    assert find_imports("def dip():\n    import quill\n") == []


def test_free_names_are_no_attributes_arguments_keys_or_comments() -> None:
    code = "pen = quill.cut(angle=3)  # with a knife\nwell.dip(pen, {'ink': colour}, \"paper\")"

    assert find_free_names(code) == {"quill", "well", "colour"}


@pytest.mark.parametrize("code", ['import * as z from "zod"\nz.string()', "const z = cut()\nz.string()"])
def test_names_of_one_letter_are_defined_too(code: str) -> None:
    assert "z" not in find_free_names(code)


def test_creations_are_whole_lines_with_call() -> None:
    code = (
        "client = Client('host')\nconst nib = new Nib(3); // sharp\n"
        "many = Client(\n    'host',\n)\ntext = 'word'\n"
        "broken = Client('host)\n    inner = Client(1)\n"
    )

    assert find_creations(code) == {"client": "client = Client('host')", "nib": "const nib = new Nib(3);"}


@pytest.mark.parametrize(
    ("code", "is_call"),
    [
        ("dip(well)", True),
        ("const pen = dip<Ink>(well)", True),
        ("<dip well={3} />", True),
        ("@dip\ndef pen(): ...", True),
        ("def dip(well): ...", False),
        ("function dip(well) {}", False),
        ("skip_dip(well)", False),
        ("quill.dip(well)", True),
        ("import quill\nquill.pens.dip(well)", True),
        ("const quill = require('quill');\nquill.dip(well)", True),
        ("pen = quill.Pen()\npen.dip(well)", False),
        ("with quill.Desk() as desk:\n    desk.dip(well)", False),
        ("def write(pen):\n    pen.dip(well)", False),
        ("quill.Pen().dip(well)", False),
        ("quill\n  .cut()\n  .dip(well)", False),
        ("JSON.dip(well)", False),
        ("pen = quill.Pen()\npen.dip(well)\nquill.dip(well)", True),
    ],
)
def test_call_of_function(code: str, *, is_call: bool) -> None:
    assert has_call(code, "dip") is is_call


@pytest.mark.parametrize(
    "code", ["quill.dip(well)", "new Quill({ dip: 3 })", "Quill(dip=3)", "quill.dip<Ink>(3)"]
)
def test_use_of_member(code: str) -> None:
    assert has_call(code, "dip", member=True)


def test_parameter_types_of_function_and_constructor() -> None:
    function = (
        "export declare function cut(a: string | ((end?: any) => Feather<T>), options?: CutOptions): Pen;"
    )
    outline = (
        "export class Quill {\n  name: string;\n  constructor(options?: QuillOptions);\n"
        + "  dip(): Ink;\n" * 20
    )
    interface = "export interface Pens {\n" + "  dip(well: Well): Ink;\n" * 20 + "}"

    assert find_parameter_types(function) == ["Feather", "CutOptions"]
    assert find_parameter_types(outline) == ["QuillOptions"]
    assert find_parameter_types(interface) == []


@pytest.mark.parametrize(
    "text",
    [
        "(" + "a" * 3_000,
        "import {" + "a," * 1_500,
        "lambda " * 400,
        " " * 3_000,
        "x = f(" * 500,
        "for a in " * 300,
        "from a import" + " " * 1_500 + "(x",
        "a:" + " " * 1_500 + "x",
        "import " + "a" * 3_500,
        "import" + " " * 3_500 + "(",
        "const" + " " * 3_500 + "(",
    ],
)
def test_long_texts_are_searched_in_time(text: str) -> None:
    start = time.process_time()

    for search in (find_defined, find_free_names, find_imports, find_creations, find_parameter_types):
        search(text)

    assert time.process_time() - start < 0.5
