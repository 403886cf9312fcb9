"""Python files, split into chunks under the names that users import."""

from __future__ import annotations

from textwrap import dedent

import pytest

from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.python import module_name, split_python
from centgate.libdocs.parse.python_exports import collect_imports, use_public_names


def python_document(text: str, path: str = "acme/client.py", url: str | None = None) -> PackageDocument:
    return PackageDocument(path, dedent(text).lstrip("\n"), "python", url)


def test_function_has_signature_and_docstring() -> None:
    document = python_document(
        '''
        def send(what: str, /, *, times: int = 1, **options: object) -> None:
            """Send something to wherever the client was told to send to."""
        '''
    )

    [piece] = split_python(document)

    assert piece.title == "send"
    assert piece.breadcrumb == ("acme.client",)
    assert piece.code == "def send(what: str, /, *, times: int = 1, **options: object) -> None: ..."
    assert piece.text == "Send something to wherever the client was told to send to."


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("typing.Optional['Pen']", 'Optional["Pen"]'),
        ("numpy.typing.ArrayLike", "numpy.typing.ArrayLike"),
        ("""Literal["'"]""", """Literal["'"]"""),
        ("Literal['typing.any']", 'Literal["typing.any"]'),
    ],
)
def test_annotation_keeps_its_meaning(annotation: str, expected: str) -> None:
    [piece] = split_python(python_document(f'def send(what: {annotation}):\n    """Send something."""\n'))

    assert piece.code == f"def send(what: {expected}): ..."


def test_docstring_example_is_code_below_signature() -> None:
    document = python_document(
        '''
        def send(what):
            """Send something.

            >>> send("hello")
            5
            """
        '''
    )

    [piece] = split_python(document)

    assert piece.code == 'def send(what): ...\n\nsend("hello")\n# 5'


def test_class_shows_fields_and_constructor() -> None:
    document = python_document(
        '''
        @dataclass(frozen=True)
        class Client(Base, Generic[T]):
            """Sends things."""

            host: str
            port: int = 80
            _secret: str = ""

            def __init__(self, host: str) -> None:
                """Say where to."""

            def send(self, what: str) -> int:
                """Send something to the host."""

            def _hidden(self) -> None:
                """Not for users."""
        '''
    )

    client, send = split_python(document)

    assert client.code == (
        "@dataclass(frozen=True)\nclass Client(Base):\n    host: str\n    port: int = 80\n"
        "    def __init__(host: str) -> None: ..."
    )
    assert client.text == "Sends things.\n\nSay where to."
    assert send.names == ("Client.send", "send")
    assert send.code == "def send(what: str) -> int: ..."
    assert (client.complete, send.complete) == (False, False)  # without `self`, and without bodies


def test_signature_is_fragment_and_later_example_is_complete() -> None:
    document = python_document(
        '''
        def send(what):
            """Send something.

            >>> send("hello")

            Send something that is longer than a word:

            >>> send("hello, whoever reads this")
            """
        '''
    )

    first, later = split_python(document)

    assert (first.code, first.complete) == ('def send(what): ...\n\nsend("hello")', False)
    assert (later.code, later.complete) == ('send("hello, whoever reads this")', True)


def test_annotated_doc_is_text_and_not_in_signature() -> None:
    document = python_document(
        """
        def send(
            what: Annotated[str, Doc("What is sent.")],
            times: Annotated[int, Gt(0), Doc("How often.")] = 1,
        ) -> None:
            '''Send something to wherever.'''
        """
    )

    [piece] = split_python(document)

    assert piece.code is not None
    assert "Doc(" not in piece.code.split("times")[0]
    assert "what: str" in piece.code
    assert piece.text == "Send something to wherever.\n\n- `what`: What is sent.\n- `times`: How often."


