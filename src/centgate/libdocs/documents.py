"""A file of a released package, as it was read from its archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["markdown", "rst", "python", "javascript", "typescript", "text"]


@dataclass(frozen=True, slots=True)
class Document:
    """Text of one file, legible or not: what is shown of it is cleaned where it is cut into pieces."""

    path: str
    """Inside the package, with `/` between its parts."""
    text: str
    kind: Kind
    source_url: str | None
    """This file at this version in its repository, where that is known."""
