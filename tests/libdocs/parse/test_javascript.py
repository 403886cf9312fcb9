"""JavaScript and TypeScript files, split into chunks."""

from __future__ import annotations

import time
from textwrap import dedent

import pytest

from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.javascript import split_javascript
from centgate.libdocs.parse.js_declarations import parse_declarations

BLOB = "https://github.com/acme/lib/blob/v1.0/index.d.ts"


def typescript_document(text: str, path: str = "index.d.ts", url: str | None = None) -> PackageDocument:
    return PackageDocument(path, dedent(text).lstrip("\n"), "typescript", url)


def javascript_document(text: str, path: str = "lib/response.js") -> PackageDocument:
    return PackageDocument(path, dedent(text).lstrip("\n"), "javascript", None)


def test_declared_function_has_signature_and_comment() -> None:
    document = typescript_document(
        """
        /**
         * Sends {@link Message} to the host.
         *
         * @param {string} what - what is sent
         * @param times how often
         * @returns how much was sent
         * @example
         * send("hello", 2);
         */
        export declare function send(what: string, times?: number): number;
        """
    )

    [piece] = split_javascript(document)

    assert piece.title == "send"
    assert piece.language == "typescript"
    assert piece.code == (
        'export declare function send(what: string, times?: number): number;\n\nsend("hello", 2);'
    )
    assert piece.text == (
        "Sends `Message` to the host.\n\n- `what` (string): what is sent\n- `times`: how often\n"
        "- Returns how much was sent"
    )


def test_default_value_of_parameter_may_be_array() -> None:
    document = javascript_document(
        """
        /**
         * Returns the difference of two times.
         * @param {string|string[]} [unit=['milliseconds']] - the units to include
         * @param {Object} [options={}] - how to convert
         */
        exports.diff = function diff(unit, options) {};
        """
    )

    [piece] = [piece for piece in split_javascript(document) if piece.names]

    assert piece.text == (
        "Returns the difference of two times.\n\n"
        "- `unit=['milliseconds']` (string|string[]): the units to include\n"
        "- `options={}` (Object): how to convert"
    )


def test_namespaces_qualify_names_and_lines_are_given() -> None:
    document = typescript_document(
        """
        export = Acme;
        declare namespace Acme {
            // for callers
            /** Sends a thing. */
            function send(what: string): void;
        }
        """,
        url=BLOB,
    )

    [piece] = [piece for piece in split_javascript(document) if piece.names]

    assert piece.names == ("Acme.send", "send")
    assert piece.source_url == f"{BLOB}#L5"


def test_documented_interface_members_are_chunks() -> None:
    document = typescript_document(
        """
        export interface Response extends Base<{ a: 1 }> {
            /** Set status `code`. */
            status(code: number): this;
            statusCode: number;
            /** @internal */
            hidden(): void;
        }
        """
    )

    outline, status = split_javascript(document)

    assert outline.code is not None
    assert "statusCode: number;" in outline.code
    assert "Set status" not in outline.code
    assert (status.title, status.code, status.text) == (
        "Response.status",
        "interface Response {\n  status(code: number): this;\n}",
        "Set status `code`.",
    )


def test_brace_on_line_of_its_own_opens_body() -> None:
    document = typescript_document(
        """
        interface Stub<Arguments extends readonly any[] = any[], Value = any>
            extends Spy<Arguments, Value>
        {
            /** Makes the stub return a value. */
            returns(value: Value): Stub<Arguments, Value>;
        }
        """
    )

    assert [each.title for each in split_javascript(document)] == ["Stub", "Stub.returns"]


