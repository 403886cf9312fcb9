"""Show what the fields of forms display: texts, placeholders, labels of buttons, options."""

from __future__ import annotations

from lxml import etree

from centgate.web.extract.dom import Element, extract_all_text
from centgate.web.extract.elements import name_set

MAX_OPTIONS = 50
"""Options of a field that are named; of a list of countries, their number tells enough."""
_FIELD_TAGS = ("input", "textarea", "select")
_UNSHOWN_TYPES = name_set("hidden password checkbox radio file image range color")
"""Types of `input` that do not show their value; those of an unknown type are text fields."""
_BUTTON_TYPES = name_set("submit button reset")


def show_form_fields(body: Element) -> None:
    """Turn the fields of forms into the texts that they show: several lines into a block of code, which keeps
    them. Hidden fields and passwords show none.
    """
    walk = etree.iterwalk(body, events=("start",), tag=("pre", *_FIELD_TAGS))
    fields: list[Element] = []
    for _, element in walk:
        walk.skip_subtree()
        if element.tag != "pre":
            fields.append(element)
    for field in fields:
        text = _read_field(field).strip()
        if text:
            is_text_area = field.tag == "textarea" and "\n" in text
            field[:] = []
            field.tag, field.text = ("pre", text) if is_text_area else ("span", f" {text} ")
            field.attrib.clear()


def _read_field(field: Element) -> str:
    if field.tag == "select":
        return _list_options(field)
    if field.tag == "textarea":
        return extract_all_text(field).strip() or field.get("placeholder") or ""
    kind = (field.get("type") or "text").strip().lower()
    if kind in _UNSHOWN_TYPES:
        return ""
    return field.get("value") or ("" if kind in _BUTTON_TYPES else field.get("placeholder") or "")


def _list_options(field: Element) -> str:
    """Return the first options of a field, and how many more there are."""
    texts = (each.get("label") or extract_all_text(each) for each in field.iter("option"))
    options = [option for text in texts if (option := " ".join(text.split()))]
    more = len(options) - MAX_OPTIONS
    return ", ".join(options[:MAX_OPTIONS]) + (f" and {more} more" if more > 0 else "")
