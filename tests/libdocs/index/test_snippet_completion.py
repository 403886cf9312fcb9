"""Snippets that are completed by their section, an example, fields of options, and imports."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from centgate.libdocs.index import search_index
from centgate.libdocs.index.completion import complete_chunks
from centgate.libdocs.index.rows import read_chunks
from centgate.libdocs.libraries import DocSnippet
from centgate.libdocs.parse.documents import PackageDocument

ABOUT = {"name": "quill", "version": "2.1.0"}
URL = "https://github.com/goose/quill/blob/v2/docs/guide.md"
GUIDE = """# Guide

## Begin

```python
from quill import Nib, Well

well = Well(3)
```

## Timing a stroke

A component that measures how long a stroke takes is a class with two methods, of which both are optional.

```python
class StrokeTimer:
    def before(self, stroke):
        stroke.started = now()
```

Then it is passed to the desk, which calls it for each stroke in the order in which these arrive at it.

```python
desk = Desk(components=[StrokeTimer()])
```

## Blotting ink

Ink is blotted with paper, and never with a sleeve, since sleeves are dear and paper is not at all dear.

```python
nib = Nib(well)
nib.blot()
```
"""
TYPES = """
/** Cuts a feather to a pen, with the angle that its owner asks for and no other. */
export declare function cutFeather(feather: string, options?: CutOptions): Pen;

export interface CutOptions {
    angle?: number;
    leftHanded?: boolean;
}

/** A hand that holds a pen, and lets go of it when the clock strikes. */
export declare class Hand {
    /** Puts the pen to the paper, as gently as it goes, and waits for the ink to flow. */
    press(force: number): void;
}
"""
README = """# Quill

Pens for all who write by hand, in the evening as well as in the morning, and on any paper that is at hand.

## First letter

Begin with a feather of a goose.

```javascript
import { cutFeather } from 'quill'

const pen = cutFeather('goose')
```

## Pressing

```javascript
const button = new Button()
button.press(1)

const hand = new Hand()
hand.press(3)
```
"""


def search(
    folder: Path, topic: str, documents: list[PackageDocument], budget: int = 2500
) -> list[DocSnippet]:
    file = folder / "quill.db"
    search_index.write_index(file, documents, ABOUT)
    return search_index.search(file, topic, budget)


def guide(text: str = GUIDE) -> list[PackageDocument]:
    return [PackageDocument("docs/guide.md", text, "markdown", URL)]


def typescript() -> list[PackageDocument]:
    return [
        PackageDocument("README.md", README, "markdown", "https://unpkg.com/quill@2/README.md"),
        PackageDocument("index.d.ts", TYPES, "typescript", None),
    ]


def test_section_continues_where_its_code_is_used(tmp_path: Path) -> None:
    first, *others = search(tmp_path, "timing a stroke", guide())

    assert first.title == "Guide > Timing a stroke"
    assert first.code
    assert first.code.startswith("class StrokeTimer")
    assert first.text
    assert "both are optional.\n\n(The code of this snippet stands here.)\n\nThen it is passed" in first.text
    assert "```python\ndesk = Desk(components=[StrokeTimer()])\n```" in first.text
    assert first.source_url == f"{URL}?plain=1#L11-L25"
    assert all("Desk(" not in (each.code or "") for each in others)


def test_code_is_preceded_by_what_it_needs(tmp_path: Path) -> None:
    text = """# Guide

## Sealing

A letter is written on paper, which has to be folded twice before anybody can think of sealing it.

```python
letter = Paper("a4").fold(2)
```

Wax seals it as soon as it is warm, which takes a minute by the fire and two minutes by the candle.

```python
letter.seal(wax="red")
```
"""
    first, *_ = search(tmp_path, "wax seal by the candle", guide(text))

    assert first.code == 'letter.seal(wax="red")'
    assert first.text
    assert first.text.startswith("A letter is written")
    assert '```python\nletter = Paper("a4").fold(2)\n```' in first.text


def test_neighbour_that_is_no_python_is_marked(tmp_path: Path) -> None:
    text = GUIDE.replace("desk = Desk(components=[StrokeTimer()])", "desk = Desk(components=[StrokeTimer(")

    first, *_ = search(tmp_path, "timing a stroke", guide(text))

    assert "```python fragment\ndesk = Desk" in (first.text or "")
    assert first.complete is True


def test_imports_of_page_are_given(tmp_path: Path) -> None:
    first, *_ = search(tmp_path, "blotting ink with paper", guide())

    assert first.code == "nib = Nib(well)\nnib.blot()"
    assert first.text
    assert first.text.endswith(
        "From the code above on this page:\n\n```python\nfrom quill import Nib, Well\nwell = Well(3)\n```"
    )


def test_part_of_long_example_gets_its_imports(tmp_path: Path) -> None:
    functions = "\n\n".join(
        f"def write_{word}(letter):\n" + f"    press(letter, '{word}')\n" * 26
        for word in ("salutations", "greetings", "introduction", "explanation", "apologies", "signature")
    )
    text = f"# Letters\n\nA letter has parts.\n\n```python\nfrom quill import press\n\n\n{functions}\n```\n"

    first, *_ = search(tmp_path, "write apologies", guide(text))

    assert first.title == "Letters (part 2 of 2)"
    assert first.text
    assert "from quill import press" in first.text


def test_signature_gets_its_example_and_fields(tmp_path: Path) -> None:
    [first] = [each for each in search(tmp_path, "cutFeather", typescript()) if each.title == "cutFeather"]

    assert first.code
    assert first.code.startswith("export declare function cutFeather")
    assert first.text
    assert "From Quill > First letter (https://unpkg.com/quill@2/README.md):" in first.text
    assert "const pen = cutFeather('goose')" in first.text
    assert "leftHanded?: boolean" in first.text


def test_method_gets_example_that_names_its_class(tmp_path: Path) -> None:
    documents = [
        PackageDocument("docs/other.md", "# Other\n\n```js\nmachine.press(1)\n```\n", "markdown", None),
        *typescript(),
    ]

    [first] = [each for each in search(tmp_path, "Hand.press", documents) if each.title == "Hand.press"]

    assert first.text
    assert "hand.press(3)" in first.text
    assert "machine.press" not in first.text


def test_option_without_example_gets_function_that_takes_it(tmp_path: Path) -> None:
    types = """
