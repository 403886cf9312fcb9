"""A file of a released package, as read from its archive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

DocumentKind: TypeAlias = Literal[
    "markdown", "rst", "python", "javascript", "typescript", "rust", "go", "text"
]

TEST_FOLDERS = frozenset({"test", "tests", "t"})


@dataclass(frozen=True, slots=True)
class PackageDocument:
    """Text of one file, not sanitised: it is cleaned when it is split into chunks."""

    path: str
    """Path inside the package, with `/` as separator."""
    text: str
    kind: DocumentKind
    source_url: str | None
    """URL that shows this file at this version, if there is one."""


def is_test(path: str) -> bool:
    """True for the tests of a Python library, which show its use where nothing else does."""
    file = PurePosixPath(path)
    return file.suffix == ".py" and (
        file.name.startswith("test_")
        or file.stem.endswith("_test")
        or bool(file.parts[:-1] and file.parts[0].lower() in TEST_FOLDERS)
    )
