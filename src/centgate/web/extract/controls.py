"""Turn the labels of buttons and open dialogs into text where they are part of what a page says."""

from __future__ import annotations

from centgate.web.extract.dom import Element, extract_beginning

_TITLE_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary", "th")
_LABELLED_INPUTS = frozenset({"submit", "button", "reset"})
_MAX_QUESTION = 300


def show_controls(body: Element, *, only_main_content: bool) -> None:
    """Turn controls into text: all of them, or only titles and questions for the main content.

    Pages with questions and answers have the questions in buttons that open the answers.
    """
    for element in list(body.iter("button", "dialog", "input")):
        if next(element.iterancestors("pre"), None) is not None:
            continue
        if element.tag == "button" and (not only_main_content or _is_title(element)):
            _show_button(element)
        elif only_main_content:
            continue
        elif element.tag == "dialog" and element.get("open") is not None:
            element.tag = "div"
        elif element.tag == "input" and (element.get("type") or "").lower() in _LABELLED_INPUTS:
            element.text, element.tag = element.get("value"), "span"


def _is_title(button: Element) -> bool:
    """True if a button is in a title, or opens the answer to the question that it holds."""
    if next(button.iterancestors(*_TITLE_TAGS), None) is not None:
        return True
    if button.get("aria-expanded") is None and button.get("aria-controls") is None:
        return False
    return extract_beginning(button, _MAX_QUESTION).endswith("?")


def _show_button(button: Element) -> None:
    in_title = next(button.iterancestors(*_TITLE_TAGS), None) is not None
    button.tag = "span" if in_title or button.get("aria-expanded") is None else "p"
    button.tail = " " + (button.tail or "")
