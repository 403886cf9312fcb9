"""Put the parts of a page that React streams after its shell where the page's scripts would put them.

A server that renders with Suspense sends the shell first, with a fallback after `<template id="B:0">` up to
the comment `/$`, and later `<div hidden id="S:0">` with the content, which a script moves there; rows come in
`<table hidden><tbody id="S:0">`. A part in such content stands at `<template id="P:1">`.
Source: ReactFizzInstructionSetShared.js of React 18 and 19.
"""

from __future__ import annotations

import re
from itertools import islice

from lxml import etree
from lxml.etree import _Element  # pyright: ignore[reportPrivateUsage] - the name in the stubs

MAX_PARTS, MAX_FALLBACK = 200, 1000
"""Parts that are moved, and elements that a fallback may have."""
MAX_HOLDERS = 3
"""Elements around rows: `<table hidden><tbody><tr id="S:0">`."""
_PART_ID = re.compile(r"(.{0,40})S:([0-9a-f]{1,8})")
_PART = re.compile(r"<[a-z][a-z0-9]*\s[^<>]{0,200}\bid=[\"']?[^\"'<>\s]{0,40}S:[0-9a-f]{1,8}\b")
_PLACEHOLDER = re.compile(r"<template\s[^<>]{0,200}\bid=[\"']?[^\"'<>\s]{0,40}[BP]:[0-9a-f]|\$R[CSX]\(")


def is_streamed(text: str) -> bool:
    """True if a document has parts that React's scripts would move."""
    return _PART.search(text) is not None and _PLACEHOLDER.search(text) is not None


def insert_streamed_parts(root: _Element) -> None:
    """Move each streamed part to its placeholder, in place of the fallback; removes all comments."""
    templates = {template.get("id"): template for template in root.iter("template")}
    parts = [
        (part, match)
        for part in root.iter(etree.Element)
        if (match := _PART_ID.fullmatch(part.get("id") or "")) and _find_hidden(part) is not None
    ]
    for part, match in parts[:MAX_PARTS]:
        prefix, number = match.groups()
        boundary, place = templates.get(f"{prefix}B:{number}"), templates.get(f"{prefix}P:{number}")
        if boundary is not None:
            _remove_fallback(boundary)
        target = boundary if boundary is not None else place
        if target is not None and part not in target.iterancestors():
            _move_part(part, target)
        elif part.get("hidden") is not None:
            del part.attrib["hidden"]
    etree.strip_tags(root, etree.Comment)


def _find_hidden(part: _Element) -> _Element | None:
    """Return the hidden element that holds a part: itself, or the table that rows need around them."""
    around = islice(part.iterancestors(), MAX_HOLDERS)
    return next((each for each in (part, *around) if each.get("hidden") is not None), None)


def _move_part(part: _Element, target: _Element) -> None:
    """Move a part before its placeholder: a `div` as it is, of other elements what is in them."""
    if part.tag == "div":
        if part.get("hidden") is not None:
            del part.attrib["hidden"]
        target.addprevious(part)
        return
    for child in list(part):
        target.addprevious(child)


def _remove_fallback(boundary: _Element) -> None:
    """Remove what stands between a placeholder and the comment that ends its boundary."""
    depth, between = 0, list[_Element]()
    for sibling in islice(boundary.itersiblings(), MAX_FALLBACK):
        mark = (sibling.text or "") if sibling.tag is etree.Comment else ""
        if mark in ("/$", "/&"):
            if depth == 0:
                break
            depth -= 1
        elif mark in ("$", "$?", "$~", "$!", "&"):
            depth += 1
        between.append(sibling)
    else:
        return
    boundary.tail = None
    for sibling in between:
        parent = sibling.getparent()
        if parent is not None:
            parent.remove(sibling)