def test_examples_in_annotated_doc_keep_indentation() -> None:
    document = python_document(
        """
        def route(
            path: Annotated[
                str,
                Doc(
                    '''
                    The path of the URL.

                    ```python
                    @app.get("/items")
                    def list_items():
                        return []
                    ```
                    '''
                ),
            ],
        ) -> None:
            '''Add a route.'''
        """
    )

    code = "\n\n".join(piece.code or "" for piece in split_python(document))

    assert '@app.get("/items")\ndef list_items():\n    return []' in code


def test_overloads_are_one_chunk_with_public_signatures() -> None:
    document = python_document(
        '''
        @overload
        def send(what: str) -> int: ...
        @overload
        def send(what: bytes) -> bytes: ...
        def send(what):
            """Send something to wherever."""
        '''
    )

    [piece] = split_python(document)

    assert piece.code == "def send(what: str) -> int: ...\ndef send(what: bytes) -> bytes: ..."
    assert piece.text == "Send something to wherever."


def test_google_style_sections_are_lists() -> None:
    document = python_document(
        '''
        def send(what, times):
            """Send something to wherever.

            Args:
                what: To be sent,
                    whatever it is.
                times (int): How often.

            Returns:
                How much was sent.
            """
        '''
    )

    [piece] = split_python(document)

    assert piece.text == (
        "Send something to wherever.\n\nArgs:\n\n- `what`: To be sent,\n    whatever it is.\n"
        "- `times` (int): How often.\n\nReturns:\n\nHow much was sent."
    )


def test_example_file_is_kept_whole_and_titled_by_path() -> None:
    document = python_document(
        '''
        """How to send in the background."""

        from acme import send

        send("hello")
        send("again")
        ''',
        path="docs_src/background_tasks/tutorial001_an_py310.py",
    )

    [piece] = split_python(document)

    assert (*piece.breadcrumb, piece.title) == ("Background tasks", "Tutorial 001")
    assert piece.code == 'from acme import send\n\nsend("hello")\nsend("again")'
    assert piece.text == "How to send in the background."


@pytest.mark.parametrize(
    "text",
    [
        "def broken(",
        "\0",
        "x = " + "(" * 500,
        "x = " + "-" * 50_000 + "1",
        "",
    ],
)
def test_invalid_python_gives_no_chunks(text: str) -> None:
    assert split_python(PackageDocument("acme/x.py", text, "python", None)) == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("acme/client.py", "acme.client"),
        ("src/acme/__init__.py", "acme"),
        ("lib/acme/orm/session.pyi", "acme.orm.session"),
        ("acme-1.0/src/acme/client.py", "acme.client"),
    ],
)
def test_path_gives_module_name(path: str, name: str) -> None:
    assert module_name(path) == name


FUNCTION = 'def send(what):\n    """Send something to wherever it has to go."""\n'


def list_titles(*documents: PackageDocument) -> list[str]:
    found = (piece for document in documents for piece in split_python(document))
    return [
        ".".join((*piece.breadcrumb, piece.title))
        for piece in use_public_names(found, collect_imports(documents))
    ]


@pytest.mark.parametrize(
    ("gathering", "defined"),
    [
        ("from .client import send", "acme/client.py"),
        ("from ._client import send as send", "acme/_client.py"),
        ("from acme._client import send", "acme/_client.py"),
        ("if TYPE_CHECKING:\n    from ._client import send", "acme/_client.py"),
        ("from ._client import *", "acme/_client.py"),
    ],
)
def test_definition_has_name_that_users_import(gathering: str, defined: str) -> None:
    package = PackageDocument("acme/__init__.py", gathering, "python", None)

    assert list_titles(package, PackageDocument(defined, FUNCTION, "python", None)) == ["acme.send"]


def test_imports_are_followed_through_packages() -> None:
    package = PackageDocument("acme/__init__.py", "from .inner import send", "python", None)
    inner = PackageDocument("acme/inner/__init__.py", "from ._deep import send", "python", None)

    assert list_titles(package, inner, PackageDocument("acme/inner/_deep.py", FUNCTION, "python", None)) == [
        "acme.send"
    ]