def test_blank_lines_before_many_braces_are_read_in_linear_time() -> None:
    seconds: list[float] = []
    for size in (4_000, 32_000):
        text = "\n" * size + "interface Stub" + "\n{}x" * (size // 4)
        start = time.process_time()
        assert len(list(parse_declarations(text))) == 1
        seconds.append(time.process_time() - start)

    assert seconds[1] < max(seconds[0], 0.02) * 24


def test_braces_in_head_are_kept_and_object_shows_members() -> None:
    document = typescript_document(
        """
        export interface Component<P = {}, S = {}> extends Base<P> {
            state: S;
        }
        export declare const codes: {
            ok: 200;
        };
        """
    )

    component, codes = split_javascript(document)

    assert component.code == (
        "export interface Component<P = {}, S = {}> extends Base<P> {\n    state: S;\n}"
    )
    assert codes.code == "export declare const codes: {\n    ok: 200;\n}"


def test_overloads_are_one_chunk() -> None:
    document = typescript_document(
        """
        /** Sends what it is given. */
        export function send(what: string): void;
        export function send(what: Uint8Array): void;
        """
    )

    [piece] = split_javascript(document)

    assert (
        piece.code
        == "export function send(what: string): void;\nexport function send(what: Uint8Array): void"
    )


def test_assigned_functions_of_older_scripts_are_found() -> None:
    document = javascript_document(
        r"""
        'use strict';
        var isBrace = /[{]/.test(x) ? "}" : `{`;

        /**
         * Set status `code`.
         *
         *   res.status(200)
         *
         * @return {ServerResponse} for chaining
         * @public
         */

        res.status = function status(code) {
          if (code) { this.statusCode = code; }
          return this;
        };

        /** @api private */
        res.hidden = function hidden() {};

        /** Not exported. */
        function inner() {}
        """
    )

    [piece] = split_javascript(document)

    assert piece.names == ("res.status", "status")
    assert piece.code == "res.status = function status(code) { /* ... */ }\n\nres.status(200)"
    assert piece.text == "Set status `code`.\n\n- Returns `ServerResponse` for chaining"


@pytest.mark.parametrize(
    "export",
    [
        "module.exports = dip;",
        "module.exports = dip",
        "module.exports = { dip, clean: wipe };",
        "exports.dip = dip;",
        "module.exports.dip = dip;",
        "exports = module.exports = dip;",
    ],
)
def test_function_that_node_exports_by_name_is_found(export: str) -> None:
    document = javascript_document(
        f"""
        /** Dips a pen. */
        function dip(pen) {{ return pen; }}
        /** Fills a well. */
        function fill(well) {{ return well; }}

        {export}
        """
    )

    assert [piece.title for piece in split_javascript(document)] == ["dip"]


@pytest.mark.parametrize(
    ("export", "shown"),
    [
        ("module.exports = {\n  dip, // fill is not for users\n};", {"dip": "function dip(pen)"}),
        ("module.exports = { dip, /* fill, */ name: 'fill' };", {"dip": "function dip(pen)"}),
        ("module.exports = { dip, all: [fill], wet: wrap(dip, fill, 1) };", {"dip": "function dip(pen)"}),
        ("module.exports = { 'wet': dip };", {"wet": "function wet(pen)"}),
        ("module.exports = { wet: dip };", {"wet": "function wet(pen)"}),
        ("exports.wet = dip;\nexports.dip = dip;", {"dip": "function dip(pen)"}),
        ("exports.wet = dip;\nexports.soak = dip;", {"wet": "function wet(pen)"}),
        ("exports.default = dip;\nexports._fill = fill;", {"dip": "function dip(pen)"}),
    ],
)
def test_functions_have_the_names_that_node_exports(export: str, shown: dict[str, str]) -> None:
    document = javascript_document(
        f"/** Dips a pen. */\nfunction dip(pen) {{ return pen; }}\n"
        f"/** Fills a well. */\nfunction fill(well) {{ return well; }}\n\n{export}\n"
    )

    found = {piece.title: (piece.code or "").partition(" {")[0] for piece in split_javascript(document)}

    assert found == shown


@pytest.mark.parametrize("path", ["_root.js", "lib/_pens/dip.js", "internal/dip.js"])
def test_modules_for_own_package_are_left_out(path: str) -> None:
    text = "/** Dips a pen. */\nfunction dip(pen) { return pen; }\nmodule.exports = dip;\n"

    assert split_javascript(javascript_document(text))
    assert split_javascript(javascript_document(text, path)) == []


def test_exports_without_semicolons_are_separated() -> None:
    document = javascript_document(
        """
        /** Sends a thing. */
        export const send = (what) => {
          return what
        }
        /** Takes a thing. */
        export async function take(
          what,
        ) {}
        """
    )

    assert [piece.title for piece in split_javascript(document)] == ["send", "take"]


def test_minified_file_is_skipped() -> None:
    assert (
        split_javascript(
            javascript_document("/** Sends a thing. */export function send(){};" + "x();" * 1000)
        )
        == []
    )


def test_example_is_kept_whole() -> None:
    [piece] = split_javascript(
        javascript_document('import { send } from "acme";\n\nsend("hello");\n', path="examples/send_many.js")
    )

    assert (piece.title, piece.code) == ("Send many", 'import { send } from "acme";\n\nsend("hello");')


@pytest.mark.parametrize(
    "text",
    [
        *("", "/**", "/** x */", "{" * 900, "}" * 900, "`", "'", "export", "/** */ export class {"),
        *("declare namespace a {" * 50, "a,\n//\n" * 3000, "export type A =\n" + "| 1\n" * 3000),
    ],
)
def test_invalid_javascript_gives_no_error(text: str) -> None:
    assert isinstance(split_javascript(typescript_document(text)), list)


def test_one_long_line_is_omitted() -> None:
    names = ", ".join(f"name{number}" for number in range(400))
    functions = "".join(
        f"/** Sends a thing by way {number}. */\nexport function way{number}(): void;\n"
        for number in range(200)
    )

    found = split_javascript(typescript_document(f"{functions}export {{ {names} }};\n"))

    assert len(found) == 200


def test_module_in_examples_is_parsed_as_module() -> None:
    loader = "/** Loads a model from a file. */\nclass Loader {\n  load() {}\n}\n"
    text = loader + "// how it is done\n" * 300 + "export { Loader };\n"

    titles = [
        piece.title for piece in split_javascript(javascript_document(text, path="examples/jsm/loader.js"))
    ]

    assert titles == ["Loader"]


def test_deprecated_overload_is_omitted() -> None:
    [piece] = split_javascript(
        typescript_document(
            """
            export declare function send(what: string): void;
            /** @deprecated Will be removed. */
            export declare function send(what: string, how: undefined): void;
            """
        )
    )

    assert (piece.code, piece.text) == ("export declare function send(what: string): void", None)


@pytest.mark.extended
@pytest.mark.parametrize(
    "text",
    [
        "`" + "\\`" * 100_000,
        "export const a = 1\n" + ("=/[" * 600 + "\n") * 100,
        "interface A {\n" + "'/*/*/*/*/*'\n" * 15_000,
        "/** {@link a " + "|" * 100_000 + " */\nexport const a = 1\n",
        "/**\n" + "\t" * 100_000 + "x */\nexport const a = 1\n",
        "interface A {\n/** x */\na" + "\n" * 100_000 + "}\n",
    ],
    ids=["backticks", "patterns", "comments", "links", "tabs", "blank"],
)
def test_hostile_text_is_split_in_time(text: str) -> None:
    assert isinstance(split_javascript(typescript_document(text)), list)


@pytest.mark.parametrize(
    "unit",
    [
        "class A" + ", {}\n" * 5_000 + ";\n",
        "class A<" + " /* a */ {},\n" * 1_500 + ";\n",
        "class A<" + "// a\n{},\n" * 2_000 + ";\n",
        "x" + ", {}\n" * 50_000,
        " " * 100_000 + "x," + "/**/,\n" * 20_000,
    ],
    ids=["braces", "comments", "line comments", "one statement", "blank"],
)
def test_braces_in_hostile_heads_are_read_in_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    started = time.process_time()

    assert sum(1 for _ in parse_declarations(text)) <= 20

    assert time.process_time() - started < 2  # 0.6 on an idle machine; in square time 5 to 15


def test_statements_without_space_have_own_bodies() -> None:
    found = list(parse_declarations("\n".join(f"class A{number} {{a}}" for number in range(100))))

    assert [(each.head, each.body) for each in found] == [(f"class A{number}", "a") for number in range(100)]


def test_many_braces_before_body_are_no_declaration() -> None:
    few, many = ("type A =" + " | { a: string }" * number + ";\n" for number in (3, 200))

    for text in (few, many):
        (first,) = parse_declarations(text)
        assert (first.head, first.body) == (text.strip(" ;\n"), None)


@pytest.mark.parametrize(
    ("declaration", "code", "complete"),
    [
        (
            "export type Ink<T> = T extends { pen: infer P } ? P : never;",
            "export type Ink<T> = T extends {\n pen: infer P } ? P : never",
            True,
        ),
        (
            'export declare const dip: import("./types.ts").Dip<Pen>;',
            "export declare const dip: Dip<Pen>",
            True,
        ),
        (
            "export declare class Pen {\n  /** Dips it. */\n  dip(ink: Ink): void;\n}",
            "declare class Pen {\n  dip(ink: Ink): void;\n}",
            False,
        ),
        (
            "export declare class Pen {\n  constructor(ink: Ink);\n  dip(): void;\n}",
            "export declare class Pen {\n  constructor(ink: Ink);\n  dip(): void;\n}",
            False,
        ),
        (
            "export declare enum Ink {\n  Black = 1,\n}",
            "export declare enum Ink {\n  Black = 1,\n}",
            True,
        ),
        (
            "export interface Pen {\n  dip(): void;\n}",
            "export interface Pen {\n  dip(): void;\n}",
            True,
        ),
        (
            "export declare function dip(ink: Ink): void;",
            "export declare function dip(ink: Ink): void",
            False,
        ),
    ],
)
def test_declarations_are_shown_as_valid_code(declaration: str, code: str, complete: bool) -> None:  # noqa: FBT001 - a case
    *_, piece = split_javascript(
        typescript_document(f"/** Says what a pen is, at some length, for whoever asks. */\n{declaration}")
    )

    assert (piece.code, piece.complete) == (code, complete)


@pytest.mark.parametrize(
    ("script", "complete"),
    [
        ("export function dip(ink) {\n  return ink.open();\n}", False),
        ("export const dip = (ink) => {\n  return ink.open();\n};", False),
        ("export const MAX_INK = 5;", True),
        ("export class Pen {\n  dip(ink) {\n    return ink.open();\n  }\n}", True),
    ],
)
def test_code_without_its_body_is_incomplete(script: str, complete: bool) -> None:  # noqa: FBT001 - a case
    text = f"/** Says what a pen is, at some length, for whoever asks. */\n{script}\n"

    first, *_ = split_javascript(PackageDocument("pens.js", text, "javascript", None))

    assert first.complete is complete


def test_declaration_with_example_has_common_language() -> None:
    document = typescript_document(
        """
        /**
         * Draws a pen.
         *
         * ```jsx
         * <Pen ink="black" />
         * ```
         */
        export declare function Pen(properties: { ink: string }): Element;
        """
    )

    [piece] = split_javascript(document)

    assert (piece.language, piece.complete) == ("tsx", False)


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("export function f<T extends { a: string }>(x: T): void;", None),
        ("declare function f<T extends {\n  a: string\n}, U = {}>(x: T): { b: U };", None),
        ("function f<T extends { a: 1 }>(x: T): T {\n  go()\n}", "go()"),
        ("async function f(x: 1): { a: 1 } {\n  go()\n}", "go()"),
        ("function f<T extends (a: { b: 1 }) => { c: 2 }>(t: T) {\n  go()\n}", "go()"),
        ("class A<T extends { a: 1 } = {}> extends B<{ c: 1 }> {\n  x: T;\n}", "x: T;"),
        ("interface I<K extends keyof { a: 1 }> {\n  a: K;\n}", "a: K;"),
        ("export type M<T extends { a: 1 }> = {\n  b: T;\n};", "b: T;"),
    ],
)
def test_braces_in_types_of_head_are_no_body(text: str, body: str | None) -> None:
    first, second = parse_declarations(f"{text}\nconst after = 1;\n")

    head = text.removesuffix(";") if body is None else text[: text.rindex("{")].strip()
    assert (first.head, first.body and first.body.strip()) == (head, body)
    assert second.head == "const after = 1"


@pytest.mark.parametrize(
    ("head", "end"),
    [("export interface Ink {", "}"), ("export declare function dip(ink: Ink,", "last: string): void;")],
)
def test_shortened_declaration_is_incomplete(head: str, end: str) -> None:
    fields = "\n".join(f"  shade{number}: string," for number in range(300))
    example = " * The pen is dipped until it is as wet as it can be.\n *\n * ```ts\n * dip(1);\n * ```\n"
    comment = f"/**\n{example} *\n{example} */"

    first, *others = split_javascript(typescript_document(f"{comment}\n{head}\n{fields}\n{end}\n"))

    assert "// ..." in (first.code or "")
    assert (first.complete, [each.complete for each in others]) == (False, [True])
