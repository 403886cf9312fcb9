"""Markdown and MDX files, split into chunks."""

from __future__ import annotations

from textwrap import dedent

import pytest

from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.markdown import split_markdown

BLOB = "https://github.com/acme/lib/blob/v1.0/docs/guide.md"


def markdown_document(text: str, path: str = "docs/guide.md", url: str | None = None) -> PackageDocument:
    return PackageDocument(path, dedent(text).lstrip("\n"), "markdown", url)


def test_code_stays_with_its_section_and_prose() -> None:
    document = markdown_document(
        """
        # Guide

        ## Send

        Open a client, then call send with what is to be sent.

        ```py
        client.send("hello")
        ```
        """
    )

    [piece] = split_markdown(document)

    assert piece.title == "Send"
    assert piece.breadcrumb == ("Guide",)
    assert piece.language == "python"
    assert piece.code == 'client.send("hello")'
    assert piece.text == "Open a client, then call send with what is to be sent."


def test_readme_of_folder_is_titled_by_it() -> None:
    text = """
        # Installation

        Install the package of the inkwell before it is filled with ink.

        # Usage

        Open the inkwell, fill it with ink, and close it again at once.
        """

    inner = split_markdown(markdown_document(text, "@quill/inkwell/README.md"))
    outer = split_markdown(markdown_document(text, "README.md"))
    repository = split_markdown(markdown_document(text, "@repository/README.md"))

    assert [each.breadcrumb for each in inner] == [("Inkwell",), ("Inkwell",)]
    assert [each.breadcrumb for each in (*outer, *repository)] == [(), (), (), ()]


def test_each_example_is_chunk() -> None:
    document = markdown_document(
        """
        # Send

        A string can be sent as it is, without anything else.

        ```python
        client.send("hello")
        ```

        Anything that is bytes has to be announced before it is sent.

        ```python
        client.announce(2)
        client.send(b"hi")
        ```
        """
    )

    first, second = split_markdown(document)

    assert (first.title, second.title) == ("Send", "Send")
    assert first.code == 'client.send("hello")'
    assert second.text == "Anything that is bytes has to be announced before it is sent."


def test_output_of_code_stays_in_text() -> None:
    document = markdown_document(
        """
        # Send

        ```python
        print(client.send("hello"))
        ```

        This prints:

        ```json
        {"sent": 5}
        ```
        """
    )

    [piece] = split_markdown(document)

    assert piece.code == 'print(client.send("hello"))'
    assert piece.text == 'This prints:\n\n```json\n{"sent": 5}\n```'


def test_link_shows_lines_at_this_version() -> None:
    document = markdown_document(
        "# One\n\nNothing here that anyone would want to read, ever.\n\n## Two\n\n```\nx\n```\n", url=BLOB
    )

    _, piece = split_markdown(document)

    assert piece.source_url == f"{BLOB}?plain=1#L5-L9"


def test_javascript_that_repeats_typescript_is_omitted() -> None:
    document = markdown_document(
        """
        # Page

        ```tsx filename="app/page.tsx"
        export default function Page(props: Props) { return <main /> }
        ```

        ```jsx filename="app/page.js"
        export default function Page(props) { return <main /> }
        ```
        """
    )

    [piece] = split_markdown(document)

    assert piece.language == "tsx"
    assert piece.code == "export default function Page(props: Props) { return <main /> }"
    assert piece.text == "`app/page.tsx`:"


def test_component_note_is_prose_and_code_comments_stay() -> None:
    document = markdown_document(
        """
        # Send

        <Note title="Beware"
              items={["a"]}>
            Sending twice sends it twice, unless the other side has seen it.
        </Note>

        ```jsx
        <Send>{/* twice */}</Send>
        ```
        """
    )

    [piece] = split_markdown(document)

    assert piece.text == "Sending twice sends it twice, unless the other side has seen it."
    assert piece.code == "<Send>{/* twice */}</Send>"


def test_lists_and_tables_keep_their_form() -> None:
    text = "# Send\n\nBefore:\n\n1. one\n   - *two* `three`\n\n| a | b |\n|:--|--:|\n| 1 \\| 2 | [3](x) |\n"

    [piece] = split_markdown(markdown_document(text))

    assert piece.text == (
        "Before:\n\n1. one\n   - *two* `three`\n\n| a | b |\n| --- | --- |\n| 1 \\| 2 | 3 |"
    )