export interface StrokeOptions {
    /** Lifts the pen from the paper after so many strokes, counted from the first one. */
    liftAfter?: number;
}
export declare function stroke(pen: string, options?: StrokeOptions): void;
"""
    documents = [PackageDocument("index.d.ts", types, "typescript", None)]

    first, *_ = search(tmp_path, "lift the pen after some strokes", documents)

    assert first.title == "StrokeOptions.liftAfter"
    assert first.text
    assert "From stroke:\n\n```typescript fragment\nexport declare function stroke(" in first.text


def test_method_without_example_gets_its_class(tmp_path: Path) -> None:
    source = '''
class Blotter:
    """Keeps the paper of a desk dry."""

    def __init__(self, paper: str, weight: int = 3) -> None: ...

    def press(self, letter: str) -> None:
        """Presses a letter until all of its ink is dry, which may take a while."""
'''
    documents = [PackageDocument("quill/blotter.py", source, "python", None)]

    first, *_ = search(tmp_path, "press a letter until its ink is dry", documents)

    assert first.title == "quill.blotter.Blotter.press"
    assert first.text
    assert "class Blotter:\n    def __init__(paper: str, weight: int = 3) -> None: ..." in first.text


def test_objects_of_other_docstrings_are_not_given(tmp_path: Path) -> None:
    source = '''
def wash(feather):
    """Wash a feather until it is white.

    >>> from quill import Goose
    >>> plume = Goose(3)
    >>> wash(plume)
    """

def dry(feather):
    """Dry a feather in the sun, on a stone.

    >>> dry(plume, Goose)
    """
'''
    documents = [PackageDocument("quill/feathers.py", source, "python", None)]

    first, *_ = search(tmp_path, "dry a feather in the sun", documents)

    assert first.title == "quill.feathers.dry"
    assert first.text
    assert first.text.endswith("```python\nfrom quill import Goose\n```")


def test_type_of_options_gets_function_that_takes_it(tmp_path: Path) -> None:
    types = """
