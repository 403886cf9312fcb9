"""A file of a released package, as read from its archive."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from msgspec import Struct

FileKind: TypeAlias = Literal["markdown", "rst", "python", "javascript", "typescript", "rust", "go", "text"]

TEST_FOLDERS = frozenset({"test", "tests", "t"})

EXAMPLE_FOLDER = re.compile(
    r"(?:^|/)(?:docs?_src|docs?|examples?|samples?|demos?|snippets|tutorials?|cookbook)/"
)


class PackageDocument(Struct, frozen=True):
    """Text of one file, not sanitised: it is cleaned when it is split into chunks."""

    path: str
    """Path inside the package, with `/` as separator."""
    text: str
    kind: FileKind
    source_url: str | None
    """URL that shows this file at this version, if there is one."""


def is_test(path: str) -> bool:
    """True for the tests of a Python library, which show its use where nothing else does.

    Tests among examples are not its own: they show users how to test. Samples among tests are its own.
    """
    file = PurePosixPath(path)
    if file.suffix != ".py":
        return False
    if file.parts[:-1] and file.parts[0].lower() in TEST_FOLDERS:
        return True
    is_named_so = file.name.startswith("test_") or file.stem.endswith("_test")
    examples = EXAMPLE_FOLDER.search(path)
    above = path[: examples.start()].lower().split("/") if examples else ()
    return is_named_so and (examples is None or not TEST_FOLDERS.isdisjoint(above))


def is_example(path: str) -> bool:
    """True if a file is meant to be read, not imported."""
    return bool(EXAMPLE_FOLDER.search(path))
