"""reStructuredText files, split into chunks."""

from __future__ import annotations

from textwrap import dedent

import pytest

from centgate.libdocs.parse.documents import FileKind, PackageDocument
from centgate.libdocs.parse.rst import split_rst


def rst_document(text: str, kind: FileKind = "rst") -> PackageDocument:
    return PackageDocument("docs/guide.rst", dedent(text).lstrip("\n"), kind, None)


def test_heading_level_follows_order_of_underlines() -> None:
    document = rst_document(
        """
        =====
        Guide
        =====

        Sending
        -------

        A string
        ~~~~~~~~

        Anything that is a string can be sent as it is, by one call.

        Receiving
        ---------

        Whatever is received is a string as well, unless said otherwise.
        """
    )

    found = split_rst(document)

    assert [(*piece.breadcrumb, piece.title) for piece in found] == [
        ("Guide", "Sending", "A string"),
        ("Guide", "Receiving"),
    ]


@pytest.mark.parametrize(
    ("source", "language", "code"),
    [
        (".. code-block:: js\n   :linenos:\n\n   send(1)\n", "javascript", "send(1)"),
        (".. sourcecode:: pycon+sql\n\n    {sql}>>> send(1)\n    {stop}1\n", "python", "send(1)\n# 1"),
        ("Like this::\n\n    import acme\n\n    acme.send(1)\n", "python", "import acme\n\nacme.send(1)"),
        ("Like this::\n\n    $ acme send\n", "bash", "$ acme send"),
        ("Like this::\n\n    what is sent\n", None, "what is sent"),
        (">>> send(1)\n1\n", "python", "send(1)\n# 1"),
        (".. highlight:: ruby\n\nLike this::\n\n    send 1\n", "ruby", "send 1"),
    ],
)
def test_code_is_found_in_every_notation(source: str, language: str | None, code: str) -> None:
    [piece] = split_rst(rst_document(f"Send\n====\n\n{source}"))

    assert (piece.language, piece.code) == (language, code)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Call :func:`acme.send` for it", "Call `acme.send` for it"),
        ("Call :py:meth:`~acme.Client.send` for it", "Call `send` for it"),
        ("Call :func:`_orm.relationship` for it", "Call `relationship` for it"),
        ("See :ref:`the guide <sending_things>` for it", "See the guide for it"),
        ("See :ref:`sending_things` for it", "See sending things for it"),
        ("See `the site <https://acme.example>`_ for it", "See the site for it"),
        ("Pass ``what=1`` for it", "Pass `what=1` for it"),
        ("What :Name: is and ``QuerySet``\\ s are", "What :Name: is and `QuerySet`s are"),
        ("The ``__repr__()`` of `Client`_ for it", "The `__repr__()` of Client for it"),
    ],
)
def test_roles_and_references_become_their_text(source: str, expected: str) -> None:
    [piece] = split_rst(rst_document(f"Send\n====\n\n{source}, as long as there is anything to be sent.\n"))

    assert piece.text == f"{expected}, as long as there is anything to be sent."


def test_notes_are_text_and_generated_content_is_removed() -> None:
    document = rst_document(
        """
        Send
        ====

        .. _a-label:

        .. toctree::
           :maxdepth: 2

           one
           two

        .. note::

           Sending the same thing twice sends it twice.

        .. autofunction:: acme.send
           :noindex:

        .. seealso::

           :ref:`receiving` - what is to be done at the other end.
        """
    )

    [piece] = split_rst(document)

    assert piece.text == (
        "Note:\nSending the same thing twice sends it twice.\n\n"
        "See also:\nreceiving - what is to be done at the other end."
    )


def test_code_in_note_is_code() -> None:
    [piece] = split_rst(
        rst_document("Send\n====\n\n.. tip::\n\n   Like this::\n\n       $ acme send\n\nAnd so on.\n")
    )

    assert piece.code == "$ acme send"
    assert piece.text == "Tip:\nLike this:\n\nAnd so on."


def test_badges_are_removed_and_tables_stay() -> None:
    document = rst_document(
        """
        Acme
        ====

        |build| |version|_

        | one | two |
        | 1   | 2   |

        A library for sending things to other places.
        """
    )

    [piece] = split_rst(document)

    assert piece.text == "| one | two |\n| 1   | 2   |\n\nA library for sending things to other places."


def test_parameters_are_list() -> None:
    [piece] = split_rst(
        rst_document("send\n====\n\nSends whatever it is given to wherever.\n\n:param str what: to be sent\n")
    )

    assert piece.text == "Sends whatever it is given to wherever.\n\n- `what`: to be sent"


@pytest.mark.parametrize(
    "text", ["", "::", "====", "..", ".. note::", ">>> ", "=" * 9000, "`" * 9000, ":a:`" * 3000]
)
def test_invalid_restructuredtext_gives_no_error(text: str) -> None:
    assert isinstance(split_rst(rst_document(text, "text")), list)


def test_transition_line_is_removed() -> None:
    [piece] = split_rst(
        rst_document("Send\n====\n\n------\n\nThings are sent to other places, one after the other.\n")
    )

    assert piece.text == "Things are sent to other places, one after the other."


def test_line_of_blanks_is_parsed_in_time() -> None:
    assert isinstance(split_rst(rst_document("Send::\n\n  x\n" + " " * 200_000 + "x\n")), list)
