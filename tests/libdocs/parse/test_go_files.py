"""Chunks of Go files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from centgate.libdocs.parse.chunk import Chunk
from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.go import split_go

PAGE = "https://pkg.go.dev/example.org/quill@v1.0.0"
SOURCE = """//go:build !wasm

/*
Package quill has pens for people who write letters to one another.

	pen := quill.New()
	pen.Dip(quill.Ink{})
*/
package quill

import "fmt"

// Ink is what a pen is dipped into. It is made of:
//   - water
//   - soot
type Ink struct {
	Colour string
}

type hidden struct{}

// Dip dips it.
func (h hidden) Dip() {}

// Colours that sell well, in the order of their sales.
const (
	Black = "black"
	Red   = "red"
)

// New returns a pen.
// # Options
// An option is given by its name, as in
//
//	$ go run . -ink red
//
//nolint:all
func New(
	options ...func(*Pen[int]) interface{},
) *Pen[int] {
	return nil
}

// not for others

func (p *Pen[T]) Dip(ink Ink) error { return nil }
"""
TEST = """package quill_test

func TestNew(t *testing.T) {}

// The pen is dipped twice.
func ExamplePen_Dip_twice() {
	pen := quill.New()
	if pen != nil {
		pen.Dip(quill.Ink{})
	}
}

func Example() {
	fmt.Println(quill.Black)
}
"""


def split_file(text: str, path: str = "quill.go") -> dict[str, Chunk]:
    return {each.title: each for each in split_go(PackageDocument(path, text, "go", PAGE))}


def test_package_comment_keeps_its_code() -> None:
    chunk = split_file(SOURCE)["quill"]

    assert (chunk.code, chunk.language) == ("pen := quill.New()\npen.Dip(quill.Ink{})", "go")
    assert chunk.text == "Package quill has pens for people who write letters to one another."
    assert chunk.source_url == PAGE


def test_exported_declarations_have_comments() -> None:
    chunks = split_file(SOURCE)

    assert set(chunks) == {"quill", "Ink", "Black", "New", "Pen.Dip"}
    assert chunks["Ink"].code == "type Ink struct {\n    Colour string\n}"
    assert "- water\n- soot" in (chunks["Ink"].text or "")
    assert (chunks["Black"].code or "").endswith('Red   = "red"\n)')
    assert chunks["Pen.Dip"].code == "func (p *Pen[T]) Dip(ink Ink) error"
    assert (chunks["Pen.Dip"].names, chunks["Pen.Dip"].breadcrumb) == (("Pen.Dip", "Dip"), ("quill",))
    assert chunks["Pen.Dip"].source_url == f"{PAGE}#Pen.Dip"
    assert chunks["Pen.Dip"].weight < chunks["New"].weight


def test_multi_line_head_ends_at_body() -> None:
    [signature, shell] = [
        each for each in split_go(PackageDocument("quill.go", SOURCE, "go", None)) if each.title == "New"
    ]

    assert signature.code == "func New(\n    options ...func(*Pen[int]) interface{},\n) *Pen[int]"
    assert (shell.code, shell.language) == ("$ go run . -ink red", "bash")


def test_example_functions_are_kept_whole() -> None:
    chunks = split_file(TEST, "quill_test.go")

    assert set(chunks) == {"Pen.Dip (example, twice)", "quill (example)"}
    shown = chunks["Pen.Dip (example, twice)"]
    assert shown.code == "pen := quill.New()\nif pen != nil {\n    pen.Dip(quill.Ink{})\n}"
    assert (shown.text, shown.names) == ("The pen is dipped twice.", ("Pen.Dip", "Dip"))
    assert shown.source_url == f"{PAGE}#example-Pen.Dip"
    assert chunks["quill (example)"].code == "fmt.Println(quill.Black)"


@given(
    st.lists(
        st.sampled_from(
            [*SOURCE.splitlines(), *TEST.splitlines(), "/*", "*/", "func F(", "type T", "const ("]
        )
    )
)
def test_any_lines_are_split(lines: list[str]) -> None:
    for path in ("a.go", "a_test.go", "examples/a.go"):
        split_file("\n".join(lines), path)