/** Strokes that are lifted from the paper before the ink runs dry on it. */
export interface StrokeOptions {
    liftAfter?: number;
}
export declare function stroke(pen: string, options?: StrokeOptions): void;
"""
    documents = [PackageDocument("index.d.ts", types, "typescript", None)]

    first, *_ = search(tmp_path, "strokes lifted before the ink runs dry", documents)

    assert first.title == "StrokeOptions"
    assert first.text
    assert "export declare function stroke(" in first.text


@pytest.mark.parametrize("budget", [120, 200, 400, 1000, 2500, 5000])
def test_completed_snippets_keep_budget(tmp_path: Path, budget: int) -> None:
    for number, topic in enumerate(("timing a stroke", "cutFeather", "feather and ink")):
        folder = tmp_path / str(number)
        folder.mkdir()

        snippets = search(folder, topic, [*guide(), *typescript()], budget)

        assert snippets
        assert sum(each.tokens for each in snippets) <= budget


def test_small_budget_is_not_spent_on_neighbours(tmp_path: Path) -> None:
    first, *_ = search(tmp_path, "timing a stroke", guide(), budget=200)

    assert "Desk(" not in (first.text or "")


def test_import_of_one_letter_is_not_given_twice(tmp_path: Path) -> None:
    text = (
        "# Guide\n\n## Begin\n\nFeathers of the old kind are cut by this.\n\n"
        '```typescript\nimport * as q from "quill/v3"\nq.cut(feather)\n```\n\n'
        "## Blotting ink\n\nInk is blotted with paper, and never with a sleeve, since sleeves are dear.\n\n"
        '```typescript\nimport * as q from "quill"\nq.blot(paper)\n```\n'
    )

    first, *_ = search(tmp_path, "blotting ink", guide(text))

    assert first.code == 'import * as q from "quill"\nq.blot(paper)'
    assert "quill/v3" not in (first.text or "")


def test_import_does_not_end_its_fence(tmp_path: Path) -> None:
    text = GUIDE.replace(
        "```python\nfrom quill import Nib, Well\n\nwell = Well(3)\n```",
        "~~~python\nfrom quill import (\n```\nRun this at once:\n```\nNib)\nwell = Well(3)\n~~~",
    )

    first, *_ = search(tmp_path, "blotting ink", guide(text))

    assert first.code == "nib = Nib(well)\nnib.blot()"
    assert "Run this" not in (first.text or "")


def test_example_with_import_of_another_runtime_gets_no_second_one(tmp_path: Path) -> None:
    text = (
        "# Guide\n\n## Begin\n\nFeathers of the old kind are cut by this.\n\n"
        '```typescript\nimport quill from "quill"\nquill.cut(feather)\n```\n\n'
        "## Blotting ink\n\nInk is blotted with paper, and never with a sleeve, since sleeves are dear.\n\n"
        '```typescript\nimport quill from "npm:quill"\nquill.blot(paper)\n```\n'
    )

    first, *_ = search(tmp_path, "blotting ink", guide(text))

    assert first.code == 'import quill from "npm:quill"\nquill.blot(paper)'
    assert "import quill" not in (first.text or "")


@pytest.mark.parametrize("source", ["npm:quill", "jsr:@goose/quill", "https://esm.sh/quill"])
def test_import_of_another_runtime_is_not_added(tmp_path: Path, source: str) -> None:
    text = (
        "# Guide\n\n## Begin\n\nFeathers of the old kind are cut by this.\n\n"
        f'```typescript\nimport quill from "{source}"\nquill.cut(feather)\n```\n\n'
        "## Blotting ink\n\nInk is blotted with paper, and never with a sleeve, since sleeves are dear.\n\n"
        "```typescript\nquill.blot(paper)\n```\n"
    )

    first, *_ = search(tmp_path, "blotting ink", guide(text))

    assert first.code == "quill.blot(paper)"
    assert source not in (first.text or "")


def test_example_after_one_that_is_too_long_gets_its_objects(tmp_path: Path) -> None:
    lines = "\n".join(f"desk.put({'feather' * 4}_{number}, ink)" for number in range(50))
    text = f"{GUIDE}\n## Drying\n\nInk dries with sand, or with time.\n\n```python\n{lines}\n```\n"
    search_index.write_index(tmp_path / "quill.db", guide(text), ABOUT)
    with closing(sqlite3.connect(tmp_path / "quill.db")) as database:
        rows = {each.title.rpartition(" > ")[2]: each for each in read_chunks(database, range(1, 9))}

        wanted = [rows["Timing a stroke"], rows["Drying"], rows["Blotting ink"]]
        _, long, short = complete_chunks(database, wanted, 600)

    assert long == rows["Drying"]
    assert "well = Well(3)" in (short.text or "")


def test_options_of_one_name_in_equally_near_files_are_not_guessed(tmp_path: Path) -> None:
    options = "export interface PaintOptions {{\n    {0}Colour?: string;\n    {0}Coats?: number;\n}}\n"
    wall = (
        "/** Paints a wall with all that is at hand. */\n"
        "export declare function paintWall(o?: PaintOptions): Wall;\n"
    )
    documents = [
        PackageDocument("dist/door/index.d.ts", options.format("door"), "typescript", None),
        PackageDocument("dist/roof/index.d.ts", options.format("roof"), "typescript", None),
        PackageDocument("dist/wall/index.d.ts", wall, "typescript", None),
    ]

    first, *_ = search(tmp_path, "paint a wall", documents)

    assert first.title == "paintWall"
    assert "Colour" not in (first.text or "")


@pytest.mark.parametrize(("maker", "is_added"), [("Session", False), ("Store", True), ("StoreOnDisk", True)])
def test_method_gets_no_call_of_a_namesake(tmp_path: Path, maker: str, *, is_added: bool) -> None:
    source = (
        '"""Ink."""\n\n\nclass Session:\n    """A session that keeps the letters of an evening."""\n\n'
        '    def fetch(self, url: str) -> str:\n        """Fetch a letter by its address."""\n\n\n'
        'class Store:\n    """A store of ink."""\n\n'
        '    def fetch(self, key: str) -> str:\n        """Fetch a bottle from the drawer."""\n'
    )
    readme = (
        "# Quill\n\nQuill is for letters, in any place at all.\n\n## Letters\n\n"
        f'```python\ndesk = quill.{maker}()\nletter = desk.fetch("goose")\nstore = "chest"\n```\n'
    )
    documents = [
        PackageDocument("README.md", readme, "markdown", None),
        PackageDocument("quill/__init__.py", source, "python", None),
    ]

    first, *_ = search(tmp_path, "bottle from the drawer", documents)

    assert first.title == "quill.Store.fetch"
    assert ("desk.fetch" in (first.text or "")) is is_added
