"""Questions about a library: words, and names that may be the library's own."""

from __future__ import annotations

import pytest

from centgate.libdocs.index.query import parse_query


@pytest.mark.parametrize(
    ("question", "identifiers"),
    [
        ("Define a pen with ink", ()),
        ("How to send a POST request with JSON?", ()),
        ("Pen", ("Pen",)),
        ("URL", ("URL",)),
        ("dip a Pen", ("Pen",)),
        ("useInk in a component", ("useInk",)),
        ("Pen() with ink", ("Pen",)),
        ("the setting `INK` of a pen", ("INK",)),
        ("INK_COLOR of a pen", ("INK_COLOR",)),
    ],
)
def test_capitals_of_sentences_and_acronyms_are_no_names(question: str, identifiers: tuple[str, ...]) -> None:
    assert parse_query(question, "quill").identifiers == identifiers


def test_capitals_of_a_question_do_not_change_its_words() -> None:
    written, lower = (parse_query(text, "quill") for text in ("Send a POST request", "send a post request"))

    assert (written.terms, written.stems) == (lower.terms, lower.stems)
    assert [*written.names.values()] == [*lower.names.values()]
