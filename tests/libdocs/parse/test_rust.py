"""Chunks of Rust files."""

from __future__ import annotations

import pytest

from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.rust import split_rust

COMMENT = "/// Presses the seal of a writer into the wax of a letter.\n"


@pytest.mark.parametrize(
    ("signature", "rest"),
    [
        ("pub fn seal(wax: &[u8]) -> [u8; 32]", " {\n    x\n}"),
        ("pub fn seal(wax: [[u8; 4]; N])", " {}"),
        ("pub struct Seal(pub [u8; size::<[u8; 2]>()])", ";\n\nfn a() {}"),
        ("pub const OPEN: char = '['", ";\npub const CLOSE: char = ']';"),
        ('pub const OPEN: &str = "[;"', ";\nfn a() {}"),
        ("pub fn seal<'a>(\n    wax: &'a str, // soft; [red\n)", " {}"),
    ],
)
def test_signature_ends_before_body(signature: str, rest: str) -> None:
    (chunk,) = split_rust(PackageDocument("src/seal.rs", f"{COMMENT}{signature}{rest}\n", "rust", None))

    assert chunk.code == signature
