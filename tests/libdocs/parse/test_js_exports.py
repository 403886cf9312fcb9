"""Exports of an npm package, found by its entry points."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.libdocs.parse.chunk import Chunk
from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.js_exports import (
    INNER_WEIGHT,
    collect_exports,
    find_entries,
    find_used_parts,
    lower_internals,
)

FILES = {
    "dist/index.d.ts": "export * from './pens.js';\nexport { Well as InkWell } from './wells';\n"
    "import { Ink } from './inks';\nexport { Ink };\nexport * as extra from './extra';\n",
    "dist/pens.d.ts": "import type { PenOptions } from './options';\n"
    "export declare class Pen { constructor(options: PenOptions); }\n",
    "dist/wells.d.ts": "export declare class Well {}\nexport declare class Pump {}\n",
    "dist/inks.d.ts": "export declare class Ink {}\n",
    "dist/options.d.ts": "export interface PenOptions {}\nexport interface Other {}\n",
    "dist/extra/index.d.ts": "export declare const more: string;\n",
    "dist/inner/code.d.ts": "export declare function addCode(): void;\n",
}


def build_documents(files: dict[str, str]) -> list[PackageDocument]:
    return [PackageDocument(path, text, "typescript", None) for path, text in files.items()]


@pytest.mark.parametrize(
    ("path", "name", "is_exported"),
    [
        ("dist/pens.d.ts", "Pen", True),
        ("dist/wells.d.ts", "Well", True),
        ("dist/wells.d.ts", "Pump", False),
        ("dist/inks.d.ts", "Ink", True),
        ("dist/options.d.ts", "PenOptions", True),
        ("dist/options.d.ts", "Other", False),
        ("dist/extra/index.d.ts", "more", True),
        ("dist/inner/code.d.ts", "addCode", False),
    ],
)
def test_names_reached_from_entry_points_are_exported(path: str, name: str, is_exported: bool) -> None:  # noqa: FBT001 - a case
    exports = collect_exports(build_documents(FILES), ["dist/index.js"])

    assert exports.has(path, name) == is_exported


def test_unexported_declarations_have_lower_weight() -> None:
    exports = collect_exports(build_documents(FILES), ["dist/index.d.ts"])
    chunks = [
        Chunk(name, (), "code", "typescript", None, None, path, (name,))
        for path, name in (("dist/pens.d.ts", "Pen"), ("dist/inner/code.d.ts", "addCode"), ("lib/a.js", "a"))
    ]

    assert [each.weight for each in lower_internals(chunks, exports)] == [1.0, INNER_WEIGHT, 1.0]


def test_without_entry_point_all_names_are_exported() -> None:
    assert collect_exports(build_documents(FILES), ["build/none.js"]).has("dist/inner/code.d.ts", "addCode")


def test_pattern_matches_files() -> None:
    assert collect_exports(build_documents(FILES), ["dist/inner/*.js"]).has("dist/inner/code.d.ts", "addCode")


@pytest.mark.parametrize(
    ("manifest", "entries"),
    [
        ({"types": "./dist/index.d.ts", "main": "dist/index.cjs"}, ["dist/index.d.ts", "dist/index.cjs"]),
        ({"exports": {".": {"import": {"types": "./a.d.ts"}}, "./b/*": "./b/*.js"}}, ["a.d.ts", "b/*.js"]),
        ({"exports": [None, "./a.js"], "main": 7}, ["a.js"]),
        ({}, ["index.js"]),
    ],
)
def test_entry_points_are_those_of_manifest(manifest: dict[str, Any], entries: list[str]) -> None:
    assert find_entries(json.dumps(manifest)) == entries


@pytest.mark.parametrize("manifest", ["", "[]", "7", "[" * 100_000])
def test_invalid_manifest_has_no_entry_points(manifest: str) -> None:
    assert find_entries(manifest) == []


@given(st.lists(st.sampled_from([line for text in FILES.values() for line in text.splitlines()])))
def test_circular_exports_end(lines: list[str]) -> None:
    text = "\n".join([*lines, "export * from './b';", "export * from './a';"])
    exports = collect_exports(build_documents({"a.d.ts": text, "b.d.ts": text}), ["a.js"])

    assert {"a", "b"} <= exports.modules


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("index.d.ts", "import type { Ink } from '@quill/ink';\nexport function dip(ink: Ink): void;\n"),
        ("index.d.ts", "export declare const ink: import('@quill/ink/blue').Ink;\n"),
        ("index.d.ts", "import ink = require('@quill/ink');\nexport = ink;\n"),
        ("index.js", "export * from '@quill/ink';\n"),
        ("index.js", "export {\n  Ink,\n  Well as InkWell,\n} from '@quill/ink/blue.js';\n"),
        ("index.js", "import Ink, { Well } from '@quill/ink';\nclass Pen {}\nexport { Pen, Well };\n"),
        ("index.js", "import * as ink from '@quill/ink';\nexport default ink;\n"),
        ("index.js", "module.exports = require('@quill/ink');\n"),
        ("index.js", 'exports.ink = require("@quill/ink").Ink;\n'),
        ("index.js", "tslib_1.__exportStar(require('@quill/ink'), exports);\n"),
        ("index.js", "module.exports = {\n  pen: require('./pen'),\n  ink: require('@quill/ink'),\n};\n"),
        ("index.js", "const ink = require('@quill/ink');\nmodule.exports = { Pen, ink };\n"),
        ("index.js", "const { Ink } = require('@quill/ink');\nexports.BlueInk = Ink;\n"),
        ("index.js", "__reExport(index_exports, require('@quill/ink'), module.exports);\n"),
        ("index.js", "var _ink = require('@quill/ink');\nObject.keys(_ink).forEach(function (key) {\n});\n"),
        (
            "index.js",
            "var _ink = require('@quill/ink');\nObject.defineProperty(exports, 'Ink', {\n"
            "  enumerable: true,\n  get: function () {\n    return _ink.Ink;\n  }\n});\n",
        ),
        ("README.md", "# Quill\n\nInstall [`@quill/ink`](https://quill.example) for ink.\n"),
        ("docs/ink.md", "# Ink\n\n```js\nimport { Ink } from '@quill/ink/blue'\n```\n"),
    ],
)
def test_part_that_library_names_is_used(path: str, text: str) -> None:
    kind = "markdown" if path.endswith(".md") else "javascript"
    own = [PackageDocument(path, text, kind, None)]

    assert find_used_parts(own, {"@quill/ink": (), "@quill/in": (), "@quill/ink-blue": ()}) == {"@quill/ink"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("index.js", "import { Ink } from '@quill/ink';\nexport class Pen {\n  ink = new Ink();\n}\n"),
        ("index.js", "const ink = require('@quill/ink');\nexports.dip = () => ink.open();\n"),
        ("index.js", "import { Ink } from '@quill/ink';\nexport { Pen as Ink } from './pen';\n"),
        ("index.js", "const ink = require('@quill/ink');\nclass Pen {\n  get() { return ink.open(); }\n}\n"),
        ("README.md", "Read about @quill/ink-blue, /x@quill/ink and @quill/inks.\n"),
    ],
)
def test_part_that_library_uses_inside_is_not_used(path: str, text: str) -> None:
    kind = "markdown" if path.endswith(".md") else "javascript"

    assert find_used_parts([PackageDocument(path, text, kind, None)], {"@quill/ink": ()}) == frozenset()


def test_part_of_part_is_used_if_exported_again() -> None:
    parts = {
        "@quill/core": build_documents(
            {
                "@quill/core/index.d.ts": "export * from '@quill/deep';\nimport { Log } from '@quill/log';\n",
                "@quill/core/README.md": "Made of @quill/log.\n",
            }
        ),
        "@quill/deep": build_documents({"@quill/deep/index.d.ts": "export * from '@quill/deepest';\n"}),
        "@quill/deepest": (),
        "@quill/log": (),
        "@quill/other": build_documents({"@quill/other/index.d.ts": "export * from '@quill/log';\n"}),
    }
    own = build_documents({"index.d.ts": "export * from '@quill/core';\n"})

    assert find_used_parts(own, parts) == {"@quill/core", "@quill/deep", "@quill/deepest"}