def test_one_package_manager_shows_installation() -> None:
    document = markdown_document(
        "# Install\n\n```bash\nnpm install acme\n```\n\nOr:\n\n```bash\nyarn add acme\n```\n"
    )

    assert [piece.code for piece in split_markdown(document)] == ["npm install acme"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "See [the guide](../guide.md#send) for how it is done in practice, please.",
            "See the guide for how",
        ),
        (
            "[![build](https://ci/x.svg)](https://ci) A library for sending things, to anyone and anywhere.",
            "A library for",
        ),
        (
            "<p align='center'>A library for sending <b>things</b> to other places, and back.</p>",
            "A library for sending things",
        ),
        (
            "[![](https://ci/x.svg)](\nhttps://ci)\nA library for sending things, to anyone and anywhere.",
            "A library for",
        ),
        ("&nbsp;•&nbsp;\nA library for sending things, to anyone and anywhere, if need be.", "A library for"),
        (
            "<!-- note\n\n    code\n-->\nA library for sending things to other places, quickly.",
            "A library for",
        ),
        ("<!-- note\nto self --> A library for sending things to other places, quickly.", "A library for"),
        ("{/* note */} A library for sending things to other places, quickly.", "A library for"),
        (
            "The type `Map<string, [x](y)>` is what comes back from every call.",
            "The type `Map<string, [x](y)>` is",
        ),
        ("Call {func}`send` to send things to other places, as often as you like.", "Call `send` to send"),
        (
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n\nThe table has what is sent, and where to.",
            "| a | b |\n| --- | --- |\n",
        ),
    ],
)
def test_decorative_markup_is_removed_from_prose(source: str, expected: str) -> None:
    [piece] = split_markdown(markdown_document(f"# Title\n\n{source}\n"))

    assert piece.text is not None
    assert piece.text.startswith(expected)


def test_front_matter_gives_title_and_mdx_imports_are_removed() -> None:
    document = markdown_document(
        """
        ---
        title: "Sending things"
        sidebar: 3
        ---

        import Tabs from '@theme/Tabs'

        <Tabs>
        Everything that can be sent is sent by one function, which is send.
        </Tabs>
        """
    )

    [piece] = split_markdown(document)

    assert piece.title == "Sending things"
    assert piece.text == "Everything that can be sent is sent by one function, which is send."


def test_page_without_title_is_named_by_path() -> None:
    document = markdown_document(
        "## Send\n\n```\nsend(1)\n```\n\n## Take\n\n```\ntake(1)\n```\n", path="docs/01-first_steps.md"
    )

    assert [(*piece.breadcrumb, piece.title) for piece in split_markdown(document)] == [
        ("First steps", "Send"),
        ("First steps", "Take"),
    ]


def test_admonition_is_text_and_its_code_is_code() -> None:
    document = markdown_document(
        """
        # Send

        !!! note "Beware"
            Sending twice sends it twice.

            ```python
            send("twice")
            ```
        """
    )

    [piece] = split_markdown(document)

    assert piece.text == "Beware:\nSending twice sends it twice."
    assert piece.code == 'send("twice")'


def test_indented_lines_are_code_outside_lists() -> None:
    document = markdown_document(
        "# Send\n\nLike this:\n\n    send(1)\n\n    send(2)\n\n- a list\n\n    of two paragraphs\n"
    )

    first, *_ = split_markdown(document)

    assert first.code == "send(1)\n\nsend(2)"


def test_embedded_restructuredtext_is_parsed() -> None:
    document = markdown_document(
        "# Send\n\n```{eval-rst}\n.. click:example::\n\n    @command()\n    def send(): ...\n```\n"
    )

    [piece] = split_markdown(document)

    assert piece.code == "@command()\ndef send(): ..."
    assert piece.language == "python"


def test_name_as_heading_names_chunk() -> None:
    [piece] = split_markdown(
        markdown_document("# API\n\n## `client.send(what)`\n\n```js\nclient.send(1)\n```\n")
    )

    assert piece.names == ("client.send", "send")


def test_long_code_is_divided_into_marked_parts() -> None:
    code = "\n\n".join(f"def function_{number}():\n    return {number}  # {'x' * 60}" for number in range(90))

    found = split_markdown(markdown_document(f"# Long\n\n```python\n{code}\n```\n"))

    assert len(found) > 1
    assert found[0].title == f"Long (part 1 of {len(found)})"
    assert all(len(piece.code or "") <= 3600 for piece in found)
    assert all((piece.code or "").startswith("def ") for piece in found)


def test_invisible_characters_are_removed() -> None:
    [piece] = split_markdown(markdown_document("# Se\u202end\n\n```\nsend(\u200b1)\n```\n"))

    assert (piece.title, piece.code) == ("Send", "send(1)")


@pytest.mark.parametrize(
    "text", ["", "```", "# ", "---\ntitle: x\n---", "![", "[" * 5000, "<" * 5000, "    " * 5000]
)
def test_invalid_markdown_gives_no_error(text: str) -> None:
    assert split_markdown(PackageDocument("README.md", text, "markdown", None)) == [] or text.startswith(
        ("[", "<")
    )


def test_admonition_below_code_is_no_code() -> None:
    written = "Examples:\n\n    !!! example\n\n        ```python\n        send(1)\n        ```\n\n"

    found = split_markdown(
        markdown_document(
            f'# Send\n\n{written}    !!! example "Later"\n\n        ```python\n        send(2)\n'
        )
    )

    assert "send(1)" in (found[0].code or "")
    assert not any("!!!" in f"{piece.code}{piece.text}" for piece in found)


@pytest.mark.extended
@pytest.mark.parametrize(
    "text",
    [
        "`" * 200_000,
        "---\ntitle: " + " " * 200_000 + "x\n---\n",
        "[a](" * 50_000,
        "<a " * 60_000,
        "![" * 50_000,
        "> " * 200 + "a\n" + "a\n" * 20_000,
    ],
    ids=["backticks", "title", "links", "tags", "images", "quotes"],
)
def test_hostile_text_is_split_in_time(text: str) -> None:
    assert isinstance(split_markdown(markdown_document(text)), list)
