"""Making one library's index of its archives; to be run in a process that may be killed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from centgate.libdocs import index
from centgate.libdocs.archives import read
from centgate.libdocs.documents import Document
from centgate.libdocs.packages import Archive

INDEX_SECONDS = 25
"""For what was read of archives to be indexed; the most important files come first."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """An archive on its way to be read."""

    archive: Archive
    file: Path
    """Where its bytes are: sent to a process themselves, they would hold up the sender."""
    inside: str = ""
    """What precedes its paths: nothing for the library itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of it."""

    pieces: int
    """None of them: no file was written."""


def build(file: str, parcels: Sequence[Parcel], about: Mapping[str, str], readme: str | None) -> Outcome:
    """Write the index of what archives hold; BadArchive when one of them is not what it should be.

    `readme` is what there is beside them. Why there may be more documentation, where that is so, is entered
    as `incomplete` among what the index says of itself.
    """
    documents, told = list[Document](), dict(about)
    if readme:
        documents.append(Document("README", readme, "markdown", None))
    for parcel in parcels:
        found = read(parcel.file.read_bytes(), parcel.archive, parcel.inside)
        documents += found.documents
        if found.incomplete:
            told.setdefault("incomplete", found.incomplete)
    if not documents:
        return Outcome(0)
    built = index.build(Path(file), documents, told, seconds=INDEX_SECONDS)
    if not built.pieces:
        Path(file).unlink()
    return Outcome(built.pieces)
