"""A file of a released package, as read from its archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

DocumentKind: TypeAlias = Literal["markdown", "rst", "python", "javascript", "typescript", "text"]


@dataclass(frozen=True, slots=True)
class PackageDocument:
    """Text of one file, not sanitised: it is cleaned when it is split into chunks."""

    path: str
    """Path inside the package, with `/` as separator."""
    text: str
    kind: DocumentKind
    source_url: str | None
    """URL that shows this file at this version, if there is one."""
