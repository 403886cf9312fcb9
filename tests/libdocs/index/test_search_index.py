"""Build and search of a library's index."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from centgate.libdocs.index import search_index
from centgate.libdocs.index.boosts import SPECIAL_PAGE_FACTOR, apply_boosts
from centgate.libdocs.index.dedupe import drop_variants
from centgate.libdocs.index.index_file import read_metadata
from centgate.libdocs.index.tokenizer import stem_words
from centgate.libdocs.parse.chunk import Chunk
from centgate.libdocs.parse.documents import PackageDocument

ABOUT = {"name": "acme", "version": "2.1.0", "title": "Acme", "repository": "acme/lib"}
README = """# Acme

A library for sending things to other places, and for taking what others send, without any fuss at all.

## Installation

```bash
pip install acme
```

## Example

```python
from acme import Client

Client("host").send("hello")
```

## Sponsors

Thanks to our sponsors, without whom there would be no library: everyone who has ever sent us a thing.
"""
GUIDE = """# Guide

## Timeouts

A client waits five seconds unless it is told otherwise, for as long as anything is on its way.

```python
Client("host", timeout=10)
```

## Retry policies

Nothing is sent twice unless it is asked for, since the other side may have received it after all.

```python
Client("host", retry_policy=RetryPolicy(3))
```

## Sending in the background

What is sent in the background is sent by a thread of its own, in the order in which it was given.

