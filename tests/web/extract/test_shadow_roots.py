"""Declarative shadow roots, read as browsers show them."""

from __future__ import annotations

import time

import pytest

from centgate.web.extract.extract import extract_page

TEXT = "<p>" + "There is much to say about this, and it goes on for long. " * 6 + "</p>"


def read(content: str, *, only_main_content: bool = False) -> list[str]:
    """Return the lines of a page, without its long text."""
    html = f"<!doctype html><title>A page</title><body>{content}{TEXT}</body>".encode()
    page = extract_page(html, "text/html", "https://example.org/", only_main_content=only_main_content)
    return [line for line in page.markdown.split("\n") if line and "much to say" not in line]


@pytest.mark.parametrize("mode", ["open", "closed", "OPEN"])
@pytest.mark.parametrize("only_main_content", [True, False])
def test_text_of_shadow_root_is_read(mode: str, *, only_main_content: bool) -> None:
    content = f"<x-a><template shadowrootmode={mode}><h1>Title</h1>{TEXT}</template></x-a>"

    assert read(content, only_main_content=only_main_content) == ["# Title"]


@pytest.mark.parametrize(
    ("shadow", "light", "lines"),
    [
        ("<p>In it</p>", "<p>Without a slot</p>", ["In it"]),
        ("<p>In it</p><slot></slot>", "<p>Light</p>", ["In it", "Light"]),
        ("<slot></slot><p>In it</p>", "Words <b>and</b> more", ["Words **and** more", "In it"]),
        (
            "<slot name=title></slot><slot></slot>",
            "<p>Second</p><h2 slot=title>First</h2><p>Third</p>",
            ["## First", "Second", "Third"],
        ),
        ("<slot>Instead</slot><slot name=a>Also</slot>", " ", ["InsteadAlso"]),
        ("<slot>Instead</slot>", "<p>Light</p>", ["Light"]),
        ("<slot></slot><slot>Again</slot>", "<p>Light</p>", ["Light", "Again"]),
        (
            "<x-b><template shadowrootmode=open><p>Inner</p><slot></slot></template><slot></slot></x-b>",
            "<p>Light</p>",
            ["Inner", "Light"],
        ),
        ("<template><p>Inert</p></template><p>In it</p>", "", ["In it"]),
        ("<template shadowrootmode=open>Deep</template><p>In it</p>", "", ["In it"]),
    ],
)
def test_slots_hold_content_of_host(shadow: str, light: str, lines: list[str]) -> None:
    root = f"<template shadowrootmode=open>{shadow}</template>"

    assert read(f"<x-a>{root}{light}</x-a>") == lines
    assert read(f"<x-a>{light}{root}</x-a>") == lines


@pytest.mark.parametrize(
    ("host", "template", "lines"),
    [
        ("x-a", "shadowrootmode=none", ["Light"]),
        ("x-a", "", ["Light"]),
        ("b", "shadowrootmode=open", ["**Light**"]),
        ("section", "shadowrootmode=open", ["In it"]),
    ],
)
def test_template_without_valid_host_is_not_shown(host: str, template: str, lines: list[str]) -> None:
    assert read(f"<{host}><template {template}>In it</template>Light</{host}>") == lines


@pytest.mark.parametrize("only_main_content", [True, False])
def test_slots_in_cells_are_read(*, only_main_content: bool) -> None:
    shadow = "<table><tr><th>A<th>B<tr><td><slot name=a></slot><td><slot>2</slot></table>"
    host = f"<x-a><template shadowrootmode=open>{shadow}</template><b slot=a>one</b></x-a>"

    lines = read(f"{host}{TEXT}", only_main_content=only_main_content)

    assert lines == ["| A | B |", "| --- | --- |", "| **one** | 2 |"]


def test_second_shadow_root_is_not_shown() -> None:
    roots = "".join(f"<template shadowrootmode=open><p>{name}</p></template>" for name in ("One", "Two"))

    assert read(f"<x-a>{roots}</x-a>") == ["One"]


def test_style_sheets_do_not_cross_shadow_roots() -> None:
    sheet = "<style>.a{display:none}</style>"
    shadow = "<style>.b{display:none}</style><p class=a>In it</p><slot></slot>"
    light = "<p class=a>Hidden</p><p class=b>Light</p>"

    lines = read(f"{sheet}<x-a><template shadowrootmode=open>{shadow}</template>{light}</x-a>")

    assert lines == ["In it", "Light"]


def test_attributes_of_page_mark_no_shadow_root() -> None:
    sheet = "<style>.a{display:none}</style>"

    assert read(f"{sheet}<div shadowrootmode=open><p class=a>Hidden</p><p>Light</p></div>") == ["Light"]


@pytest.mark.parametrize("light", ["w<b>x</b>", "long words<b slot=none></b>"])
def test_much_content_of_host_is_read_in_time(light: str) -> None:
    started = time.process_time()

    lines = read(f"<x-a><template shadowrootmode=open><slot></slot></template>{light * 30_000}</x-a>")

    assert lines
    assert time.process_time() - started < 4