def test_names_missing_in_all_stay_private() -> None:
    package = PackageDocument("acme/__init__.py", "from ._client import *", "python", None)
    other = 'def other():\n    """Something that is not for the users of this."""\n'
    client = PackageDocument("acme/_client.py", f'__all__ = ["send"]\n{FUNCTION}{other}', "python", None)

    assert list_titles(package, client) == ["acme.send"]


def test_unreachable_private_modules_are_omitted() -> None:
    assert list_titles(PackageDocument("acme/_client.py", FUNCTION, "python", None)) == []


def test_reexporting_module_is_followed() -> None:
    package = PackageDocument("acme/__init__.py", "from acme.core.api import send", "python", None)
    api = PackageDocument(
        "acme/core/api.py",
        '__all__ = ["send"]\n\nfrom acme.core.client import (\n    send,\n)',
        "python",
        None,
    )

    assert list_titles(package, api, PackageDocument("acme/core/client.py", FUNCTION, "python", None)) == [
        "acme.send"
    ]


@pytest.mark.extended
@pytest.mark.parametrize("statement", ["from .m{} import send", "from .m{} import *"], ids=["names", "stars"])
def test_long_chain_of_imports_is_followed_or_cut(statement: str) -> None:
    chain = [
        PackageDocument(
            f"acme/m{number}.py", f'{statement.format(number + 1)}\n__all__ = ["send"]', "python", None
        )
        for number in range(2000)
    ]

    found = list_titles(*chain, PackageDocument("acme/m2000.py", FUNCTION, "python", None))

    assert len(found) == 1


@pytest.mark.extended
def test_mutual_imports_are_resolved_in_time() -> None:
    stars = [f"from .m{number} import *\n" for number in range(100)]
    functions = FUNCTION + "".join(f"def f{number}(): ...\n" for number in range(50))
    modules = [
        PackageDocument(f"acme/m{number}.py", "".join(stars) + functions, "python", None)
        for number in range(100)
    ]

    assert len(list_titles(*modules)) == 100 * 51


def test_parameter_described_below_name_is_no_code() -> None:
    text = '''
def send(what):
    """Send a thing.

    Args:
        what (`Thing[str]`, *optional*, defaults to `Thing("a")`):
            What is sent.

            It may be anything.
    """
'''

    [piece] = split_python(PackageDocument("acme/client.py", text, "python", None))

    assert piece.code == "def send(what): ..."
    assert "- `what` (`Thing[str]`, *optional*" in (piece.text or "")


def test_integer_of_many_digits_is_shortened() -> None:
    document = python_document(
        f'class Group:\n    """A group of integers."""\n\n    prime = 0x{"f" * 4096}\n'
    )

    [piece] = split_python(document)

    assert piece.code == "class Group:\n    prime = ..."


def test_too_deep_expression_is_omitted() -> None:
    # the possible depth depends on the stack: either the default is omitted, or the file
    found = split_python(PackageDocument("acme/x.py", "def f(a=" + "a." * 9000 + "a): 'x'", "python", None))

    assert [piece.code for piece in found] in ([], ["def f(a=...): ..."])


def test_tests_are_examples_titled_by_their_names() -> None:
    text = """import pytest

class TestPens:
    @pytest.mark.parametrize("ink", ["red", "blue"])
    def test_dip_twice(self, ink):
        pen = Pen()
        pen.dip(ink)

    def helper(self): ...
"""

    [piece] = split_python(PackageDocument("tests/test_pens.py", text, "python", None))

    assert (piece.title, piece.breadcrumb, piece.names) == ("Dip twice", ("Test pens", "TestPens"), ())
    assert piece.code
    assert piece.code.startswith('@pytest.mark.parametrize("ink", ["red", "blue"])\ndef test_dip_twice')
    assert piece.weight < 0.9