```python
Client("host").send_later("hello")
```
"""
SOURCE = '''
class Client:
    """Sends things to a host and takes what the host sends."""

    def __init__(self, host: str, timeout: float = 5.0) -> None: ...

    def send(self, what: str) -> int:
        """Send a thing to the host at once, and wait until it has said that it was received."""


class RetryPolicy:
    """How often a thing is sent again when the host has not said that it received the thing."""
'''


@pytest.fixture
def library(tmp_path: Path) -> Path:
    file = tmp_path / "acme.sqlite"
    documents = [
        PackageDocument("README.md", README, "markdown", None),
        PackageDocument(
            "docs/guide.md", GUIDE, "markdown", "https://github.com/acme/lib/blob/v2/docs/guide.md"
        ),
        PackageDocument("acme/__init__.py", "from ._client import Client, RetryPolicy", "python", None),
        PackageDocument("acme/_client.py", SOURCE, "python", None),
    ]
    search_index.write_index(file, documents, ABOUT)
    return file


def list_titles(file: Path, topic: str | None, budget: int = 2000) -> list[str | None]:
    return [snippet.title for snippet in search_index.search(file, topic, budget)]


def test_section_about_topic_is_first(library: Path) -> None:
    first, *_ = search_index.search(library, "how do I set a timeout?", 2000)

    assert first.title == "Guide > Timeouts"
    assert first.code == 'Client("host", timeout=10)'
    assert first.language == "python"
    assert first.source_url == "https://github.com/acme/lib/blob/v2/docs/guide.md?plain=1#L3-L9"


@pytest.mark.parametrize(
    "topic", ["RetryPolicy", "retryPolicy", "retry_policy", "retry policy", "acme RetryPolicy()"]
)
def test_name_is_found_in_any_notation(library: Path, topic: str | None) -> None:
    assert "acme.RetryPolicy" in list_titles(library, topic)[:2]


def test_exact_name_finds_its_definition_first(library: Path) -> None:
    assert list_titles(library, "Client.send")[0] == "acme.Client.send"


def test_introduction_is_returned_without_topic(library: Path) -> None:
    titles = list_titles(library, None)

    assert titles[:3] == ["Acme", "Acme > Installation", "Acme > Example"]
    assert "acme.Client" in titles
    assert "Acme > Sponsors" not in titles


@pytest.mark.parametrize("topic", ["", "  ", "getting started", "installation"])
def test_general_topic_gives_introduction(library: Path, topic: str | None) -> None:
    assert list_titles(library, topic) == list_titles(library, None)


@pytest.mark.parametrize("topic", ["kubernetes", "???", '"', "* OR", "\ud800", "日本語"])
def test_no_match_gives_no_snippet(library: Path, topic: str | None) -> None:
    assert search_index.search(library, topic, 2000) == []


def test_snippets_keep_total_budget(library: Path) -> None:
    snippets = search_index.search(library, "sending things to the host", 120)

    assert snippets
    assert sum(snippet.tokens for snippet in snippets) <= 120


def test_first_snippet_is_cut_to_budget(tmp_path: Path) -> None:
    file = tmp_path / "long.sqlite"
    text = "# Sending\n\n" + "A thing is sent by the client, which waits for the host. " * 30
    code = "\n".join(f"client.send({number})" for number in range(150))
    search_index.write_index(
        file, [PackageDocument("docs/a.md", f"{text}\n\n```python\n{code}\n```\n", "markdown", None)], ABOUT
    )

    [snippet] = search_index.search(file, "sending", 200)

    assert snippet.tokens <= 200
    assert "cut" in (snippet.text or "") + (snippet.code or "")


@pytest.mark.extended
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(topic=st.text(max_size=200), budget=st.integers(50, 5000))
def test_any_topic_keeps_budget(library: Path, topic: str, budget: int) -> None:
    snippets = search_index.search(library, topic, budget)

    assert sum(snippet.tokens for snippet in snippets) <= budget


@pytest.mark.parametrize(
    "topic",
    [
        "timeout NOT client",
        "timeout*",
        "trail:timeout",
        "-timeout",
        "NEAR(timeout nothing)",
        '"timeout',
        "{timeout",
    ],
)
def test_topic_is_never_query_syntax(library: Path, topic: str) -> None:
    assert "Guide > Timeouts" in list_titles(library, topic)


def test_counts_and_metadata_are_stored(tmp_path: Path) -> None:
    file = tmp_path / "acme.sqlite"

    built = search_index.write_index(file, [PackageDocument("README.md", README, "markdown", None)], ABOUT)

    about = read_metadata(file)
    assert about["name"] == "acme"
    assert about["repository"] == "acme/lib"
    assert (about["pieces"], about["snippet_count"]) == (str(built.chunks), str(built.with_code))
    assert built.with_code == 2
    assert about["built_at"].endswith("Z")


def test_failed_build_keeps_previous_index(library: Path) -> None:
    def broken() -> Iterator[PackageDocument]:
        yield PackageDocument("README.md", README, "markdown", None)
        raise OSError("the archive ends here")

    with pytest.raises(OSError, match="the archive ends here"):
        search_index.write_index(library, broken(), ABOUT)

    assert list_titles(library, "timeouts")[0] == "Guide > Timeouts"
    assert [path.name for path in library.parent.iterdir()] == ["acme.sqlite"]


def test_package_without_documentation_has_empty_index(tmp_path: Path) -> None:
    built = search_index.write_index(tmp_path / "none.sqlite", [], ABOUT)

    assert (built.chunks, built.with_code) == (0, 0)
    assert search_index.search(tmp_path / "none.sqlite", None, 500) == []
    assert search_index.search(tmp_path / "none.sqlite", "sending", 500) == []


def test_invalid_index_is_error(tmp_path: Path) -> None:
    (tmp_path / "no.sqlite").write_bytes(b"not a database, and long enough to be told from an empty one" * 20)

    with pytest.raises(sqlite3.Error):
        search_index.search(tmp_path / "no.sqlite", "sending", 500)


def test_example_variants_are_reduced_to_newest_python(tmp_path: Path) -> None:
    code = "from acme import Client\n\n\ndef main():\n    Client('host').send('hello')\n"
    paths = ("tutorial001.py", "tutorial001_an.py", "tutorial001_an_py39.py", "tutorial001_an_py310.py")
    documents = [
        PackageDocument(f"docs_src/sending/{path}", f"{code}\n# {path}", "python", None) for path in paths
    ]

    search_index.write_index(tmp_path / "acme.sqlite", documents, ABOUT)

    [snippet] = search_index.search(tmp_path / "acme.sqlite", "sending", 2000)
    assert "tutorial001_an_py310.py" in (snippet.code or "")


def test_modules_of_library_are_no_variants() -> None:
    paths = ["acme/compat.py", "acme/compat_py3.py", "acme/loop.py", "acme/loop_an.py"]

    kept = drop_variants(PackageDocument(path, SOURCE, "python", None) for path in paths)

    assert [each.path for each in kept] == paths


def test_duplicate_chunks_are_returned_once(tmp_path: Path) -> None:
    documents = [PackageDocument(f"docs/{name}.md", GUIDE, "markdown", None) for name in ("one", "two")]

    search_index.write_index(tmp_path / "acme.sqlite", documents, ABOUT)

    assert list_titles(tmp_path / "acme.sqlite", "timeouts").count("Guide > Timeouts") == 1


def test_folders_of_old_major_version_come_last(tmp_path: Path) -> None:
    code = 'def {name}(what):\n    """Send a thing to the host {how}, and wait until it was received."""\n'
    documents = [
        PackageDocument("acme/v1/sending.py", code.format(name="send_thing", how="as ever"), "python", None),
        PackageDocument("acme/sending.py", code.format(name="send_things", how="with care"), "python", None),
    ]

    search_index.write_index(tmp_path / "acme.sqlite", documents, ABOUT)

    assert list_titles(tmp_path / "acme.sqlite", "send a thing")[0] == "acme.sending.send_things"


@pytest.mark.parametrize(
    "path", ["docs/upgrading.md", "MIGRATION_GUIDE.md", "docs/migrate-to-acme3.md", "docs/neps/nep-0001.md"]
)
def test_pages_about_other_releases_come_last(tmp_path: Path, path: str) -> None:
    sample = "```python\nclient.send(thing, wait=True)\nclient.close()\n```\n"
    documents = [
        PackageDocument(
            path, f"# Sending a thing\n\nSending a thing to a host.\n\n{sample}", "markdown", None
        ),
        PackageDocument(
            "docs/later.md",
            f"# Sending\n\nA thing is sent to a host by this.\n\n{sample}# again\n",
            "markdown",
            None,
        ),
    ]

    search_index.write_index(tmp_path / "acme.sqlite", documents, ABOUT)

    assert list_titles(tmp_path / "acme.sqlite", "sending a thing")[0] == "Sending"


@pytest.mark.parametrize(
    "path",
    ["examples/prompts/history/stored.py", "docs/upgrades.md", "acme/upgrade.py", "src/history/index.d.ts"],
)
def test_pages_and_modules_with_names_of_other_things_keep_their_weight(path: str) -> None:
    chunk = Chunk("A", (), "acme.send(thing)\n" * 12, "python", None, None, path)

    assert apply_boosts(chunk, ABOUT).weight >= SPECIAL_PAGE_FACTOR


def test_deprecated_section_comes_after_its_successor(tmp_path: Path) -> None:
    sample = "\n\n```python\nrequest.stop({})\nrequest.close(wait=True)\n```\n\n"
    text = (
        "# Requests\n\n## Stop a request (deprecated)\n\n"
        f"A token stops a request for good.{sample.format('token')}"
        f"## Signals that stop\n\nA signal stops a request at once.{sample.format('signal')}"
    )
    file = tmp_path / "acme.sqlite"

    search_index.write_index(file, [PackageDocument("docs/a.md", text, "markdown", None)], ABOUT)

    assert list_titles(file, "stop a request")[0] == "Requests > Signals that stop"


def test_function_that_deprecates_is_not_old() -> None:
    chunk = Chunk(
        "deprecated", ("acme",), "def deprecated(reason): ...", "python", "Mark it.", None, "acme.py"
    )

    other = replace(chunk, title="retired")

    assert apply_boosts(chunk, ABOUT).weight == apply_boosts(other, ABOUT).weight


def test_included_files_are_shown_in_page(tmp_path: Path) -> None:
    documents = [
        PackageDocument(
            "docs/a.md", "# Sending\n\nLike this:\n\n{* ../docs_src/a.py hl[1] *}\n", "markdown", None
        ),
        PackageDocument(
            "docs/b.rst", "Taking\n======\n\n.. literalinclude:: ../docs_src/b.py\n", "rst", None
        ),
        PackageDocument("docs_src/a.py", "send(1)\n", "python", None),
        PackageDocument("docs_src/b.py", "take(1)\n", "python", None),
    ]

    search_index.write_index(tmp_path / "acme.sqlite", documents, ABOUT)

    assert [snippet.code for snippet in search_index.search(tmp_path / "acme.sqlite", "sending", 500)] == [
        "send(1)"
    ]
    assert [snippet.code for snippet in search_index.search(tmp_path / "acme.sqlite", "taking", 500)] == [
        "take(1)"
    ]


def test_one_page_does_not_displace_others(tmp_path: Path) -> None:
    sections = "\n".join(
        f"## Sending {name}\n\nSending {name} is done by send, once.\n\n```python\nsend({name})\n```\n"
        for name in ("apples", "pears", "plums", "cherries", "figs")
    )
    other = (
        "# Overview\n\nSending is explained here, from the beginning to the end.\n\n```python\nsend()\n```\n"
    )
    documents = [
        PackageDocument("docs/fruit.md", f"# Fruit\n\n{sections}", "markdown", None),
        PackageDocument("docs/other.md", other, "markdown", None),
    ]

    search_index.write_index(tmp_path / "acme.sqlite", documents, ABOUT)

    assert "Overview" in list_titles(tmp_path / "acme.sqlite", "sending")[:4]


def test_readme_titles_name_library(tmp_path: Path) -> None:
    usage = "# Usage\n\nThings are sent to other places by a client, one after the other.\n"
    file = tmp_path / "acme.sqlite"

    search_index.write_index(file, [PackageDocument("README.md", usage, "markdown", None)], ABOUT)

    assert list_titles(file, None) == ["acme > Usage"]


def test_short_readme_is_followed_by_best_explained_parts(tmp_path: Path) -> None:
    readme = "# Acme\n\nThings are sent to other places by a client, one after the other, and back.\n"
    types = "/** Sends a thing to another place, when the other is ready. */\nexport function send(): void;\n"
    file = tmp_path / "acme.sqlite"
    documents = [
        PackageDocument("README.md", readme, "markdown", None),
        PackageDocument("a.d.ts", types, "typescript", None),
    ]

    search_index.write_index(file, documents, ABOUT)

    assert list_titles(file, None) == ["Acme", "send"]


def test_too_slow_build_finishes_with_parts_so_far(tmp_path: Path) -> None:
    pages = [
        PackageDocument(f"docs/{number}.md", GUIDE.replace("five", f"{number}"), "markdown", None)
        for number in range(9)
    ]
    file = tmp_path / "acme.sqlite"

    built = search_index.write_index(file, pages, ABOUT, max_seconds=0)

    assert built.chunks == 1
    assert "within the time limit" in read_metadata(file)["incomplete"]


@pytest.mark.parametrize(
    "text", ["# Guide\n\n```python\nsend(what)\n```\n", "# Guide\n"], ids=["copies", "nothing"]
)
def test_documents_that_add_nothing_are_read_within_the_time_limit(text: str, tmp_path: Path) -> None:
    first = PackageDocument("a.md", GUIDE, "markdown", None)
    others = [PackageDocument(f"docs{number}/a.md", text, "markdown", None) for number in range(60_000)]
    file = tmp_path / "acme.sqlite"
    started = time.monotonic()

    search_index.write_index(file, [first, *others], ABOUT, max_seconds=0.5)

    assert time.monotonic() - started < 2
    assert "within the time limit" in read_metadata(file)["incomplete"]


def test_pages_about_project_are_no_introduction(tmp_path: Path) -> None:
    sprint = PackageDocument(
        "docs/internals/contributing/quickstart.md", GUIDE.replace("# Guide", "# Sprint"), "markdown", None
    )
    start = PackageDocument("docs/intro/quickstart.md", GUIDE.replace("Client", "Sender"), "markdown", None)
    file = tmp_path / "acme.sqlite"

    search_index.write_index(file, [sprint, start], ABOUT)

    assert list_titles(file, None)[0] == "Guide > Retry policies"


def test_one_of_first_three_snippets_shows_call(tmp_path: Path) -> None:
    declared = "\n".join(
        f'def ink_pen_{kind}(pen: str, ink: str) -> bool:\n    """Ink a pen. Inks a pen in {kind} ink."""\n'
        for kind in ("black", "blue", "red", "green", "gold")
    )
    guide = (
        "# Letters\n\nBefore a long letter is begun, somebody should care for the tools of the desk, "
        "and a pen and its ink are two of them.\n\n"
        "```python\nfor tool in desk.tools():\n    tool.care()\n```\n"
    )
    documents = [
        PackageDocument("quill/__init__.py", declared, "python", None),
        PackageDocument("docs/letters.md", guide, "markdown", None),
    ]
    file = tmp_path / "usage.db"
    search_index.write_index(file, documents, {"name": "quill"})

    snippets = search_index.search(file, "ink a pen", 2000)

    assert any("tool.care()" in (each.code or "") for each in snippets[:3])


def test_nearly_equal_functions_are_shown_once(tmp_path: Path) -> None:
    options = ", ".join(f"option_{letter}: str | None = None" for letter in "abcdefghijkl")
    functions = "\n".join(
        f'def {verb}(url: str, {options}) -> Letter:\n    """Send a {verb.upper()} letter to a host."""\n'
        for verb in ("post", "put", "patch")
    )
    document = PackageDocument("acme/api.py", functions, "python", None)
    file = tmp_path / "index.db"

    search_index.write_index(file, [document], {"name": "acme"})

    assert len(search_index.search(file, "send a letter to a host", 5_000)) == 1
    assert {each.title for each in search_index.search(file, "put or patch a letter", 5_000)} == {
        "acme.api.put",
        "acme.api.patch",
    }


def test_similar_methods_of_other_classes_follow_first_three_snippets(tmp_path: Path) -> None:
    method = '    def post(self, letter: str, {more}) -> bool:\n        """Post a letter to a friend."""\n'
    classes = "\n".join(
        f"class {name}:\n{method.format(more=f'{name.lower()}_stamp: int, {name.lower()}_box: str')}"
        for name in ("Office", "Courier", "Pigeon")
    )
    guides = "".join(
        f"## Post a letter {way}\n\nTo post a letter {way}, somebody has to {verb} it, which takes a day.\n\n"
        for way, verb in (("by ship", "load"), ("by train", "carry"), ("by plane", "fly"))
    )
    documents = [
        PackageDocument("quill/__init__.py", classes, "python", None),
        PackageDocument("docs/post.md", f"# Post\n\n{guides}", "markdown", None),
    ]
    file = tmp_path / "index.db"
    search_index.write_index(file, documents, {"name": "quill"})

    titles = [each.title or "" for each in search_index.search(file, "post a letter to a friend", 5_000)]

    assert sum(each.endswith(".post") for each in titles[:3]) == 1
    assert sum(each.endswith(".post") for each in titles) == 3


def test_declaration_of_two_languages_is_given_once(tmp_path: Path) -> None:
    comment = "/** Returns whether a letter has the same stamp as another one. {} */"
    tagged = comment.format("@param {Letter} other - the other one")
    script = f"{tagged}\nexports.hasSame = function hasSame(other) {{}};"
    types = (
        f"{comment.format('Both are compared.')}\nexport function hasSame(other: Letter): IfValid<boolean>;"
    )
    documents = [
        PackageDocument("src/letter.js", script, "javascript", None),
        PackageDocument("@types/letter.d.ts", types, "typescript", None),
    ]
    file = tmp_path / "index.db"
    search_index.write_index(file, documents, {"name": "quill"})

    titles = [each.title for each in search_index.search(file, "compare the stamp of letters", 5_000)]

    assert titles.count("hasSame") == 1


@pytest.mark.parametrize("topic", ["send a letter", "the ribbon of a letter"])
def test_long_description_is_given_with_its_declaration(topic: str, tmp_path: Path) -> None:
    names = ["paper", "ink", "fold", "seal", "wax", "stamp", "weight", "border", "colour", "edge", "ribbon"]
    sentence = "Sets how it is treated on the long way to its reader, by the rules of the old post. " * 3
    tags = "\n".join(f" * @param {{string}} options.{name} - {sentence}" for name in names)
    script = f"/**\n * Send a letter.\n *\n{tags}\n */\nexport function send(letter, options) {{}}\n"
    file = tmp_path / "index.db"
    search_index.write_index(
        file, [PackageDocument("src/post.js", script, "javascript", None)], {"name": "quill"}
    )

    found = search_index.search(file, topic, 5_000)

    assert {each.language for each in found} == {"javascript", None}


@pytest.mark.parametrize("question", ["send a post request", "Send a POST request"])
def test_example_of_other_http_method_is_no_usage(question: str, tmp_path: Path) -> None:
    examples = {
        "A request": "reply = quill.request('GET', url)\nreply = quill.get(url)",
        "Letters": "reply = quill.request('POST', url)",
    }
    guide = "".join(
        f"## {title}\n\nThis is how to send a request as a post.\n\n```python\n{code}\n```\n\n"
        for title, code in examples.items()
    )
    file = tmp_path / "index.db"
    search_index.write_index(
        file,
        [PackageDocument("docs/requests.md", f"# Quill\n\n{guide}", "markdown", None)],
        {"name": "quill"},
    )

    first, *_ = search_index.search(file, question, 5_000)

    assert first.code == examples["Letters"]


def test_exported_names_precede_internals(tmp_path: Path) -> None:
    function = 'def {name}(pen):\n    """Dip a pen into the ink well, and wait until it is wet."""\n'
    documents = [
        PackageDocument("acme/core/pens.py", function.format(name="dip_inner_pen"), "python", None),
        PackageDocument("acme/wells.py", function.format(name="dip_pen"), "python", None),
        PackageDocument("acme/__init__.py", "from acme.wells import dip_pen\n", "python", None),
    ]
    file = tmp_path / "exports.db"

    search_index.write_index(file, documents, {"name": "acme"})

    assert list_titles(file, "dip a pen into ink")[0] == "acme.dip_pen"


def test_functions_precede_types_and_errors(tmp_path: Path) -> None:
    types = (
        "/** Key that verifies a token. */\nexport interface VerifyTokenKey { kty: string; alg: string }\n"
        "/** Checks that a token was signed with a key, and returns what it says about its holder. */\n"
        "export declare function verifyToken(token: string): Promise<void>;\n"
    )
    source = (
        'class TimeoutError(Exception):\n    """Set a timeout."""\n\n'
        'def send(thing, timeout=5):\n    """Send a thing, with a timeout in seconds that can be set."""\n'
    )
    file = tmp_path / "functions.db"
    documents = [
        PackageDocument("index.d.ts", types, "typescript", None),
        PackageDocument("acme/sending.py", source, "python", None),
    ]

    search_index.write_index(file, documents, {"name": "acme"})

    assert list_titles(file, "verify a token with a key")[0] == "verifyToken"
    assert list_titles(file, "set a timeout")[0] == "acme.sending.send"
    assert list_titles(file, "VerifyTokenKey")[0] == "VerifyTokenKey"


@pytest.mark.parametrize("question", ["catch a timeout", "which error is raised on timeout"])
def test_errors_answer_questions_about_errors(tmp_path: Path, question: str) -> None:
    source = (
        'class TimeoutError(Exception):\n    """The host took too long."""\n\n'
        "def send(thing, timeout=5):\n"
        '    """Send a thing. Exceptions are raised on timeout."""\n'
    )
    file = tmp_path / "errors.db"
    documents = [PackageDocument("acme/sending.py", source, "python", None)]

    search_index.write_index(file, documents, {"name": "acme"})

    assert list_titles(file, question)[0] == "acme.sending.TimeoutError"


def test_methods_precede_data_of_interface(tmp_path: Path) -> None:
    text = (
        "export interface Pen {\n  /** A wet pen that lies in the drawer of a desk. */\n  ink: string;\n"
        "  /** A wet pen is laid into the drawer of the desk. */\n  dip(): void;\n}\n"
    )
    file = tmp_path / "members.db"

    search_index.write_index(
        file, [PackageDocument("index.d.ts", text, "typescript", None)], {"name": "acme"}
    )

    found = [title for title in list_titles(file, "wet pen in a desk") if title in ("Pen.ink", "Pen.dip")]
    assert found[0] == "Pen.dip"


def test_examples_precede_signatures_without_names_in_query(tmp_path: Path) -> None:
    sentence = "Put a feather into an ink well, and wait until it is wet on all of its sides."
    stub = f'def moisten(feather):\n    """{sentence}"""\n'
    example = f'def soak():\n    """{sentence}\n\n    >>> soak().wait()\n    """\n'
    documents = [
        PackageDocument("acme/stubs.py", stub, "python", None),
        PackageDocument("acme/other.py", example, "python", None),
    ]
    file = tmp_path / "usage.db"

    search_index.write_index(file, documents, {"name": "acme"})

    assert list_titles(file, "feather into an ink well")[0] == "acme.other.soak"
    assert list_titles(file, "acme.stubs.moisten")[0] == "acme.stubs.moisten"


def test_part_number_of_example_is_not_searched(tmp_path: Path) -> None:
    steps = "\n\n".join(f"def step_{number}():\n    return well.fill({number})" for number in range(200))
    file = tmp_path / "parts.db"

    search_index.write_index(
        file, [PackageDocument("examples/wells.py", steps, "python", None)], {"name": "acme"}
    )

    assert len(list_titles(file, "fill a well")) > 1
    assert len(list_titles(file, "part")) == 1  # its text mentions other parts


def test_task_words_find_documentation_words(tmp_path: Path) -> None:
    documents = [
        PackageDocument(
            f"docs/{name}.md",
            f"# {name}\n\nThis is about the {name} of pens, at no small length.\n",
            "markdown",
            None,
        )
        for name in ("directory", "exception", "well", "timer", "paginator", "hook")
    ]
    file = tmp_path / "synonyms.db"

    search_index.write_index(file, documents, {"name": "acme"})

    assert (list_titles(file, "folder")[0], list_titles(file, "error")[0]) == ("directory", "exception")
    found = [list_titles(file, word)[0] for word in ("every", "pages", "handler")]
    assert found == ["timer", "paginator", "hook"]


def test_words_that_an_article_separates_are_a_name(tmp_path: Path) -> None:
    text = (
        "/** Seal a letter or a parcel of the desk, whichever lies on the top of it. */\n"
        "export declare function seal(post: string): void;\n"
        "/** Put wax on the back of a letter of the desk, which cannot be undone. */\n"
        "export declare function sealLetter(post: string): void;\n"
    )
    file = tmp_path / "pairs.db"

    search_index.write_index(
        file, [PackageDocument("index.d.ts", text, "typescript", None)], {"name": "acme"}
    )

    assert list_titles(file, "seal a letter")[0] == "sealLetter"
    assert list_titles(file, "seal")[0] == "seal"


def test_function_words_of_a_heading_do_not_count(tmp_path: Path) -> None:
    sentence = "The feather is dipped by the desk, and the desk waits until the feather is wet enough.\n"
    guide = f"# Ink\n\n## Dip a quill\n\n{sentence}\n## A quill for the desk\n\n{sentence.upper()}"
    file = tmp_path / "headings.db"

    search_index.write_index(
        file, [PackageDocument("docs/ink.md", guide, "markdown", None)], {"name": "acme"}
    )

    assert list_titles(file, "how to dip the quill for a desk")[0] == "Ink > Dip a quill"


def test_a_heading_matches_in_singular_and_plural() -> None:
    assert stem_words("Closing a file") == stem_words("how to close files")
    assert stem_words("plugging in the pens") == stem_words("plug your pen")


@pytest.mark.parametrize(
    ("question", "heading"),
    [("ask for ink", "Prompts"), ("copy a pen", "Clone"), ("several pens", "Many"), ("read ink", "Load")],
)
def test_verbs_of_tasks_find_those_of_interfaces(tmp_path: Path, question: str, heading: str) -> None:
    pages = {
        name: f"# {name}\n\nSomething is said about this {name.lower()} of the desk, at some length.\n"
        for name in ("Prompts", "Clone", "Many", "Load", "Well")
    }
    documents = [PackageDocument(f"docs/{name}.md", text, "markdown", None) for name, text in pages.items()]
    file = tmp_path / "verbs.db"

    search_index.write_index(file, documents, {"name": "acme"})

    assert list_titles(file, question)[:1] == [heading]


def test_a_file_of_code_is_no_page_about_one_subject(tmp_path: Path) -> None:
    birds = ("swan", "duck", "crow", "owl", "hen")
    sentence = "/** Take a feather of the {bird}, and dry it until it can be cut. */\n"
    declared = [f"{sentence.format(bird=bird)}export declare function {bird}(): Pen;\n" for bird in birds]
    alone = f"{sentence.format(bird='goose, then dry it once more')}export declare function goose(): Pen;\n"
    documents = [
        PackageDocument("birds.d.ts", "".join(declared), "typescript", None),
        PackageDocument("geese.d.ts", alone, "typescript", None),
    ]
    file = tmp_path / "pages.db"

    search_index.write_index(file, documents, {"name": "acme"})

    assert list_titles(file, "dry a feather")[0] == "goose"


def test_all_words_beat_one_repeated_word(tmp_path: Path) -> None:
    repeated = (
        f"# Timeout\n\n## Timeout\n\n{'Timeout after timeout, and a timeout. ' * 9}\n\n"
        "```python\ntimeout(timeout=timeout)\n```\n"
    )
    every = (
        "# Files\n\n## Upload\n\nEach upload of a large file may have a limit of time, its timeout.\n\n"
        "```python\nupload(file, 10)\n```\n"
    )
    documents = [
        PackageDocument("docs/timeout.md", repeated, "markdown", None),
        PackageDocument("docs/files.md", every, "markdown", None),
    ]

    search_index.write_index(tmp_path / "acme.sqlite", documents, ABOUT)

    assert list_titles(tmp_path / "acme.sqlite", "timeout of a file")[0] == "Files > Upload"


def test_tests_come_after_documentation(tmp_path: Path) -> None:
    test = (
        "import acme\nimport pytest\n\n\ndef test_read_timeout():\n"
        "    timeout = acme.Timeout(read=1e-6)\n"
        "    with pytest.raises(acme.ReadTimeout):\n        acme.get('/slow', timeout=timeout)\n"
    )
    source = (
        "class Timeout:\n"
        '    """Timeout of a request. Set one for all steps, or one for each of them, in seconds."""\n\n'
        "    def __init__(self, timeout: float, *, read: float = 5.0) -> None: ...\n"
    )
    documents = [
        PackageDocument("tests/test_timeouts.py", test, "python", None),
        PackageDocument("acme/config.py", source, "python", None),
    ]

    search_index.write_index(tmp_path / "acme.sqlite", documents, ABOUT)

    assert list_titles(tmp_path / "acme.sqlite", "set a timeout")[0] == "acme.config.Timeout"


PENS = """# Drawing

## Pens by name

{subject} are joined where they meet, if the pen is still wet and the paper allows it.

```python
first = canvas.find("outer line")
print(first.width)
```

## Wet pens

Whatever is still wet can become one part, before the paper dries. Lines are kept.

```python
canvas.{call}("outer", "inner")
```
"""


@pytest.mark.parametrize(("call", "subject"), [("join_lines", "Lines of a drawing"), ("weld", "Lines")])
def test_code_whose_call_fits_the_question_comes_first(tmp_path: Path, call: str, subject: str) -> None:
    guide = PENS.format(call=call, subject=subject)
    source = f'def {call}(one: str, other: str) -> None:\n    """Join lines."""\n'
    documents = [PackageDocument("docs/drawing.md", guide, "markdown", None)]
    if call == "weld":  # a name that says nothing: its documentation does
        documents.append(PackageDocument("acme/canvas.py", source, "python", None))
    file = tmp_path / "pens.db"
    search_index.write_index(file, documents, ABOUT)

    titles = list_titles(file, "join lines of a drawing")
    assert titles.index("Drawing > Wet pens") < titles.index("Drawing > Pens by name")
